"""How images become clients: perfedsi Table 2, the CIFAR split and its shifts, side information, and what is stored."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import affine_transform

from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError, UserError
from fedrepro.partitions.alphabets import Alphabets
from fedrepro.partitions.iid_images import IidImages
from fedrepro.problems.personal.image_shifts import SHIFTS, shifted
from fedrepro.problems.personal.problem import Personal

from .personal_case import WIDTHS, images

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason='needs JAX: pip install "fedrepro[deep]"'
)


def omniglot() -> Images:
    """Labels of the full data: 1,623 characters of 50 alphabets of 14 to 55 characters, 20 drawings each; no pixels."""
    counts = 14 + np.arange(50) * 41 // 49
    counts[-1 - np.arange(50)[: abs(1623 - counts.sum())]] += np.sign(1623 - counts.sum())
    labels = np.repeat(np.arange(1623), 20)
    return Images(np.zeros((labels.size, 1, 1, 1), np.uint8), labels, np.repeat(np.arange(50), counts)[labels])


@pytest.mark.parametrize(
    ("per_alphabet", "train", "test", "M", "mean"),
    [(1, 16, 4, 50, 519.36), (4, 4, 1, 200, 129.84), (10, 1, 1, 500, 32.46)],
)
def test_table_2(per_alphabet: int, train: int, test: int, M: int, mean: float) -> None:
    data = omniglot()
    assigned = Alphabets(per_alphabet=per_alphabet, train=train, test=test).assign(data, np.random.default_rng(0))
    client, part = assigned.T
    assert data.group is not None
    assert client.min() == 0  # all 20 drawings are used in each column of the table
    assert client.max() == M - 1
    assert np.sum(part == 0) / M == pytest.approx(mean)
    np.testing.assert_array_equal(client // per_alphabet, data.group)
    cells = np.zeros((M, 1623, 2), dtype=int)
    np.add.at(cells, (client, data.labels, part), 1)
    own = cells.sum(axis=2) > 0
    assert set(cells[own].tolist() and map(tuple, cells[own].tolist())) == {(train, test)}
    assert (own.sum(axis=0) == per_alphabet).all()


def test_drawings_are_dealt_out_at_random_and_some_may_be_left() -> None:
    data = images()
    assigned = [Alphabets(per_alphabet=2, train=2, test=1).assign(data, np.random.default_rng(s)) for s in (0, 0, 1)]
    np.testing.assert_array_equal(assigned[0], assigned[1])
    assert (assigned[0] != assigned[2]).any()
    assert (assigned[0][:, 0] == -1).sum() == 8 * 3  # 9 drawings, 6 dealt out


@pytest.mark.parametrize(
    ("data", "parameters", "message"),
    [
        (
            images(),
            {"per_alphabet": 2, "train": 4},
            "per_alphabet: 2 clients with 4 + 4 drawings need 16 of every character, but one has 9",
        ),
        (
            Images(np.zeros((4, 1, 1, 1), np.uint8), np.zeros(4, int)),
            {},
            "partition: 'alphabets' makes clients from the images' groups, and these images have none",
        ),
        (images(), {"train": 0}, "train: must be an integer of at least 1, not 0"),
    ],
)
def test_clients_that_cannot_be_made_say_why(data: Images, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Alphabets(**parameters).assign(data, np.random.default_rng(0))
    assert str(caught.value) == message


def test_cifar_clients_get_equal_shares_of_both_parts() -> None:
    data = Images(np.zeros((120, 1, 1, 3), np.uint8), np.zeros(120, int), None, np.repeat([0, 1], [100, 20]))
    assigned = IidImages(P=8).assign(data, np.random.default_rng(0))
    for part, sizes in ((0, {12, 13}), (1, {2, 3})):
        assert set(np.bincount(assigned[assigned[:, 1] == part, 0], minlength=8)) == sizes
    np.testing.assert_array_equal(assigned[:, 1], data.split)
    with pytest.raises(ParameterError, match=r"^P: must be at most the number of test images, 20, not 21$"):
        IidImages(P=21).assign(data, np.random.default_rng(0))
    with pytest.raises(
        ParameterError, match=r"^partition: 'iid_images' needs images with a split into train and test$"
    ):
        IidImages().assign(images(), np.random.default_rng(0))


# -- shifts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(4))
def test_shifts_are_rotation_then_shear(number: int) -> None:
    turns, degrees = SHIFTS[number]
    picture = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    moved = shifted(picture, turns, degrees)
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[turns]
    back = np.array([[cos, -sin], [sin, cos]]) @ np.array([[1.0, 0.0], [math.tan(math.radians(degrees)), 1.0]])
    centre = np.array([15.5, 15.5])
    for n in range(3):
        for c in range(3):
            expected = affine_transform(
                picture[n, :, :, c].astype(float), back, offset=centre - back @ centre, order=1, mode="grid-constant"
            )
            assert np.abs(moved[n, :, :, c] - expected).max() <= 0.5001  # rounding to whole grey values


def test_a_quarter_turn_is_clockwise_and_a_shear_moves_the_top_to_the_right() -> None:
    top = np.zeros((1, 5, 5, 1), np.uint8)
    top[0, 0, :] = 100
    np.testing.assert_array_equal(shifted(top, 1, 0.0)[0, :, :, 0], np.eye(5)[[4] * 5].astype(np.uint8) * 100)
    line = np.zeros((1, 5, 5, 1), np.uint8)
    line[0, :, 2] = 100
    np.testing.assert_array_equal(shifted(line, 0, 45.0)[0, :, :, 0], np.eye(5, dtype=np.uint8)[::-1] * 100)


def test_each_client_has_its_own_shift_and_knows_it() -> None:
    rng = np.random.default_rng(0)
    data = Images(rng.integers(0, 256, (60, 16, 16, 3)).astype(np.uint8), rng.integers(0, 5, 60), None,
                  np.repeat([0, 1], [40, 20]))  # fmt: skip
    owner = IidImages(P=5).assign(data, rng)
    made = Personal(data, owner, widths=WIDTHS, shift="affine", side="shift")
    for m in range(5):
        for rows in (made.train_rows[m], made.test_rows[m]):
            np.testing.assert_array_equal(made.pixels[rows], shifted(data.pixels[rows], *SHIFTS[m % 4]))
        np.testing.assert_array_equal(made.z[m], np.eye(4)[m % 4])


# -- the problem -------------------------------------------------------------------------------------------------------


def test_rows_of_clients_are_those_assigned() -> None:
    data = images()
    owner = Alphabets(per_alphabet=2, train=2, test=1).assign(data, np.random.default_rng(0))
    made = Personal(data, owner, widths=WIDTHS)
    for m in range(4):
        for part, rows in ((0, made.train_rows[m]), (1, made.test_rows[m])):
            np.testing.assert_array_equal(rows, np.flatnonzero((owner[:, 0] == m) & (owner[:, 1] == part)))
    values = made.measure(None, ("clients", "train_samples", "test_samples"))  # type: ignore[arg-type]
    assert values == {"clients": 4.0, "train_samples": 8.0, "test_samples": 4.0}


def test_a_dataset_s_own_split_serves_one_column() -> None:
    data = Images(np.zeros((8, 16, 16, 1), np.uint8), np.arange(8) % 2, None, np.array([0, 0, 1, 1] * 2))
    made = Personal(data, np.repeat([0, 1], 4), widths=WIDTHS)
    assert [rows.tolist() for rows in made.train_rows] == [[0, 1], [4, 5]]
    assert [rows.tolist() for rows in made.test_rows] == [[2, 3], [6, 7]]


def test_data_that_cannot_work_say_why() -> None:
    data = images()
    with pytest.raises(UserError, match=r"^client: must give client and part \(0 train, 1 test\) of each of 72 images"):
        Personal(data, np.zeros(72, int), widths=WIDTHS)
    owner = np.zeros((72, 2), int)
    owner[:40, 0], owner[::2, 1] = 1, 1
    owner[40:, 1] = 0
    with pytest.raises(UserError, match=r"^client 0 has no test images; every client needs both kinds$"):
        Personal(data, owner, widths=WIDTHS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"widths": [8, 8, 8]}, "widths: must give the channels of 4 blocks, not 3"),
        ({"widths": 64}, "widths: must be a list of the channels of four blocks, not 64"),
        ({"last_pool": "round"}, "last_pool: must be one of floor, ceil, not 'round'"),
        ({"side": "shift"}, "side: 'shift' is the number of a client's shift; it needs shift: affine"),
        ({"side": "alphabet"}, "side: must be one of none, group, shift, not 'alphabet'"),
        ({"precision": "half"}, "precision: must be one of single, double, not 'half'"),
    ],
)
def test_parameters_that_cannot_work_say_why(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Personal.check(parameters, {})
    assert str(caught.value) == message


def test_images_without_a_partition_say_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"^partition: images need a partition: alphabets"):
        Personal.prepare(tmp_path, images(), None, {"widths": WIDTHS})


@needs_jax
def test_side_information_of_groups_comes_from_train_images_and_tells_alphabets_apart(tmp_path: Path) -> None:
    data = images()
    owner = Alphabets(per_alphabet=3, train=2, test=1).assign(data, np.random.default_rng(0))
    parameters = {"widths": WIDTHS, "side": "group", "side_epochs": 20}
    Personal.prepare(tmp_path, data, owner, parameters)
    stored = Personal.stored(tmp_path, parameters)
    assert stored.z.shape == (6, 8)
    distance = np.linalg.norm(stored.z[:, None] - stored.z[None], axis=2) + 1e9 * np.eye(6)
    np.testing.assert_array_equal(distance.argmin(axis=1) // 3, np.arange(6) // 3)
    blind = Images(data.pixels.copy(), data.labels, data.group)
    blind.pixels[owner[:, 1] == 1] = 0
    again = Personal(blind, owner, **parameters)
    assert again.z.tobytes() == np.asarray(stored.z).tobytes()  # deterministic, and blind to test images
    for name in ("pixels", "labels"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(Personal(data, owner, widths=WIDTHS), name))
    with pytest.raises(ParameterError, match=r"^side: 'group' trains a classifier of the images' groups"):
        Personal(Images(data.pixels, data.labels), owner, **parameters)
