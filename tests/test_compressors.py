"""Compressors: content and size of messages, losses, and error feedback that compensates them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedrepro.compression.compressors import ROUNDED, ErrorFeedback, Identity, Link, MaxNorm, TopK, single_above
from fedrepro.errors import ParameterError

finite = st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False, allow_subnormal=False)
matrices = arrays(np.float64, array_shapes(min_dims=1, max_dims=2, max_side=12), elements=finite)
checked = settings(deadline=None, derandomize=True, max_examples=80)
mantissas = st.floats(-1, 1, exclude_min=True, exclude_max=True, allow_subnormal=False)
numbers = st.builds(lambda m, e: math.ldexp(m, e), mantissas, st.integers(-1073, 1024))
extreme = arrays(np.float64, array_shapes(min_dims=1, max_dims=2, max_side=6), elements=numbers)
"""From the least subnormal number to the largest of double precision, far beyond the range of single precision."""
bit_widths = st.sampled_from([2, 3, 4, 5, 8, 9, 16, 17, 31])
every_width = st.integers(2, 31)


class Constant:
    """A stand-in for a generator whose uniforms have given values, one for all or one for each entry."""

    def __init__(self, u) -> None:
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
    step = float(np.float32(0.4))  # 0.4 in single precision is 0.4 + 6e-9, the next number above 0.4
    assert high.values.tolist() == [[3 * step, -2 * step], [step, 0.0]]
    assert high.bits == 4 * 3 + 32
    # the step, then level + 3 in three bits each, lowest first: 6 = 011, 1 = 100, 4 = 001, 3 = 110
    assert high.pack(single=True) == np.float32(0.4).tobytes() + bytes([0b01110000, 0b11100000])


def test_the_step_is_the_next_number_of_single_precision():
    for x in (1.0, 0.5, 3.0, 2.0**-126, 2.0**-149, 2.0**127, float(np.finfo(np.float32).max)):
        assert single_above(x) == x
    for x, above in (
        (1 + 2.0**-40, 1 + 2.0**-23),
        (2.0**-149 * 1.01, 2.0**-148),
        (5e-324, 2.0**-149),
        (0.0, 2.0**-149),
    ):
        assert single_above(x) == above
    assert single_above(float(np.finfo(np.float32).max) * (1 + 2.0**-52)) == math.inf
    for x in np.exp(np.random.default_rng(0).uniform(-87, 88, 2000)).tolist():  # 2^-126 .. 2^127
        assert x <= single_above(x) <= x * ROUNDED
        assert single_above(x) == float(np.float32(single_above(x)))
        assert float(np.nextafter(np.float32(single_above(x)), np.float32(0))) < x


def exact_mean(compressor, D):
    """The mean of what D becomes: of each entry the probability to go up is found by bisection, to 2^-53."""
    low = compressor.compress(D, Constant(1 - 2.0**-53)).levels
    down, up = np.ones(D.shape), np.zeros(D.shape)  # a uniform with which an entry stays low, and one below the others
    for _ in range(53):
        u = (down + up) / 2
        higher = np.abs(compressor.compress(D, Constant(u)).levels) > np.abs(low)
        up, down = np.where(higher, u, up), np.where(higher, down, u)
    return np.sign(D) * compressor.compress(D, Constant(0.5)).step * (np.abs(low) + up)


@checked
@given(st.one_of(matrices, extreme), every_width, st.sampled_from([1.0, 1.7, "bound"]))
def test_unbiased(D, q, u):
    """With u = 1; with another u the mean is that share of the matrix: for the step that is used, whatever its size."""
    compressor = MaxNorm(q, u)
    step = compressor.compress(D, Constant(0.5)).step
    if not math.isfinite(step):
        return
    mean, wanted = exact_mean(compressor, D), D / compressor.scale(D)
    np.testing.assert_allclose(mean, wanted, rtol=1e-15, atol=2.0**-51 * step)


@checked
@given(extreme, every_width, st.integers(0, 2**32))
def test_every_entry_goes_to_a_neighbouring_level(D, q, seed):
    compressor = MaxNorm(q)
    message = compressor.compress(D, np.random.default_rng(seed))
    largest = np.abs(D).max()
    if largest / compressor.S > np.finfo(np.float32).max:  # no number of single precision is as large as the step
        assert not np.isfinite(message.values).any()
        return
    assert largest / compressor.S <= message.step <= max(2.0**-149, largest / compressor.S * (1 + 2.0**-22) + 2.0**-149)
    assert np.abs(message.levels).max() <= compressor.S
    assert (np.abs(message.values - D) <= message.step * (1 + 1e-15)).all()
    assert (np.sign(message.levels) * np.sign(D) >= 0).all()


@pytest.mark.parametrize("M", [1.5e-46, 2.0**-149, 3.3e-45, 1e-310, 5e-324])
def test_a_step_below_single_precision_is_its_least_number(M):
    D = M * np.array([1.0, -0.75, 0.5, 0.0])
    message = MaxNorm(3).compress(D, Constant(0.0))  # everything that can goes up
    assert message.step == 2.0**-149
    assert message.values.tolist() == (2.0**-149 * np.sign(D) * np.ceil(np.abs(D) * 2.0**149)).tolist()
    np.testing.assert_allclose(exact_mean(MaxNorm(3), D), D, rtol=1e-15, atol=2.0**-201)


@checked
@given(every_width, st.floats(2.0**-20, 2.0**20, width=32), st.integers(0, 2**32))
def test_identity_on_the_grid(q, step, seed):
    """A matrix of multiples of a step that is exact in single precision is unchanged."""
    rng = np.random.default_rng(seed)
    S = MaxNorm(q).S
    levels = rng.integers(-S, S, size=(7, 3), endpoint=True)
    levels[0, 0] = S
    message = MaxNorm(q).compress(step * levels, rng)
    if q <= 28:  # beyond, S step itself is rounded, and its S-th part lies beside the step
        assert message.step == step
        assert (message.levels == levels).all()
        assert (message.values == step * levels).all()
    np.testing.assert_allclose(message.values, step * levels, rtol=0, atol=message.step)


@checked
@given(matrices, every_width)
def test_fact_1_the_scaled_quantizer_is_a_delta_compressor(D, q):
    compressor = MaxNorm(q, "bound")
    if 0 < np.abs(D).max() < 1e-25:
        return  # the step may be a subnormal number, rounded by more than the bound allows for
    u = compressor.scale(D)
    assert u >= 1
    loss = expected(lambda rng: np.square(compressor.compress(D, rng).values - D).sum())
    norm = np.square(D).sum()
    points = D.size * (np.abs(D).max() / compressor.S) ** 2 / 400  # the mean is over 400 values of u
    assert loss <= (1 - 1 / u) * norm + points + 1e-12 * norm


@pytest.mark.parametrize("q", range(2, 32))
def test_fact_1_holds_for_the_step_that_is_used(q):
    """E |C - D|^2 = sum_e s^2 p_e (1 - p_e) + (1 - 1/u)^2 D_e^2 with the step s; worst with nearly every p_e = 1/2."""
    compressor = MaxNorm(q, "bound")
    rng = np.random.default_rng(q)
    for M in (1 + 2.0**-24, 3.0, rng.uniform(0.1, 10)):
        for half in (0.5, compressor.S // 2 + 0.5 if q > 2 else 0.5):
            D = np.append(np.full(50, min(half, compressor.S - 0.5) * M / compressor.S), M)
            u = compressor.scale(D)
            unit = compressor.compress(D, rng).step * u
            assert (u - 1 + 2.0**-52) * np.sum(D**2) >= D.size / 4 * unit**2  # the variance Fact 1 divides by
            a = D / unit
            p = a - np.floor(a)
            loss = np.sum((unit / u) ** 2 * p * (1 - p)) + (1 - 1 / u) ** 2 * np.sum(D**2)
            assert loss <= (1 - 1 / u + 2.0**-52) * np.sum(D**2)  # u is known to 2^-53


@pytest.mark.parametrize(
    ("kept", "sent"), [(0.01, 1), (0.07, 1), (0.08, 2), (0.3, 6), (0.33, 7), (0.99, 20), (1.0, 20)]
)
def test_top_k_sends_the_nearest_number_to_its_share_and_at_least_one(kept, sent):
    message = TopK(kept).compress(np.random.default_rng(0).standard_normal((4, 5)), np.random.default_rng(0))
    assert np.count_nonzero(message.values) == message.where.size == sent


@pytest.mark.parametrize("q", range(2, 32))
def test_the_scale_of_fact_1_is_the_papers_formula(q):
    rng = np.random.default_rng(q)
    for shape in ((1, 1), (7, 3), (40, 5)):
        D, S = rng.standard_normal(shape), 2 ** (q - 1) - 1
        u = 1 + D.size / (4 * S**2) * np.abs(D).max() ** 2 / np.square(D).sum()
        assert MaxNorm(q, "bound").scale(D) - 1 == pytest.approx(u - 1, rel=1e-6, abs=1e-15)


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
@given(st.one_of(matrices, extreme), every_width, st.sampled_from([1.0, 1.7, "bound"]), st.integers(0, 2**32))
def test_the_packed_quantized_message_is_what_is_counted_and_comes_back(D, q, u, seed):
    """From the counted bits alone, the receiver computes every value of the sender, to the last bit."""
    compressor = MaxNorm(q, u)
    message = compressor.compress(D, np.random.default_rng(seed))
    assert message.bits == q * D.size + 32
    packed = message.pack(single=True)
    assert 0 <= 8 * len(packed) - message.bits < 8
    assert packed == message.pack()
    again = compressor.unpack(packed, D.shape, single=True)
    assert again.step == message.step or math.isinf(message.step)
    assert (again.levels == message.levels).all()
    assert again.values.tobytes() == message.values.tobytes()
    assert again.values.shape == message.values.shape == D.shape


@pytest.mark.parametrize(
    "bad", [math.nan, -math.nan, math.inf, -math.inf, np.frombuffer(b"\1\0\0\0\0\0\xf8\xff", "<f8")[0], 1e300]
)
@pytest.mark.parametrize("compressor", [MaxNorm(2), MaxNorm(3, "bound"), MaxNorm(31), TopK(0.4), TopK(1.0)], ids=str)
def test_what_single_precision_cannot_hold_comes_back_as_it_is_used_too(compressor, bad):
    D = np.ones((3, 2))
    D[1, 1] = bad
    message = compressor.compress(D, np.random.default_rng(0))
    packed = message.pack(single=True)
    assert 0 <= 8 * len(packed) - message.bits < 8
    assert compressor.unpack(packed, D.shape, single=True).values.tobytes() == message.values.tobytes()
    assert not np.isfinite(message.values).all()


@checked
@given(st.one_of(matrices, extreme), st.floats(0.01, 1.0))
def test_top_k_message(D, kept):
    compressor = TopK(kept)
    message = compressor.compress(D, np.random.default_rng(0))
    k = compressor.entries(D.size)
    assert message.bits == k * (32 + max(1, (D.size - 1).bit_length()))
    packed = message.pack(single=True)
    assert 0 <= 8 * len(packed) - message.bits < 8
    assert compressor.unpack(packed, D.shape, single=True).values.tobytes() == message.values.tobytes()
    if np.abs(D).max() > 1e30 or np.abs(D)[D != 0].min(initial=1) < 2.0**-100:
        return  # out of the range of single precision, or of squares in double precision
    loss = np.square(message.values - D).sum()
    rounding = 2.0**-48 * np.square(message.values).sum()  # half a unit in the last place, 2^-24, of what is kept
    assert loss <= (1 - k / D.size) * np.square(D).sum() * (1 + 1e-9) + rounding  # delta = k / size
    dropped = np.sort(np.abs(D).ravel())[: D.size - k]
    assert loss == pytest.approx(np.square(dropped).sum(), rel=1e-9, abs=rounding)


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
        whole = isinstance(compressor, Identity)  # counted as single precision, computed in double
        packed = message.pack(single=not whole)
        assert whole or 8 * (len(packed) - 1) < message.bits <= 8 * len(packed)
        link.receive(compressor.unpack(packed, (10, 4), single=not whole))
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
        (lambda: MaxNorm(1), "q: must be an integer from 2 to 31, not 1"),
        (lambda: MaxNorm(32), "q: must be an integer from 2 to 31, not 32"),
        (lambda: MaxNorm(2.5), "q: must be an integer from 2 to 31, not 2.5"),
        (lambda: MaxNorm(3, 0.5), "u: must be a number of at least 1 or 'bound', not 0.5"),
        (lambda: MaxNorm(3, "best"), "u: must be a number of at least 1 or 'bound', not 'best'"),
        (lambda: TopK(0.0), "kept: must be a number greater than 0 and at most 1, not 0.0"),
        (lambda: TopK(2), "kept: must be a number greater than 0 and at most 1, not 2"),
    ],
)
def test_bad_parameters_are_told(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == message
