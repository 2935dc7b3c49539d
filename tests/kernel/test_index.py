"""The kernel's counts, against counts made by hand, the double loop and published data, never against itself."""

import os
import pickle
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloaking.kernel.index import AvatarIndex

HERE = Path(__file__).resolve().parents[1]
REFERENCE_DATA = Path(os.environ.get("CLOAKING_REFERENCE_DATA", HERE.parents[1] / "shared" / "data"))

LARGEST = np.finfo(np.float64).max
SMALLEST = 5e-324
TOLERANCES = (0.0, 1e-12, 1e-6)

repeatable = settings(derandomize=True, deadline=None, database=None)
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # numpy's: any finite input is ordinary


class Problem(NamedTuple):
    """Avatars (m, ncp), originals (n, ncp) and the row of each original's own avatar (n,)."""

    avatars: np.ndarray
    originals: np.ndarray
    own_rows: np.ndarray

    @property
    def own(self):
        return self.avatars[self.own_rows]


def counts(avatars, originals, own, **options):
    """Closer and within as lists, so that a claim reads on one line."""
    closer, within = AvatarIndex(np.array(avatars, dtype=np.float64)).count(
        np.array(originals, dtype=np.float64), np.array(own, dtype=np.float64), **options
    )
    return closer.tolist(), within.tolist()


def assert_counts(problem, expected, tie_tolerance=1e-12):
    """The kernel gives the expected counts, in the promised type, and leaves its input alone."""
    arrays = [problem.avatars.copy(), problem.originals.copy(), problem.own]
    kept = [array.copy() for array in arrays]
    avatars, originals, own = arrays
    found = AvatarIndex(avatars).count(originals, own, tie_tolerance=tie_tolerance)
    for name, actual, wanted in zip(("closer", "within"), found, expected, strict=True):
        assert actual.dtype == np.int64
        assert actual.shape == (len(originals),)
        np.testing.assert_array_equal(actual, wanted, err_msg=name)
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)


def loop(problem, tie_tolerance=1e-12):
    return oracle.count(problem.avatars, problem.originals, problem.own, tie_tolerance)


def reference(problem, tie_tolerance=1e-12):
    """The oracle's bounds; its loop over the avatars as numpy operations that round once each, in the same order."""
    closer, within = [], []
    for original, own in zip(problem.originals.tolist(), problem.own.tolist(), strict=True):
        bounds = oracle.bounds(original, own, tie_tolerance)
        squares = np.zeros(len(problem.avatars))
        with np.errstate(over="ignore", under="ignore"):
            for value, column in zip(bounds.original, problem.avatars.T, strict=True):
                squares = squares + np.square(value - np.ldexp(column, -bounds.exponent))
        closer.append(np.count_nonzero(squares < bounds.lower))
        within.append(np.count_nonzero(squares <= bounds.upper))
    return np.array(closer), np.array(within)


# ---------------------------------------------------------------------------------------------- counts made by hand


def test_avatars_nearer_than_the_own_are_closer_and_farther_ones_are_not_counted():
    avatars = [[0, 0], [0, 1], [3, 4], [6, 8]]  # 0, 1, 5 and 10 from the origin
    assert counts(avatars, [[0, 0]], [[3, 4]]) == ([2], [3])


def test_the_own_avatar_is_within_and_not_closer():
    assert counts([[3, 4], [6, 8]], [[0, 0]], [[3, 4]]) == ([0], [1])


def test_a_tie_with_the_own_avatar_counts_as_within():
    assert counts([[0], [2]], [[1]], [[0]]) == ([0], [2])  # the original is their midpoint


def test_a_tie_broken_by_rounding_alone_is_a_tie():
    assert 0.3 - 0.1 < 0.5 - 0.3  # both are 0.2 on paper
    assert counts([[0.1], [0.5]], [[0.3]], [[0.1]]) == ([0], [2])
    assert counts([[0.1], [0.5]], [[0.3]], [[0.5]]) == ([0], [2])


def test_without_tolerance_the_last_bit_decides():
    assert counts([[0.1], [0.5]], [[0.3]], [[0.1]], tie_tolerance=0) == ([0], [1])
    assert counts([[0.1], [0.5]], [[0.3]], [[0.5]], tie_tolerance=0) == ([1], [2])


def test_the_tolerance_is_relative_to_the_norms_of_the_original_and_its_own_avatar():
    # |x| + |own| is 10, tau is 1e-5, and the own avatar is 3e-5 away: 0 and 1.9 closer, 2.1, 3 and 3.9 tied.
    avatars = [[3, 4 + 1e-5 * step] for step in (0, 1.9, 2.1, 3, 3.9, 4.1)]
    assert counts(avatars, [[3, 4]], [avatars[3]], tie_tolerance=1e-6) == ([2], [5])


def test_an_own_avatar_equal_to_its_original_ties_with_what_rounding_can_explain():
    avatars = [[3, 4], [3, 4], [3, 4 + 5e-12], [3, 4 + 2e-11]]  # tau is 1e-11
    assert counts(avatars, [[3, 4]], [[3, 4]]) == ([0], [3])
    assert counts(avatars, [[3, 4]], [[3, 4]], tie_tolerance=0) == ([0], [2])


def test_nobody_is_closer_than_an_own_avatar_within_the_tolerance_of_its_original():
    assert counts([[3, 4], [3, 4 + 5e-6]], [[3, 4]], [[3, 4 + 5e-6]], tie_tolerance=1e-6) == ([0], [2])


