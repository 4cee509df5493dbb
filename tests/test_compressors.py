"""Compressors: what a message carries, what it costs, what is lost, and that feedback makes the loss good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedrepro.compressors import ErrorFeedback, Identity, Link, MaxNorm, TopK
from fedrepro.errors import ParameterError

finite = st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False, allow_subnormal=False)
matrices = arrays(np.float64, array_shapes(min_dims=1, max_dims=2, max_side=12), elements=finite)
checked = settings(deadline=None, derandomize=True, max_examples=80)
bit_widths = st.sampled_from([2, 3, 4, 5, 8, 9, 16, 17, 31])


class Constant:
    """A stand-in for a generator whose uniforms all have one value."""

    def __init__(self, u: float) -> None:
        self.u = u

    def random(self, shape):
        return np.full(shape, self.u)


def expected(quantity, points: int = 400):
    """The mean of ``quantity(rng)`` over uniforms: entries are rounded independently, so one u for all is enough."""
    return np.mean([quantity(Constant((i + 0.5) / points)) for i in range(points)], axis=0)


@pytest.mark.parametrize(("q", "S"), [(2, 1), (3, 3), (4, 7), (5, 15)])
def test_one_bit_is_the_sign(q, S):
    assert MaxNorm(q).S == S
    message = MaxNorm(q).compress(np.linspace(-2, 2, 101), np.random.default_rng(0))
    assert message.levels.min() == -S
    assert message.levels.max() == S


def test_small_example_by_hand():
    D = np.array([[1.2, -0.6], [0.2, 0.0]])  # S = 3: |D| S / max = 3, 1.5, 0.5, 0
    low = MaxNorm(3).compress(D, Constant(0.6))
    high = MaxNorm(3).compress(D, Constant(0.4))
    assert low.levels.tolist() == [[3, -1], [0, 0]]
    assert high.levels.tolist() == [[3, -2], [1, 0]]
    np.testing.assert_allclose(high.values, [[1.2, -0.8], [0.4, 0.0]], rtol=1e-15)
    assert high.bits == 4 * 3 + 32
    # step 0.4 in single precision, then level + 3 in three bits each, lowest first: 6 = 011, 1 = 100, 4 = 001, 3 = 110
    assert high.pack(single=True) == np.float32(0.4).tobytes() + bytes([0b01110000, 0b11100000])


@checked
@given(matrices, bit_widths)
def test_unbiased(D, q):
    mean = expected(lambda rng: MaxNorm(q).compress(D, rng).values)
    step = np.abs(D).max() / MaxNorm(q).S
    np.testing.assert_allclose(mean, D, atol=step / 400 + 1e-9 * np.abs(D).max())


@checked
@given(matrices, bit_widths, st.integers(0, 2**32))
def test_every_entry_goes_to_a_neighbouring_level(D, q, seed):
    message = MaxNorm(q).compress(D, np.random.default_rng(seed))
    largest = np.abs(D).max()
    assert (np.abs(message.values - D) <= largest / MaxNorm(q).S * (1 + 1e-6)).all()
    assert (message.values * D >= 0).all()
    assert np.abs(message.values).max() <= largest * (1 + 1e-9)


@checked
@given(bit_widths, st.floats(1e-6, 1e6), st.integers(0, 2**32))
def test_identity_on_the_grid(q, scale, seed):
    rng = np.random.default_rng(seed)
    S = MaxNorm(q).S
    levels = rng.integers(-S, S, size=(7, 3), endpoint=True)
    levels[0, 0] = S
    message = MaxNorm(q).compress(scale * levels / S, rng)
    if q <= 17:  # at 31 bits a rounding error may move the last level
        assert (message.levels == levels).all()
    np.testing.assert_allclose(message.values, scale * levels / S, rtol=1e-8)


@checked
@given(matrices, st.sampled_from([2, 3, 4, 5, 8]))
def test_fact_1_the_scaled_quantizer_is_a_delta_compressor(D, q):
    compressor = MaxNorm(q, "bound")
    u = compressor.scale(D)
    assert u >= 1
    loss = expected(lambda rng: np.square(compressor.compress(D, rng).values - D).sum())
    norm = np.square(D).sum()
    points = D.size * (np.abs(D).max() / compressor.S) ** 2 / 400  # the mean is over 400 values of u
    assert loss <= (1 - 1 / u) * norm + points + 1e-12 * norm


def test_fact_1_is_tight_half_way_between_levels():
    D = np.array([2.0] + [1.0] * 9)  # S = 1: nine entries lose max^2 / 4 each
    compressor = MaxNorm(2, "bound")
    u = 1 + 10 / 4 * 4 / 13
    assert compressor.scale(D) == pytest.approx(u)
    loss = expected(lambda rng: np.square(compressor.compress(D, rng).values - D).sum())
    variance, norm = 9.0, 13.0
    assert loss == pytest.approx((variance + norm) / u**2 - 2 * norm / u + norm)
    assert loss < (1 - 1 / u) * norm


@checked
@given(matrices, bit_widths)
def test_fact_2_without_scaling_where_the_energy_is_spread(D, q):
    compressor = MaxNorm(q)
    norm, largest = np.square(D).sum(), np.abs(D).max()
    if norm > D.size / (4 * compressor.S**2) * largest**2 and norm > 0:
        loss = expected(lambda rng: np.square(compressor.compress(D, rng).values - D).sum())
        assert loss < norm + D.size * (largest / compressor.S) ** 2 / 400


def test_fact_2_needs_its_condition():
    D = np.array([10.0] + [3.0] * 99)  # one entry sets the scale of 99 others; S = 1
    assert np.square(D).sum() < D.size / 4 * 100
    loss = expected(lambda rng: np.square(MaxNorm(2).compress(D, rng).values - D).sum())
    assert loss > np.square(D).sum()


@pytest.mark.parametrize("compressor", [MaxNorm(2), MaxNorm(3, "bound"), MaxNorm(31), TopK(0.3), Identity()])
def test_zero_maps_to_zero(compressor):
    message = compressor.compress(np.zeros((4, 3)), np.random.default_rng(0))
    assert (message.values == 0).all()
    again = compressor.unpack(message.pack(), (4, 3))
    assert (again.values == 0).all()


@checked
@given(matrices, bit_widths, st.integers(0, 2**32))
def test_the_packed_quantized_message_is_what_is_counted_and_comes_back(D, q, seed):
    compressor = MaxNorm(q)
    message = compressor.compress(D, np.random.default_rng(seed))
    assert message.bits == q * D.size + 32
    assert 0 <= 8 * len(message.pack(single=True)) - message.bits < 8
    again = compressor.unpack(message.pack(), D.shape)
    assert (again.levels == message.levels).all()
    assert again.values.tobytes() == message.values.tobytes()
    single = compressor.unpack(message.pack(single=True), D.shape, single=True)
    np.testing.assert_allclose(single.values, message.values, rtol=1e-7, atol=1e-40)


@checked
@given(matrices, st.floats(0.01, 1.0))
def test_top_k_message(D, kept):
    compressor = TopK(kept)
    message = compressor.compress(D, np.random.default_rng(0))
    k = compressor.entries(D.size)
    assert message.bits == k * (32 + max(1, (D.size - 1).bit_length()))
    assert 0 <= 8 * len(message.pack(single=True)) - message.bits < 8
    assert compressor.unpack(message.pack(), D.shape).values.tobytes() == message.values.tobytes()
    loss = np.square(message.values - D).sum()
    assert loss <= (1 - k / D.size) * np.square(D).sum() * (1 + 1e-9)  # delta = k / size
    dropped = np.sort(np.abs(D).ravel())[: D.size - k]
    assert loss == pytest.approx(np.square(dropped).sum(), rel=1e-9)


def test_top_k_takes_the_first_among_equals():
    message = TopK(0.5).compress(np.array([1.0, -2.0, 2.0, -1.0, 2.0, 0.0]), np.random.default_rng(0))
    assert message.values.tolist() == [0, -2, 2, 0, 2, 0]
    message = TopK(0.34).compress(np.array([1.0, -2.0, 2.0, -1.0, 2.0, 0.0]), np.random.default_rng(0))
    assert message.values.tolist() == [0, -2, 2, 0, 0, 0]


def test_identity_loses_nothing_and_counts_32_bits():
    D = np.random.default_rng(0).standard_normal((5, 4))
    message = Identity().compress(D, np.random.default_rng(0))
    assert message.values.tobytes() == D.tobytes()
    assert message.bits == 32 * 20 == 8 * len(message.pack(single=True))
    assert Identity().unpack(message.pack(), D.shape).values.tobytes() == D.tobytes()


def test_more_bits_lose_less():
    D = np.random.default_rng(0).standard_normal((50, 5))
    losses = [np.abs(MaxNorm(q).compress(D, np.random.default_rng(1)).values - D).max() for q in (2, 4, 8, 16, 31)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-8


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_does_not_become_a_number(bad):
    D = np.ones((3, 2))
    D[1, 1] = bad
    assert not np.isfinite(MaxNorm(3).compress(D, np.random.default_rng(0)).values).any()


@pytest.mark.parametrize("compressor", [MaxNorm(2), MaxNorm(3), TopK(0.2)])
def test_error_feedback_loses_only_the_last_error(compressor):
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((30, 6, 4))
    sender, received = ErrorFeedback(MaxNorm(2, "bound") if compressor == MaxNorm(2) else compressor, (6, 4)), 0.0
    for update in updates:
        received = received + sender.send(update, rng).values
    np.testing.assert_allclose(received + sender.memory, updates.sum(axis=0), atol=1e-12)


def test_a_link_is_error_feedback_on_the_changes_of_a_state():
    rng = np.random.default_rng(0)
    states = rng.integers(-50, 50, size=(20, 8, 3)).astype(float)  # integers: both routes are exact
    link, sender, previous = Link(TopK(0.25), states[0]), ErrorFeedback(TopK(0.25), (8, 3)), states[0]
    for state in states[1:]:
        a = link.send(state, rng)  # eq. (12), left side
        b = sender.send(state - previous, rng)  # eq. (12), right side
        link.receive(a)
        assert a.values.tobytes() == b.values.tobytes()
        previous = state


@pytest.mark.parametrize("compressor", [MaxNorm(3), MaxNorm(5, "bound"), TopK(0.1), Identity()])
@pytest.mark.parametrize("feedback", [True, False])
def test_both_ends_agree_to_the_bit_when_only_bytes_cross(compressor, feedback):
    rng = np.random.default_rng(0)
    state = rng.standard_normal((10, 4))
    link = Link(compressor, state, feedback)
    for r in range(40):
        state = state + 0.9**r * rng.standard_normal((10, 4))
        message = link.send(state, rng)
        link.receive(compressor.unpack(message.pack(), (10, 4)))
        assert link.near.tobytes() == link.far.tobytes()


def test_without_feedback_the_errors_of_a_link_add_up():
    def distance(feedback: bool) -> float:
        rng = np.random.default_rng(0)
        state = rng.standard_normal((200, 4))
        link = Link(MaxNorm(3), state, feedback)
        for r in range(60):
            state = state + 0.8**r * rng.standard_normal((200, 4))
            link.receive(link.send(state, rng))
        return float(np.linalg.norm(link.far - state))

    assert distance(True) < 1e-3
    assert distance(False) > 10


def test_a_rule_known_to_both_ends_costs_nothing():
    link = Link(MaxNorm(3), np.arange(6.0).reshape(3, 2))
    link.adjust(lambda M: M - M.mean(axis=0))
    assert link.near.mean() == 0
    assert link.near.tobytes() == link.far.tobytes()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxNorm(1), "q: must be an integer from 2 (one bit is the sign) to 31 bits, not 1"),
        (lambda: MaxNorm(32), "q: must be an integer from 2 (one bit is the sign) to 31 bits, not 32"),
        (lambda: MaxNorm(2.5), "q: must be an integer from 2 (one bit is the sign) to 31 bits, not 2.5"),
        (lambda: MaxNorm(3, 0.5), "u: must be 'bound' (Fact 1) or a number of at least 1, not 0.5"),
        (lambda: MaxNorm(3, "best"), "u: must be 'bound' (Fact 1) or a number of at least 1, not 'best'"),
        (lambda: TopK(0.0), "kept: must be a share greater than 0 and at most 1, not 0.0"),
        (lambda: TopK(2), "kept: must be a share greater than 0 and at most 1, not 2"),
    ],
)
def test_bad_parameters_are_told(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == message
