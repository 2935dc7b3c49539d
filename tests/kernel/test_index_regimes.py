"""Avatars and originals of many kinds and sizes, against the oracle's double loop."""

import numpy as np
import pytest
from kernel_problems import (
    REGIMES,
    TOLERANCES,
    Problem,
    assert_counts,
    loop,
    near_avatars,
    numpy_warnings_are_errors,
    problem_of,
    reference,
)

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("m", [1, 5, 700])
def test_every_regime_counts_as_the_double_loop(regime, m):
    problem = problem_of(regime, m, n=12)
    for tie_tolerance in TOLERANCES:
        expected = loop(problem, tie_tolerance)
        np.testing.assert_array_equal(reference(problem, tie_tolerance), expected)  # larger problems rely on it
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
    problem = near_avatars(rng, rng.normal(size=(900, ncp)), 15)
    assert_counts(problem, reference(problem))
    # permutations of one row: their distances from zero differ only by the order of the sum
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