def test_nobody_is_closer_than_an_own_avatar_exactly_as_far_as_the_tolerance():
    # |x| + |own| is 2^20 sqrt(3), so tau is d; (s - 2 d tau) + tau^2 would round to 4e-16, not to zero
    z = float.fromhex("0x1.bb67ae8583ecfp+19")
    avatars = [[-0.5, -0.5, -0.5, z], [0.5, 0.5, 0.5, z]]
    assert counts(avatars, avatars[:1], avatars[1:], tie_tolerance=2.0**-20) == ([0], [2])


def test_every_copy_of_an_avatar_counts():
    avatars = [[1]] * 4 + [[2]] * 3 + [[3]] * 5
    assert counts(avatars, [[0]], [[2]]) == ([4], [7])


def test_originals_that_are_equal_count_alike():
    avatars = [[1], [2], [3]]
    assert counts(avatars, [[0], [0], [0]], [[1], [3], [3]]) == ([0, 2, 2], [1, 3, 3])


@pytest.mark.parametrize("original", [[7, 7], [0, 0], [1e9, -1e9], [1e300, 0], [SMALLEST, 0]])
def test_where_all_avatars_are_equal_all_tie(original):
    assert counts([[7, 7]] * 1000, [original], [[7, 7]]) == ([0], [1000])


def test_one_avatar_is_its_originals_own():
    assert counts([[2, 3]], [[0, 0]], [[2, 3]]) == ([0], [1])


def test_there_may_be_more_originals_than_avatars_and_more_avatars_than_originals():
    avatars = [[1], [2], [4]]
    assert counts(avatars, [[0]], [[4]]) == ([2], [3])
    assert counts(avatars, [[0], [1], [3], [5], [9]], [[1], [4], [2], [1], [4]]) == ([0, 2, 0, 2, 0], [1, 3, 2, 3, 1])


def test_one_component_is_enough():
    avatars = [[value] for value in range(10)]
    assert counts(avatars, [[4.4]], [[7]]) == ([5], [6])  # 2 to 6 are nearer than 2.6


def test_forty_components_all_count():
    avatars = np.diag(np.arange(1.0, 41.0))  # avatar k is k away from the origin, along axis k
    closer, within = counts(avatars, np.zeros((40, 40)), avatars)
    assert closer == list(range(40))
    assert within == list(range(1, 41))


def test_a_sum_runs_in_component_order():
    a = 2.0**-27  # 1 + a^2 is 1, but 4 a^2 + 1 is more
    avatars = [[1, a, a, a, a], [a, a, 1, a, a], [a, a, a, a, 1]]
    assert counts(avatars, [[0] * 5], [avatars[0]], tie_tolerance=0) == ([0], [2])
    assert counts(avatars, [[0] * 5], [avatars[2]], tie_tolerance=0) == ([2], [3])


def test_minus_zero_is_zero():
    assert counts([[-0.0], [0.0], [1]], [[0.0]], [[-0.0]]) == ([0], [2])
    assert counts([[0.0, -0.0], [-0.0, 0.0]], [[-0.0, -0.0]], [[0.0, 0.0]]) == ([0], [2])


@pytest.mark.parametrize("power", [-1074, -1022, -540, -401, -400, -126, 0, 127, 400, 401, 512, 1020])
@pytest.mark.parametrize("tie_tolerance", TOLERANCES)
def test_multiples_of_any_float_count_as_the_integers_do(power, tie_tolerance):
    unit = 2.0**power
    avatars = [[unit * multiple] for multiple in (1, 2, 3, -1, 5)]  # 0, 1, 2, 2 and 4 from the original
    assert counts(avatars, [[unit]], [[3 * unit]], tie_tolerance=tie_tolerance) == ([2], [4])


def test_an_avatar_whose_sum_overflows_is_beyond():
    assert counts([[2.0], [1e200], [-1.7e308]], [[1.0]], [[2.0]]) == ([0], [1])
    assert counts([[3e-320], [1e300], [-1.7e308]], [[1e-320]], [[3e-320]]) == ([0], [1])


def test_the_largest_floats_count():
    assert counts([[-LARGEST], [0.0], [LARGEST]], [[LARGEST]], [[-LARGEST]]) == ([2], [3])


def test_the_unscaled_range_includes_its_ends():
    low, high = 2.0**-400, 2.0**400
    # 2^-540 squared underflows, unless the original is scaled up first
    for first, expected in ((low, ([0], [2])), (np.nextafter(low, 0), ([1], [2]))):
        avatars = [[first, 2.0**-540], [first, 2.0**-541]]
        assert counts(avatars, [[first, 0]], avatars[:1], tie_tolerance=0) == expected
    # 2^-200 squared does not underflow, unless the original is scaled down first
    for first, expected in ((high, ([1], [2])), (np.nextafter(high, np.inf), ([0], [2]))):
        avatars = [[first, 2.0**-200], [first, 2.0**-201]]
        assert counts(avatars, [[first, 0]], avatars[:1], tie_tolerance=0) == expected


def test_either_of_original_and_own_avatar_brings_both_into_range():
    assert counts([[2.0**-600], [2.0**-601], [1.0]], [[0.0]], [[1.0]]) == ([2], [3])
    assert counts([[2.0**-600], [2.0**-601], [1.0]], [[0.0]], [[2.0**-600]]) == ([1], [2])
    assert counts([[2.0**600], [2.0**599], [1.0]], [[0.0]], [[2.0**600]]) == ([2], [3])


def test_a_difference_whose_square_underflows_is_none_where_original_and_own_avatar_are_zero():
    assert counts([[0.0], [SMALLEST], [1e-170], [1e-150]], [[0.0]], [[0.0]]) == ([0], [3])


