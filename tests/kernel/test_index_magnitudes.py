"""Magnitudes from the smallest to the largest floats, where squares overflow or underflow unless they are scaled."""

import numpy as np
import oracle
import pytest
from kernel_problems import (
    LARGEST,
    SMALLEST,
    TOLERANCES,
    Problem,
    assert_counts,
    counts,
    numpy_warnings_are_errors,
    problem_of,
    reference,
)

from cloaking.kernel import index

pytestmark = numpy_warnings_are_errors


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


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e160, 5e-324, 1e307])
@pytest.mark.parametrize("tie_tolerance", [0.0, 1e-12, 1e-6])
def test_bounds_are_those_of_the_definition(scale, tie_tolerance):
    rng = np.random.default_rng(8)
    originals, own = (rng.integers(-9, 10, size=(50, 4)) * scale for _ in range(2))
    own[:10] = originals[:10]
    exponents, lower, upper = index.bounds(originals, own, tie_tolerance)
    for i, (x, y) in enumerate(zip(originals.tolist(), own.tolist(), strict=True)):
        bounds = oracle.bounds(x, y, tie_tolerance)
        assert (exponents[i], lower[i], upper[i]) == (bounds.exponent, bounds.lower, bounds.upper)


@pytest.mark.parametrize("power", [-900, -300, -20, 20, 300, 900])
@pytest.mark.parametrize("regime", ["ordinary", "small grid", "sphere", "midpoints"])
def test_a_change_of_unit_by_a_power_of_two_changes_no_count(regime, power):
    problem = problem_of(regime, m=2_000, n=40)
    expected = reference(problem)
    unit = 2.0**power
    assert_counts(Problem(problem.avatars * unit, problem.originals * unit, problem.own_rows), expected)
