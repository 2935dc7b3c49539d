"""Distances a few units in the last place from the bound, where a product of matrices errs most."""

import numpy as np
import oracle
import pytest
from kernel_problems import Problem, assert_counts, counts, loop, numpy_warnings_are_errors, reference

pytestmark = numpy_warnings_are_errors


def _at_the_bounds(rng, offset, radius, free, tie_tolerance, n=8, copies=120):
    """Avatars at the lower and the upper bound of their original, and a few units in the last place around it.

    Originals lie `offset` from the origin; avatars differ from them only in the components `free`.
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
def test_without_tolerance_neighbouring_floats_far_from_the_origin_differ(offset, ncp):
    rng = np.random.default_rng(ncp)
    base = offset + rng.integers(0, 2, size=ncp)
    step = np.spacing(np.maximum(base, 1.0))
    avatars = base + rng.integers(-9, 10, size=(1_500, ncp)) * step
    problem = Problem(avatars, base + rng.integers(-3, 4, size=(20, ncp)) * step, rng.integers(1_500, size=20))
    assert_counts(problem, reference(problem, 0.0), tie_tolerance=0.0)


def test_a_bound_between_two_neighbouring_floats_divides_them():
    # in one component the distance is the coordinate: of 400 floats in a row, those before the own avatar are closer
    ladder = [1.0]
    for _ in range(399):
        ladder.append(float(np.nextafter(ladder[-1], 2)))
    for own in (0, 1, 200, 399):
        closer, within = counts([[value] for value in ladder], [[-2.0]], [[ladder[own]]], tie_tolerance=0)
        # a sum with 2 halves the ladder: pairs of floats share a distance, and so a count
        distances = [value + 2.0 for value in ladder]
        assert closer == [sum(distance < distances[own] for distance in distances)]
        assert within == [sum(distance <= distances[own] for distance in distances)]