def test_no_originals_give_no_counts():
    closer, within = AvatarIndex(np.ones((4, 3))).count(np.empty((0, 3)), np.empty((0, 3)))
    assert closer.shape == within.shape == (0,)
    assert closer.dtype == within.dtype == np.int64


# ------------------------------------------------------------------------------- regimes, against the double loop


def _link(rng, avatars, n, noise=0.3):
    """n originals: most near an avatar, some equal to it; each with its own avatar, a quarter with any other one."""
    near = rng.integers(len(avatars), size=n)
    with np.errstate(over="ignore"):
        spread = np.minimum(np.abs(avatars).max(axis=0), LARGEST / 16) * noise
    moved = np.clip(rng.normal(size=(n, avatars.shape[1])), -3, 3) * spread
    moved[rng.random(n) < 0.2] = 0.0
    originals = np.clip(avatars[near] / 2 + moved / 2, -LARGEST / 2, LARGEST / 2) * 2
    own_rows = np.where(rng.random(n) < 0.25, rng.integers(len(avatars), size=n), near)
    return Problem(avatars, originals, own_rows)


def _on_a_grid(rng, avatars, n):
    """n originals drawn from the avatars' own values, each component on its own."""
    originals = rng.permuted(avatars, axis=0)[rng.integers(len(avatars), size=n)]
    return Problem(avatars, originals, rng.integers(len(avatars), size=n))


def _normal(scale=1.0, ncp=3):
    return lambda rng, m, n: _link(rng, rng.normal(size=(m, ncp)) * scale, n)


def _offset(offset, noise):
    def build(rng, m, n):
        return _link(rng, rng.normal(size=(m, 3)) + np.array(offset), n, noise)

    return build


def _grid(values, ncp, unit=1.0):
    return lambda rng, m, n: _on_a_grid(rng, rng.choice(np.array(values) * unit, size=(m, ncp)), n)


def _far_originals(distance):
    def build(rng, m, n):
        directions = rng.normal(size=(n, 3))
        return Problem(rng.normal(size=(m, 3)), distance * np.clip(directions, -1, 1), rng.integers(m, size=n))

    return build


def _mostly_equal(rng, m, n):
    avatars = rng.normal(size=(m, 3))
    avatars[rng.random(m) < 0.9] = avatars[0]
    return _link(rng, avatars, n)


def _mostly_nearly_equal(rng, m, n):
    """Avatars a few units in the last place apart, far from the origin, and one in ten elsewhere."""
    avatars = 1e8 + rng.integers(-4, 5, size=(m, 3)) * np.spacing(1e8)
    avatars[rng.random(m) < 0.1] += rng.normal(size=3)
    return _on_a_grid(rng, avatars, n)


def _signs(rng, shape):
    return rng.choice([-1.0, 1.0], size=shape)


def _any_magnitude(rng, m, n):
    avatars = _signs(rng, (m, 3)) * 10.0 ** rng.uniform(-160, 160, size=(m, 3))
    return _on_a_grid(rng, avatars, n)


def _a_magnitude_per_row(rng, m, n):
    avatars = rng.normal(size=(m, 3)) * 10.0 ** rng.uniform(-170, 170, size=(m, 1))
    return _link(rng, avatars, n)


def _heavy_tails(rng, m, n):
    return _link(rng, rng.standard_cauchy(size=(m, 3)) ** 3, n, noise=1e-6)


def _edges_of_the_range(rng, m, n):
    ends = [np.nextafter(end, side) for end in (2.0**-400, 2.0**400) for side in (0, end, np.inf)]
    values = [0.0, -0.0, SMALLEST, 2.0**-1022, 2.0**-540, 1e-160, 1.0, 1e160, 2.0**511, LARGEST, *ends]
    return _on_a_grid(rng, _signs(rng, (m, 2)) * rng.choice(values, size=(m, 2)), n)


