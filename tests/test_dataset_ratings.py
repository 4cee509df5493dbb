"""MovieLens and Netflix: every layout gives the same ratings, wrong files are refused, stand-ins have the shape."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.data import copies, imports, loading
from fedrepro.data.formats.rating_text import compact
from fedrepro.data.source import sources
from fedrepro.errors import ParameterError, UserError
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


ROWS = data_copies.ratings()
DATE = "2005-09-06"


def lines(separator, rows=ROWS, tail=()):
    return "\n".join(separator.join([*map(str, row), *tail]) for row in rows.tolist()) + "\n"


LAYOUTS = {
    "ratings.dat": lambda: lines("::", tail=["978300760"]),
    "u.data": lambda: lines("\t", tail=["978300760"]),
    "ratings.csv": lambda: "userId,movieId,rating,timestamp\n" + lines(",", tail=["978300760"]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_of_movielens_gives_the_same_ratings(tmp_path, name):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / name).write_text(LAYOUTS[name]())
    now = imports.adopt("movielens-1m", [tmp_path / "copy"], variant=True)
    assert now.state == "variant"
    assert "300 ratings instead of 1,000,209; 20 users instead of 6,040; 15 items instead of 3,706" in now.note
    loaded = loading.load("movielens-1m", {})
    np.testing.assert_array_equal(2 * loaded.user + 1, ROWS[:, 0])
    np.testing.assert_array_equal(3 * loaded.item + 2, ROWS[:, 1])
    np.testing.assert_array_equal(loaded.value, ROWS[:, 2])
    assert (loaded.users, loaded.items) == (20, 15)
    assert (loaded.user.dtype, loaded.item.dtype, loaded.value.dtype) == (np.int32, np.int32, np.float64)
    assert (loaded.facts["last_user_id"], loaded.facts["last_item_id"]) == (39, 44)


def test_columns_are_found_by_their_names(tmp_path):
    swapped = ROWS[:, [2, 1, 0]]
    (tmp_path / "ratings.csv").write_text('"rating","movieId","userId"\n' + lines(",", swapped))
    imports.adopt("movielens-1m", [tmp_path / "ratings.csv"], variant=True)
    np.testing.assert_array_equal(loading.load("movielens-1m", {}).value, ROWS[:, 2])


def test_blocks_do_not_change_what_is_read(tmp_path, monkeypatch):
    (tmp_path / "ratings.dat").write_text(LAYOUTS["ratings.dat"]())
    one = imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True).fingerprint
    monkeypatch.setattr("fedrepro.data.formats.rating_text.ROWS", 7)
    assert imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True).fingerprint == one


def edited(row, text):
    content = lines("::", tail=["0"]).splitlines()
    content[row] = text
    return "\n".join(content) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ratings.dat is empty"),
        ("1::2\n3::4\n", "columns user, item and rating are needed, the first line is"),
        (edited(5, "1::x::3::0"), "a row near line 1 or later is not user, item, rating"),
        (edited(5, "1::2::nan::0"), "line 6: user 1, item 2, rating nan; ids must be whole numbers"),
        (edited(5, "1::2::::0"), "line 6: user 1, item 2, rating nan"),
        (edited(5, "1::2::9::0"), "line 6: user 1, item 2, rating 9; ids must be whole"),
        (edited(5, "1::2.5::3::0"), "line 6: user 1, item 2.5, rating 3; ids"),
        (edited(5, "-1::2::3::0"), "line 6: user -1, item 2, rating 3; ids"),
        ("user,film,stars\n1,2,3\n", "no column for the item in its header 'user,film,stars'"),
        ("userId,movieId\n1,2\n", "no column for the rating in its header 'userId,movieId'"),
    ],
)
def test_bad_tables(tmp_path, text, message):
    (tmp_path / "ratings.dat").write_text(text)
    with pytest.raises(UserError) as caught:
        imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    assert message in str(caught.value)
    assert str(tmp_path / "ratings.dat") in str(caught.value)
    assert copies.state("movielens-1m").state == "absent"


@pytest.mark.usefixtures("here")
def test_another_movielens_is_recognised(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("fedrepro.data.sources.movielens", fromlist=["x"]).OTHERS, 300, "MovieLens Small")
    (tmp_path / "ratings.dat").write_text(LAYOUTS["ratings.dat"]())
    with pytest.raises(UserError, match=r"ratings.dat is MovieLens Small \(300 ratings\)"):
        imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)


def test_repeated_pairs_and_half_stars_are_noted(tmp_path):
    rows = np.vstack([ROWS, ROWS[:2]]).astype(float)
    rows[3, 2] = 2.5
    (tmp_path / "ratings.dat").write_text(lines("::", rows))
    note = imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True).note
    assert "2 ratings repeat a user and item" in note
    assert "ratings are not all 1, 2 ... 5" in note


def test_users_and_rare_items_can_be_left_out(tmp_path):
    (tmp_path / "ratings.dat").write_text(lines("::", ROWS[ROWS[:, 1] != 2], tail=["0"]) + "1::2::3::0\n")
    imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    everything = loading.load("movielens-1m", {})
    some = loading.load("movielens-1m", {"users": 5})
    assert some.users == 5
    np.testing.assert_array_equal(some.value, everything.value[np.isin(everything.user, [0, 4, 8, 12, 16])])
    assert sorted(set(some.user)) == list(range(5))
    often = loading.load("movielens-1m", {"min_item_ratings": 2})
    assert often.items == 14
    assert len(often.value) == len(everything.value) - 1
    with pytest.raises(ParameterError, match="min_item_ratings: no item has 100 ratings"):
        loading.load("movielens-1m", {"min_item_ratings": 100})


def test_compact_is_unique_with_inverse():
    ids = np.random.default_rng(0).integers(0, 1000, size=500).astype(np.int32)
    raw, inverse = np.unique(ids, return_inverse=True)
    ours, ours_raw = compact(ids)
    np.testing.assert_array_equal(ours, inverse)
    np.testing.assert_array_equal(ours_raw, raw)


def films(rows=ROWS, newline="\n"):
    """(film -> text of its file) in the official form."""
    by_film = {}
    for film in np.unique(rows[:, 1]):
        mine = rows[rows[:, 1] == film]
        by_film[int(film)] = newline.join([f"{film}:", *(f"{u},{r},{DATE}" for u, _, r in mine.tolist())]) + newline
    return by_film


def netflix(folder, layout):
    folder.mkdir()
    if layout == "combined":
        texts = list(films().values())
        (folder / "combined_data_1.txt").write_text("".join(texts[:7]))
        (folder / "combined_data_2.txt").write_text("".join(texts[7:]))
    elif layout == "csv":
        (folder / "netflix.csv").write_text("UserID,MovieID,Rating\n" + lines(","))
    elif layout == "official":
        import io
        import tarfile

        inner = io.BytesIO()
        with tarfile.open(fileobj=inner, mode="w") as archive:
            for film, text in reversed(films().items()):
                member = tarfile.TarInfo(f"training_set/mv_{film:07d}.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        with tarfile.open(folder / "nf_prize_dataset.tar.gz", "w:gz") as archive:
            for name, raw in (("download/probe.txt", b"1:\n"), ("download/training_set.tar", inner.getvalue())):
                member = tarfile.TarInfo(name)
                member.size = len(raw)
                archive.addfile(member, io.BytesIO(raw))
    else:
        for film, text in films(newline="\r\n" if layout == "windows" else "\n").items():
            (folder / f"mv_{film:07d}.txt").write_bytes(text.encode())
    return folder


@pytest.mark.parametrize("layout", ["folder", "windows", "combined", "csv", "official"])
def test_every_layout_of_netflix_gives_the_same_ratings(tmp_path, layout):
    now = imports.adopt("netflix", [netflix(tmp_path / "copy", layout)], variant=True)
    assert "300 ratings instead of 100,480,507" in now.note
    loaded = loading.load("netflix", {})
    by_film = ROWS[np.argsort(ROWS[:, 1], kind="stable")]
    np.testing.assert_array_equal(2 * loaded.user + 1, by_film[:, 0])
    np.testing.assert_array_equal(3 * loaded.item + 2, by_film[:, 1])
    np.testing.assert_array_equal(loaded.value, by_film[:, 2])
    assert isinstance(loaded.user, np.memmap)


@pytest.mark.parametrize("block", [16, 33, 64, 1000])
def test_netflix_blocks_are_cut_at_whole_lines(tmp_path, monkeypatch, block):
    whole = imports.adopt("netflix", [netflix(tmp_path / "copy", "combined")], variant=True).fingerprint
    monkeypatch.setattr("fedrepro.data.sources.netflix.BLOCK", block)
    assert imports.adopt("netflix", [tmp_path / "copy"], variant=True).fingerprint == whole


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("1:\n5,3,2005-09-06\n7,9,2005-09-06\n", 3, "7,9,2005-09-06"),
        ("1:\n5,3,2005-09-06\nhello\n", 3, "hello"),
        ("1:\n5,3\n", 2, "5,3"),
        ("5,3,2005-09-06\n", 1, "5,3,2005-09-06"),
        ("1:\nx5,3,2005-09-06\n", 2, "x5,3,2005-09-06"),
        ("one:\n5,3,2005-09-06\n", 1, "one:"),
        ("1:\n,3,2005-09-06\n", 2, ",3,2005-09-06"),
    ],
)
def test_bad_netflix_lines(tmp_path, text, line, shown):
    (tmp_path / "mv_0000001.txt").write_text(text)
    with pytest.raises(UserError) as caught:
        imports.adopt("netflix", [tmp_path / "mv_0000001.txt"], variant=True)
    assert f"mv_0000001.txt, line {line}: '{shown}' is neither 'film:' nor 'user,rating,date'" in str(caught.value)


def test_a_last_line_without_newline_counts(tmp_path):
    (tmp_path / "mv_0000001.txt").write_text("1:\n5,3,2005-09-06\n\n8,2,2005-09-06")
    imports.adopt("netflix", [tmp_path / "mv_0000001.txt"], variant=True)
    assert loading.load("netflix", {}).value.tolist() == [3, 2]


@pytest.mark.parametrize(("name", "users"), [("movielens-1m", 400), ("movielens-10m", 300), ("netflix", 300)])
def test_stand_ins(name, users):
    entry = registry.datasets()[name]
    loaded = loading.load(name, {"users": users}, stand_in=True)
    assert loaded.users == users == entry.make(users=users).shape()["users"]
    assert loaded.user.max() < users
    assert loaded.item.max() == loaded.items - 1
    pairs = loaded.user.astype(np.int64) * loaded.items + loaded.item
    assert len(np.unique(pairs)) == len(pairs)
    full = entry.make().shape()
    assert len(pairs) / users == pytest.approx(full["ratings"] / full["users"], rel=0.1)
    assert loaded.value.min() >= (0.5 if name == "movielens-10m" else 1)
    assert loaded.value.max() == 5
    assert 3.2 < loaded.value.mean() < 3.8
    popularity = np.sort(np.bincount(loaded.item))[::-1]
    assert popularity[: len(popularity) // 10].sum() > 0.3 * popularity.sum()
    assert loaded.facts["stand_in"]
    again = loading.load(name, {"users": users}, stand_in=True)
    np.testing.assert_array_equal(again.value, loaded.value)


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="users: must be an integer from 1 to 6,040, not 10000"):
        loading.load("movielens-1m", {"users": 10_000})
    with pytest.raises(ParameterError, match="min_item_ratings: must be an integer of at least 1, not 0"):
        loading.load("netflix", {"min_item_ratings": 0})


REAL = data_copies.SHARED / "movielens" / "ml-1m.zip"


@pytest.mark.skipif(not REAL.exists(), reason="no copy of MovieLens 1M beside the repository")
def test_the_real_ratings():
    now = imports.adopt("movielens-1m", [REAL])  # whose timestamps are not the official ones
    assert (now.state, now.note) == ("present", "the published content in other files")
    loaded = loading.load("movielens-1m", {})
    assert (len(loaded.value), loaded.users, loaded.items) == (1_000_209, 6040, 3706)
    with zipfile.ZipFile(REAL) as archive, archive.open("ml-1m/ratings.dat") as file:
        lines = file.readlines()
        ids = sorted({int(line.split(b"::")[1]) for line in lines})
        for i, line in enumerate(lines[:1000]):
            user, item, value, _ = map(int, line.decode().split("::"))
            assert (loaded.user[i] + 1, ids[loaded.item[i]], loaded.value[i]) == (user, item, value)
    assert loading.load("movielens-1m", {"min_item_ratings": 5}).items == 3416


@pytest.mark.skipif(not REAL.exists(), reason="no copy of MovieLens 1M beside the repository")
@pytest.mark.parametrize("harm", ["timestamp", "rating", "order"])
def test_of_the_real_ratings_all_but_the_timestamps_count(tmp_path, harm):
    with zipfile.ZipFile(REAL) as archive:
        lines = archive.read("ml-1m/ratings.dat").splitlines()
    if harm == "order":
        lines[3], lines[4] = lines[4], lines[3]
    else:
        user, item, value, _ = lines[7].split(b"::")
        lines[7] = b"::".join([user, item, value if harm == "timestamp" else b"%d" % (6 - int(value)), b"1"])
    (tmp_path / "ratings.dat").write_bytes(b"\n".join(lines) + b"\n")
    now = imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    if harm == "timestamp":
        assert (now.state, now.note) == ("present", "the published content in other files")
    else:
        assert (now.state, now.note) == (
            "variant",
            "users, items, ratings or their order differ from the published ones",
        )


def test_a_recorded_size_is_never_invented():
    assert {s.name for s in sources().values() if not s.pinned} == {"netflix", "tdt2", "tcga", "europarl", "synpuf"}


@pytest.mark.parametrize(("name", "file"), [("movielens-1m", "ratings.csv"), ("netflix", "netflix.csv")])
def test_a_table_of_other_size_is_not_the_catalogue_s(tmp_path, name, file):
    (tmp_path / file).write_text("userId,movieId,rating\n" + lines(","))
    with pytest.raises(UserError, match=rf"{file} is not .*: 300 ratings instead of .* use the dataset ratings-file"):
        imports.adopt(name, [tmp_path / file])
    assert copies.state(name).state == "absent"
    assert imports.adopt(name, [tmp_path / file], variant=True).state == "variant"
