"""What must change no count: parts of the avatars, batches of originals, their order, saving and loading."""

import pickle

import numpy as np
import pytest
from kernel_problems import REGIMES, TOLERANCES, VARIED, loop, numpy_warnings_are_errors, problem_of, reference

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


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
def test_an_index_of_one_avatar_counts_it_on_the_right_side(regime, tie_tolerance):
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