def _on_a_sphere(rng, m, n):
    """The same coordinates in any order and with any sign: equal distances from zero but for rounding."""
    avatars = rng.permuted(np.tile(rng.normal(size=6), (m, 1)), axis=1) * _signs(rng, (m, 6))
    avatars[: m // 8, 0] *= 1 + 2.0**-50
    return Problem(avatars, np.zeros((n, 6)), rng.integers(m, size=n))


def _clusters(rng, m, n):
    return _link(rng, rng.choice([-1e15, 0.0, 1e6], size=(m, 3)) + rng.normal(size=(m, 3)), n, noise=1e-15)


def _on_a_line(rng, m, n):
    return _link(rng, rng.normal(size=(m, 1)) * np.array([1.0, -2.0, 3.0]), n, noise=1e-3)


def _categories(rng, m, n):
    avatars = np.column_stack([rng.integers(0, 2, size=(m, 4)) * [1.1, 0.7, 0.3, 2.9], rng.integers(0, 30, m) / 7])
    return _on_a_grid(rng, avatars, n)


def _midpoints(rng, m, n):
    """Originals halfway between two avatars, one of which is their own."""
    avatars = rng.normal(size=(m, 3)).astype(np.float32).astype(np.float64)
    own_rows, other = rng.integers(m, size=(2, n))
    return Problem(avatars, (avatars[own_rows] + avatars[other]) / 2, own_rows)


def _beyond(rng, m, n):
    avatars = rng.normal(size=(m, 3))
    avatars[: m // 2] *= 10.0 ** rng.uniform(150, 307, size=(m // 2, 1))
    return Problem(avatars, rng.normal(size=(n, 3)), rng.integers(m, size=n))


REGIMES = {
    "ordinary": _normal(),
    "one component": _normal(ncp=1),
    "forty components": _normal(ncp=40),
    "near 1e-160": _normal(1e-160),
    "near 1e160": _normal(1e160),
    "near 1e307": _normal(1e307),
    "squares too large for float32": _normal(1e30),
    "too large for float32": _normal(1e100),
    "squares too small for float32": _normal(1e-30),
    "too small for float32": _normal(1e-100),
    "components a million times larger": _normal(np.array([1e6, 1.0, 1e-6])),
    "components 1e30 times larger": _normal(np.array([1e-30, 1.0, 1e30])),
    "offset of 1e8 on one component": _offset([1e8, 0.0, 0.0], 1e-9),
    "offset of 1e8": _offset([1e8, -1e8, 1e8], 1e-9),
    "offset of 1e15": _offset([1e15, 0.0, 1e15], 1e-15),
    "subnormals": _grid(range(-6, 7), 3, SMALLEST),
    "signed zeros": _grid([-0.0, 0.0, 1.0, -1.0], 3),
    "all avatars equal": _grid([0.1], 3),
    "small grid": _grid(range(3), 3),
    "tenths": _grid(range(-9, 10), 2, 0.1),
    "grid of forty components": _grid([0.0, 1.0], 40),
    "originals 1e6 away": _far_originals(1e6),
    "originals 1e12 away": _far_originals(1e12),
    "originals 1e300 away": _far_originals(1e300),
    "nine in ten avatars equal": _mostly_equal,
    "nine in ten avatars nearly equal": _mostly_nearly_equal,
    "any magnitude": _any_magnitude,
    "a magnitude per row": _a_magnitude_per_row,
    "heavy tails": _heavy_tails,
    "edges of the range": _edges_of_the_range,
    "sphere": _on_a_sphere,
    "clusters": _clusters,
    "line": _on_a_line,
    "categories": _categories,
    "midpoints": _midpoints,
    "half of the avatars beyond": _beyond,
}


def problem_of(regime, m, n, seed=0):
    return REGIMES[regime](np.random.default_rng([seed, *regime.encode()]), m, n)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("m", [1, 5, 700])
def test_every_regime_counts_as_the_double_loop(regime, m):
    problem = problem_of(regime, m, n=12)
    for tie_tolerance in TOLERANCES:
        expected = loop(problem, tie_tolerance)
        np.testing.assert_array_equal(reference(problem, tie_tolerance), expected)  # which the larger ones rely on
        assert_counts(problem, expected, tie_tolerance)


@pytest.mark.parametrize("regime", REGIMES)
def test_every_regime_counts_as_the_definition_in_an_index_of_several_levels(regime):
    problem = problem_of(regime, m=1_500 if "forty" in regime else 20_000, n=40)
    for tie_tolerance in TOLERANCES:
        assert_counts(problem, reference(problem, tie_tolerance), tie_tolerance)


@pytest.mark.parametrize("m", [*range(1, 10), *(2**power + step for power in range(4, 13) for step in (-1, 0, 1))])
def test_no_number_of_avatars_is_special(m):
    for regime in ("ordinary", "small grid"):
        problem = problem_of(regime, m, n=9)
        assert_counts(problem, reference(problem))


@pytest.mark.parametrize("ncp", range(1, 41))
def test_no_number_of_components_is_special(ncp):
    rng = np.random.default_rng(ncp)
    problem = _link(rng, rng.normal(size=(900, ncp)), 15)
    assert_counts(problem, reference(problem))
    # permutations of one row: their distances from zero differ by the order of the sum alone
    avatars = rng.permuted(np.tile(rng.normal(size=ncp), (900, 1)), axis=1)
    problem = Problem(avatars, np.zeros((15, ncp)), np.arange(15))
    assert_counts(problem, reference(problem, 0.0), tie_tolerance=0.0)


def test_shuffled_own_avatars_of_many_originals_count_as_the_definition():
    rng = np.random.default_rng(3)
    problem = problem_of("ordinary", m=20_000, n=4_000)
    problem = problem._replace(own_rows=rng.permutation(20_000)[:4_000])  # whole levels of the index inside a ball
    closer, within = AvatarIndex(problem.avatars).count(problem.originals, problem.own)
    sample = rng.choice(4_000, size=200, replace=False)
    expected = reference(problem._replace(originals=problem.originals[sample], own_rows=problem.own_rows[sample]))
    np.testing.assert_array_equal((closer[sample], within[sample]), expected)


# ------------------------------------------------------------------------- where a product of matrices is most wrong


def _at_the_bounds(rng, offset, radius, free, tie_tolerance, n=8, copies=120):
    """Avatars at the lower and the upper bound of their original, and a few units in the last place around it.

    Originals lie `offset` from the origin; avatars differ from them in the components `free` alone.
    """
    ncp = len(offset)
    originals = np.array(offset) + np.isin(np.arange(ncp), free) * rng.normal(size=(n, ncp)) * radius
    avatars, own_rows = [], []
    for original in originals:
        directions = np.zeros((copies, ncp))
        directions[:, free] = rng.normal(size=(copies, len(free)))
        directions /= np.sqrt(np.square(directions).sum(axis=1, keepdims=True))
        own = original + directions[0] * radius
        bounds = oracle.bounds(original.tolist(), own.tolist(), tie_tolerance)
        reach = np.where(np.arange(copies) % 2, np.sqrt(bounds.upper), np.sqrt(max(bounds.lower, 0.0)))
        reach = np.ldexp(reach, bounds.exponent)
        around = original + directions * reach[:, None]
        steps = rng.integers(-2, 3, size=around.shape) * np.isin(np.arange(ncp), free)
        own_rows.append(len(avatars))
        avatars.extend([own, *(around + steps * np.spacing(around))])
    return Problem(np.array(avatars), originals, np.array(own_rows))


@pytest.mark.parametrize("tie_tolerance", [0.0, 1e-15, 1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize(
    ("offset", "radius", "free"),
    [
        ([0.0, 0.0, 0.0], 1.0, [0, 1, 2]),
        ([1e6, 0.0, 0.0], 3.0, [1, 2]),  # the tolerance of 1e-6 is as wide as the radius, and the last bit decides
        ([1e6, 0.0, 0.0], 1e-3, [1, 2]),
        ([1.1e6, -2.3e6, 3.7e6, 0.0, 0.0], 9.0, [3, 4]),  # and so does the order of the sum in the norms
        ([1.3e3, -2.1e3, 3.3e3, 7.7e2, 9.1e2, 0.0], 0.009, [5]),
        ([1e8, 1e8, 1e8], 1.0, [0, 1, 2]),
        ([1e8, -1e8, 1e8], 1e-6, [0, 1, 2]),
        ([1e12, 1.0, -1e12], 0.01, [0, 1, 2]),
        ([1e15, 1e15], 4.0, [0, 1]),
        ([3e7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 100.0, [1, 3, 4, 5, 6, 7, 8]),
        ([1e158, 0.0, 0.0], 3e152, [1, 2]),
        ([1e-154, 0.0, 0.0], 3e-160, [1, 2]),
    ],
)
def test_distances_at_the_bound_are_decided_by_the_last_bit(offset, radius, free, tie_tolerance):
    rng = np.random.default_rng(len(offset))
    problem = _at_the_bounds(rng, offset, radius, free, tie_tolerance)
    assert_counts(problem, loop(problem, tie_tolerance), tie_tolerance)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("ncp", [1, 2, 5, 20])
def test_neighbouring_floats_far_from_the_origin_are_told_apart_without_tolerance(offset, ncp):
    rng = np.random.default_rng(ncp)
    base = offset + rng.integers(0, 2, size=ncp)
    step = np.spacing(np.maximum(base, 1.0))
    avatars = base + rng.integers(-9, 10, size=(1_500, ncp)) * step
    problem = Problem(avatars, base + rng.integers(-3, 4, size=(20, ncp)) * step, rng.integers(1_500, size=20))
    assert_counts(problem, reference(problem, 0.0), tie_tolerance=0.0)


def test_a_bound_between_two_neighbouring_floats_divides_them():
    # in one component the distance is the coordinate: of 400 floats in a row, those before the own one are closer
    ladder = [1.0]
    for _ in range(399):
        ladder.append(float(np.nextafter(ladder[-1], 2)))
    for own in (0, 1, 200, 399):
        closer, within = counts([[value] for value in ladder], [[-2.0]], [[ladder[own]]], tie_tolerance=0)
        # a sum with 2 halves the ladder: pairs of floats share a distance, and so a count
        distances = [value + 2.0 for value in ladder]
        assert closer == [sum(distance < distances[own] for distance in distances)]
        assert within == [sum(distance <= distances[own] for distance in distances)]


# --------------------------------------------------------------------------------------- exact arithmetic on grids


@pytest.mark.parametrize("ncp", [1, 2, 4, 10])
@pytest.mark.parametrize("tie_tolerance", [0.0, 1e-12, 1e-9])
def test_integer_grids_count_as_exact_arithmetic_does(ncp, tie_tolerance):
    rng = np.random.default_rng(ncp)
    problem = _on_a_grid(rng, rng.integers(-4, 5, size=(400, ncp)).astype(np.float64), 15)
    expected = oracle.exact_count(problem.avatars, problem.originals, problem.own)
    assert_counts(problem, expected, tie_tolerance)
    for unit in (2.0**-1070, 2.0**-450, 2.0**450, 2.0**1000):
        scaled = problem._replace(avatars=problem.avatars * unit, originals=problem.originals * unit)
        assert_counts(scaled, expected, tie_tolerance)


def test_halves_and_thirds_tie_as_exact_arithmetic_says():
    # thirds are not floats: on paper these are ties, in floats the tolerance makes them so
    rng = np.random.default_rng(4)
    thirds, shift = rng.integers(-6, 7, size=(500, 2)), rng.integers(-6, 7, size=(20, 2))
    own_rows = rng.integers(500, size=20)
    expected = oracle.exact_count(thirds, shift, thirds[own_rows])
    assert_counts(Problem(thirds / 3, shift / 3, own_rows), expected)
    assert_counts(Problem(thirds / 3 + 100, shift / 3 + 100, own_rows), expected)


# ------------------------------------------------------------------------------------------- what must not matter


VARIED = ("ordinary", "small grid", "nine in ten avatars equal", "a magnitude per row", "edges of the range", "sphere")


@pytest.mark.parametrize("regime", VARIED)
def test_counts_over_disjoint_sets_of_avatars_add_up(regime):
    problem = problem_of(regime, m=3_000, n=50)
    part_of = np.random.default_rng(5).integers(4, size=3_000)
    part_of[problem.own_rows[0]] = 4  # a part of one
    totals = np.zeros((2, 50), dtype=np.int64)
    for part in range(5):
        index = AvatarIndex(problem.avatars[part_of == part])
        here = part_of[problem.own_rows] == part
        totals += index.count(problem.originals, problem.own, own_in_index=here)
    np.testing.assert_array_equal(totals, reference(problem))


@pytest.mark.parametrize("regime", ["ordinary", "offset of 1e8", "nine in ten avatars nearly equal", "tenths"])
@pytest.mark.parametrize("tie_tolerance", TOLERANCES)
def test_each_avatar_alone_is_counted_on_the_right_side(regime, tie_tolerance):
    problem = problem_of(regime, m=25, n=12)
    totals = np.zeros((2, 12), dtype=np.int64)
    for row in range(25):
        index = AvatarIndex(problem.avatars[row : row + 1])
        totals += index.count(problem.originals, problem.own, tie_tolerance, own_in_index=problem.own_rows == row)
    np.testing.assert_array_equal(totals, loop(problem, tie_tolerance))


@pytest.mark.parametrize("regime", REGIMES)
def test_leaving_open_where_the_own_avatar_is_changes_no_count(regime):
    problem = problem_of(regime, m=1_000, n=30)
    index = AvatarIndex(problem.avatars)
    for own_in_index in (False, np.arange(30) % 2 == 0, [True] * 30):
        found = index.count(problem.originals, problem.own, own_in_index=own_in_index)
        np.testing.assert_array_equal(found, reference(problem))


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("regime", VARIED)
def test_any_batch_of_originals_gives_the_same(regime, size):
    problem = problem_of(regime, m=2_000, n=150)
    index = AvatarIndex(problem.avatars)
    order = np.random.default_rng(6).permutation(150)
    found = np.zeros((2, 150), dtype=np.int64)
    for start in range(0, 150, size):
        batch = order[start : start + size]
        found[:, batch] = index.count(problem.originals[batch], problem.own[batch])
    np.testing.assert_array_equal(found, reference(problem))


@pytest.mark.parametrize("regime", VARIED)
def test_the_order_of_the_avatars_does_not_matter(regime):
    problem = problem_of(regime, m=2_000, n=40)
    expected = reference(problem)
    by_first_component = np.argsort(problem.avatars[:, 0])
    for order in (by_first_component, by_first_component[::-1], np.random.default_rng(7).permutation(2_000)):
        np.testing.assert_array_equal(
            AvatarIndex(problem.avatars[order]).count(problem.originals, problem.own), expected
        )


@pytest.mark.parametrize("power", [-900, -300, -20, 20, 300, 900])
@pytest.mark.parametrize("regime", ["ordinary", "small grid", "sphere", "midpoints"])
def test_a_change_of_unit_by_a_power_of_two_changes_no_count(regime, power):
    problem = problem_of(regime, m=2_000, n=40)
    expected = reference(problem)
    unit = 2.0**power
    assert_counts(Problem(problem.avatars * unit, problem.originals * unit, problem.own_rows), expected)


def test_an_index_counts_again_and_again():
    problem, other = problem_of("ordinary", m=1_000, n=30), problem_of("a magnitude per row", m=1_000, n=30)
    index = AvatarIndex(problem.avatars)
    first = index.count(problem.originals, problem.own)
    index.count(other.originals, other.own, own_in_index=False)
    index.count(problem.originals, problem.own, tie_tolerance=0)
    np.testing.assert_array_equal(index.count(problem.originals, problem.own), first)
    np.testing.assert_array_equal(first, reference(problem))


def test_an_index_can_be_sent_to_another_process():
    problem = problem_of("nine in ten avatars equal", m=3_000, n=30)
    index = pickle.loads(pickle.dumps(AvatarIndex(problem.avatars)))
    np.testing.assert_array_equal(index.count(problem.originals, problem.own), reference(problem))


def test_an_index_saved_and_mapped_into_memory_counts_the_same(tmp_path):
    for regime in ("ordinary", "nine in ten avatars equal", "a magnitude per row"):
        problem = problem_of(regime, m=3_000, n=30)
        AvatarIndex(problem.avatars).save(tmp_path / "index.npy")
        index = AvatarIndex.load(tmp_path / "index.npy")
        np.testing.assert_array_equal(index.count(problem.originals, problem.own), reference(problem))


# -------------------------------------------------------------------------------------- how the arrays may come in


def _fortran(array):
    return np.asfortranarray(array)


def _every_other(array):
    wide = np.full((2 * len(array), 2 * array.shape[1]), np.nan)
    wide[::2, ::2] = array
    return wide[::2, ::2]


def _backwards(array):
    return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]


def _unaligned(array):
    buffer = bytearray(array.nbytes + 1)
    view = np.frombuffer(buffer, dtype=np.float64, offset=1, count=array.size).reshape(array.shape)
    view[:] = array
    return view


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _other_byte_order(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.parametrize("layout", [_fortran, _every_other, _backwards, _unaligned, _read_only, _other_byte_order])
@pytest.mark.parametrize("regime", ["ordinary", "small grid", "a magnitude per row"])
def test_the_layout_in_memory_does_not_matter(layout, regime):
    problem = problem_of(regime, m=1_500, n=40)
    avatars, originals, own = (layout(array) for array in (problem.avatars, problem.originals, problem.own))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), reference(problem))


def test_read_only_memory_maps_are_counted(tmp_path):
    problem = problem_of("ordinary", m=1_500, n=40)
    maps = []
    for name, array in zip(
        ("avatars", "originals", "own"), (problem.avatars, problem.originals, problem.own), strict=True
    ):
        np.save(tmp_path / f"{name}.npy", array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    np.testing.assert_array_equal(AvatarIndex(maps[0]).count(maps[1], maps[2]), reference(problem))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint8"])
def test_other_numbers_are_converted_exactly(dtype):
    rng = np.random.default_rng(8)
    values = rng.integers(0, 6, size=(1_200, 3)) if "int" in dtype else rng.normal(size=(1_200, 3))
    avatars = values.astype(dtype)
    originals, own_rows = avatars[rng.integers(1_200, size=30)][:, ::-1], rng.integers(1_200, size=30)
    expected = reference(Problem(avatars.astype(np.float64), originals.astype(np.float64), own_rows))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, avatars[own_rows]), expected)


def test_a_float32_is_not_the_float64_of_the_same_text():
    index = AvatarIndex(np.array([[0.1], [0.3]], dtype=np.float32))  # 1.5e-9 above 0.1, 1.2e-8 above 0.3
    originals, own = np.array([[0.2]]), np.array([[0.3]], dtype=np.float32)
    closer, within = index.count(originals, own)
    assert (closer.tolist(), within.tolist()) == ([1], [2])
    closer, within = index.count(originals, own, tie_tolerance=1e-6)
    assert (closer.tolist(), within.tolist()) == ([0], [2])


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_count_up_to_2_53(sign):
    largest = sign * 2**53
    index = AvatarIndex(np.array([[largest], [largest - sign], [0]]))
    closer, within = index.count(np.array([[largest]]), np.array([[largest - sign]]), tie_tolerance=0)
    assert (closer.tolist(), within.tolist()) == ([1], [2])


# ------------------------------------------------------------------------------------------------- what is refused


def _count_with(name, array):
    """Count three avatars of two components, with one of the three arrays replaced."""
    arrays = {"avatars": np.eye(3, 2), "originals": np.zeros((3, 2)), "own": np.eye(3, 2)} | {name: array}
    AvatarIndex(arrays["avatars"]).count(arrays["originals"], arrays["own"])


ARRAYS = ("avatars", "originals", "own")


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_with_the_array_and_the_number_of_rows(name, bad):
    array = np.eye(3, 2)
    array[0] = bad  # two in one row
    array[2, 1] = bad
    with pytest.raises(ValueError, match=rf"\b{name}\b") as refused:
        _count_with(name, array)
    assert re.search(r"\b2\b", str(refused.value))
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        _count_with(name, array.astype(np.float32))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "beyond",
    [
        np.array(2**53 + 1),
        np.array(-(2**53) - 1),
        np.array(2**63 - 1),
        np.array(-(2**63)),
        np.array(2**64 - 1, dtype=np.uint64),
    ],
    ids=str,
)
def test_integers_that_float64_would_round_are_refused(name, beyond):
    array = np.zeros((3, 2), dtype=beyond.dtype)
    array[1:, 0] = beyond
    with pytest.raises(ValueError, match=rf"\b{name}\b") as refused:
        _count_with(name, array)
    assert re.search(r"\b2\b", str(refused.value))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("dtype", ["U8", "S8", "O", "M8[ns]", "complex128"])
def test_what_is_not_a_number_is_refused(name, dtype):
    with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
        _count_with(name, np.ones((3, 2), dtype="int64").astype(dtype))


@pytest.mark.parametrize(
    ("avatars", "originals", "own"),
    [
        ((4, 3), (2, 2), (2, 2)),
        ((4, 3), (2, 3), (2, 2)),
        ((4, 3), (2, 2), (2, 3)),
        ((4, 3), (2, 3), (3, 3)),
        ((4, 3), (2, 3), (1, 3)),
        ((4, 3), (2, 1), (2, 1)),
        ((4, 3), (3,), (3,)),
        ((4, 3), (2, 3), (3,)),
        ((4,), (2, 1), (2, 1)),
        ((4, 3, 1), (2, 3), (2, 3)),
        ((4, 3), (2, 3, 1), (2, 3, 1)),
        ((), (2, 1), (2, 1)),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused(avatars, originals, own):
    with pytest.raises(ValueError, match=r"avatars|originals|own"):
        AvatarIndex(np.ones(avatars)).count(np.ones(originals), np.ones(own))


@pytest.mark.parametrize("tie_tolerance", [-1e-15, -1.0, np.nextafter(1e-6, 1), 1.0, np.inf, np.nan])
def test_a_tolerance_outside_0_to_a_millionth_is_refused(tie_tolerance):
    with pytest.raises(ValueError, match="tie_tolerance"):
        counts([[0], [1]], [[0]], [[1]], tie_tolerance=tie_tolerance)


@pytest.mark.parametrize("flags", [[True], [True] * 3, [[True, True]], np.ones((2, 2), dtype=bool)], ids=str)
def test_one_flag_too_few_or_too_many_is_refused(flags):
    with pytest.raises(ValueError, match="own_in_index"):
        counts([[0], [1]], [[0], [1]], [[1], [1]], own_in_index=flags)


@pytest.mark.parametrize("unit", [1.0, 2.0**-1070, 2.0**900], ids=["ordinary", "subnormal", "huge"])
@pytest.mark.parametrize("copies", [1, 1_000])
def test_an_own_avatar_said_to_be_in_the_index_and_missing_is_refused(unit, copies):
    index = AvatarIndex(np.array([[1.0], [2.0], [9.0]] * copies) * unit)
    originals, own = np.zeros((3, 1)), np.array([[9.0], [5.0], [2.0]]) * unit
    with pytest.raises(ValueError, match=r"\bown\b"):
        index.count(originals, own)
    with pytest.raises(ValueError, match=r"\bown\b"):
        index.count(originals, own, own_in_index=[False, True, False])
    closer, within = index.count(originals, own, own_in_index=[True, False, True])
    assert closer.tolist() == [2 * copies, 2 * copies, copies]
    assert within.tolist() == [3 * copies, 2 * copies, 2 * copies]


# --------------------------------------------------------------------------------------------------- any small input


EDGES = [0.0, -0.0, SMALLEST, -SMALLEST, 2.0**-1022, 2.0**-401, 2.0**-400, np.nextafter(2.0**-400, 0), 1e-160, 1e-45]
EDGES += [2.0**400, np.nextafter(2.0**400, np.inf), -(2.0**401), 1e160, -1e160, 1e30, -1e39, LARGEST, -LARGEST, 1.0]
VALUES = st.sampled_from(
    [
        st.integers(-3, 3).map(float),
        st.integers(-20, 20).map(lambda tenths: tenths / 10),
        st.integers(-4, 4).map(lambda ulps: 1 + ulps * 2.0**-52),
        st.integers(-4, 4).map(lambda ulps: 1e8 + ulps * 2.0**-26),
        st.integers(-50, 50).map(lambda multiple: multiple * SMALLEST),
        st.floats(-10, 10),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(EDGES),
        st.one_of(st.sampled_from(EDGES), st.integers(-3, 3).map(float), st.floats(-1, 1)),
    ]
)


@st.composite
def problems(draw):
    """A few rows from one kind of values, with copies of avatars and originals that are avatars."""
    values = draw(VALUES)
    row = st.tuples(*[values] * draw(st.integers(1, 6)))
    distinct = draw(st.lists(row, min_size=1, max_size=10))
    avatars = distinct + draw(st.lists(st.sampled_from(distinct), max_size=10))
    originals = draw(st.lists(st.one_of(row, st.sampled_from(avatars)), min_size=1, max_size=6))
    own_rows = draw(st.lists(st.integers(0, len(avatars) - 1), min_size=len(originals), max_size=len(originals)))
    return Problem(np.array(avatars), np.array(originals), np.array(own_rows))


@settings(repeatable, max_examples=600)
@given(problem=problems(), tie_tolerance=st.sampled_from([*TOLERANCES, 1e-9, 1e-15, 1e-300, SMALLEST]))
def test_any_small_input_counts_as_the_double_loop(problem, tie_tolerance):
    assert_counts(problem, loop(problem, tie_tolerance), tie_tolerance)


@settings(repeatable, max_examples=60)
@given(
    regime=st.sampled_from([name for name in REGIMES if "forty" not in name]),
    m=st.integers(1, 6_000),
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    tie_tolerance=st.sampled_from([*TOLERANCES, 1e-9]),
)
def test_any_size_of_any_regime_counts_as_the_definition(regime, m, n, seed, tie_tolerance):
    problem = problem_of(regime, m, n, seed)
    assert_counts(problem, reference(problem, tie_tolerance), tie_tolerance)


@settings(repeatable, max_examples=60)
@given(problem=problems(), cut=st.integers(1, 19))
def test_any_cut_of_the_avatars_in_two_adds_up(problem, cut):
    cut = min(cut, len(problem.avatars) - 1)
    parts = [slice(0, cut), slice(cut, None)] if cut else [slice(None)]
    totals = np.zeros((2, len(problem.originals)), dtype=np.int64)
    for part in parts:
        here = np.isin(problem.own_rows, np.arange(len(problem.avatars))[part])
        totals += AvatarIndex(problem.avatars[part]).count(problem.originals, problem.own, own_in_index=here)
    np.testing.assert_array_equal(totals, loop(problem))


# --------------------------------------------------------------------------------------------------------- real data


def test_the_sample_has_its_counts():
    originals, avatars = (
        pd.read_parquet(HERE / "data" / f"wine_{side}.parquet").set_index("id").filter(like="dim_")
        for side in ("originals", "avatars")
    )
    known = pd.read_csv(HERE / "data" / "wine_counts.csv", index_col="id").loc[originals.index]
    own = avatars.loc[originals.index].to_numpy()
    closer, within = AvatarIndex(avatars.to_numpy()).count(originals.to_numpy(), own)
    np.testing.assert_array_equal(np.column_stack([closer, within - closer - 1, within - 1]), known)


@pytest.mark.parametrize("name", ["aids_famd_nf5", "wbcd_famd_nf2"])
def test_real_data_have_their_known_counts(name):
    if not REFERENCE_DATA.is_dir():
        pytest.skip(f"no reference data in {REFERENCE_DATA}; CLOAKING_REFERENCE_DATA names the folder")
    originals, avatars, known = (
        _table(f"{name}_{part}").set_index("id").sort_index() for part in ("originals", "avatars", "counts")
    )
    known = known[["closer", "tied", "cloaking"]].to_numpy()
    avatars, originals = avatars.to_numpy(), originals.to_numpy()
    index = AvatarIndex(avatars)
    for rows in (slice(None), slice(100, 300), slice(0, None, 7)):
        closer, within = index.count(originals[rows], avatars[rows])
        found = np.column_stack([closer, within - closer - 1, within - 1])
        np.testing.assert_array_equal(found, known[rows])


def _table(name):
    parquet = REFERENCE_DATA / f"{name}.parquet"
    if parquet.exists():
        return pd.read_parquet(parquet)
    return pd.read_csv(REFERENCE_DATA / f"{name}.csv", float_precision="round_trip")
