"""Ties by hand: what the tolerance makes equal, what the last bit decides, and grids in exact arithmetic."""

import numpy as np
import oracle
import pytest
from kernel_problems import SMALLEST, Problem, assert_counts, counts, numpy_warnings_are_errors, on_a_grid

pytestmark = numpy_warnings_are_errors


def test_a_tie_with_the_own_avatar_counts_as_within():
    assert counts([[0], [2]], [[1]], [[0]]) == ([0], [2])  # the original is their midpoint


def test_a_tie_broken_only_by_rounding_is_a_tie():
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


@pytest.mark.parametrize("original", [[7, 7], [0, 0], [1e9, -1e9], [1e300, 0], [SMALLEST, 0]])
def test_where_all_avatars_are_equal_all_tie(original):
    assert counts([[7, 7]] * 1000, [original], [[7, 7]]) == ([0], [1000])


def test_a_sum_runs_in_component_order():
    a = 2.0**-27  # 1 + a^2 is 1, but 4 a^2 + 1 is more
    avatars = [[1, a, a, a, a], [a, a, 1, a, a], [a, a, a, a, 1]]
    assert counts(avatars, [[0] * 5], [avatars[0]], tie_tolerance=0) == ([0], [2])
    assert counts(avatars, [[0] * 5], [avatars[2]], tie_tolerance=0) == ([2], [3])


@pytest.mark.parametrize("ncp", [1, 2, 4, 10])
@pytest.mark.parametrize("tie_tolerance", [0.0, 1e-12, 1e-9])
def test_integer_grids_count_as_exact_arithmetic_does(ncp, tie_tolerance):
    rng = np.random.default_rng(ncp)
    problem = on_a_grid(rng, rng.integers(-4, 5, size=(400, ncp)).astype(np.float64), 15)
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
