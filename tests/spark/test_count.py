"""Spark spreads the kernel without changing a count: the expected ones are made by hand or by the double loop."""

import numpy as np
import oracle
import pandas as pd
import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F

from cloaking import local_cloaking

COUNTS = "id long, closer long, tied long, cloaking long"

# Case -> originals, avatars (the first belong to the originals, row by row), closer and tied of each original.
BY_HAND = {
    "one original, one avatar": ([[0]], [[5]], [(0, 0)]),
    "own avatars equal to their originals": ([[0], [10]], [[0], [10]], [(0, 0), (0, 0)]),
    "an own avatar equal to its original, and another equal too": ([[0], [9]], [[0], [0]], [(0, 1), (0, 1)]),
    "all avatars equal": ([[0], [1], [5]], [[2], [2], [2]], [(0, 2), (0, 2), (0, 2)]),
    "an original in the middle of two avatars": ([[0], [-10]], [[1], [-1]], [(0, 1), (0, 0)]),
    "duplicate originals": ([[0], [0]], [[1], [2]], [(0, 0), (1, 0)]),
    "duplicates on both sides": ([[0], [0]], [[1], [1]], [(0, 1), (0, 1)]),
    "avatars of no original": ([[0]], [[3], [1], [2], [-3], [4]], [(2, 1)]),
    "a tie of different directions": ([[0, 0]], [[3, 4], [-5, 0], [0, 5], [4, -3], [1, 1], [6, 0]], [(1, 3)]),
    "forty components": (
        [[0] * 40],
        [[1] * 40, [6] + [0] * 39, [0] * 39 + [7], [2, 6] + [0] * 38],  # 40, 36, 49 and 40 from the original, squared
        [(1, 1)],
    ),
}


def table(spark, ids, points, names=None):
    points = np.asarray(points, dtype=np.float64)
    names = names or [f"dim_{k}" for k in range(1, points.shape[1] + 1)]
    return spark.createDataFrame(pd.DataFrame(points, columns=names).assign(id=np.asarray(ids, dtype=np.int64)))


def counted(originals, avatars, **options):
    """Closer and tied per id."""
    rows = local_cloaking(originals, avatars, **options).counts.collect()
    assert all(row.cloaking == row.closer + row.tied for row in rows)
    return {row.id: (row.closer, row.tied) for row in rows}


@pytest.mark.parametrize("case", BY_HAND)
def test_counts_by_hand(spark, case):
    originals, avatars, expected = BY_HAND[case]
    found = counted(table(spark, range(len(originals)), originals), table(spark, range(len(avatars)), avatars))
    assert found == dict(enumerate(expected))


def test_the_counts_hold_the_key_and_three_whole_numbers(spark):
    originals = table(spark, [7, 8], [[0], [-10]])
    found = local_cloaking(originals, table(spark, [8, 7], [[-1], [1]])).counts
    expected = spark.createDataFrame([(7, 0, 1, 1), (8, 0, 0, 0)], COUNTS)
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_the_own_avatar_is_the_one_with_the_key_not_the_one_in_the_row(spark):
    assert counted(table(spark, [1, 2], [[0], [10]]), table(spark, [2, 1], [[1], [9]])) == {1: (1, 0), 2: (1, 0)}


def test_a_key_that_a_double_would_round_stands_in_the_counts(spark):
    ids = [9007199254740993, 9007199254740992]
    found = local_cloaking(table(spark, ids, [[0], [0]]), table(spark, ids, [[1], [2]])).counts.collect()
    assert {row.id: row.cloaking for row in found} == {9007199254740993: 0, 9007199254740992: 1}


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_twelve_components_count_in_the_order_of_their_numbers(spark, order):
    names = sorted(f"dim_{k}" for k in range(1, 13))  # dim_1, dim_10, dim_11, dim_12, dim_2, ...
    points = {"original": dict.fromkeys(names, 0), "own": {"dim_2": 2}, "other": {"dim_10": 1, "dim_2": 1}}
    rows = {key: [{**points["original"], **point}[name] for name in names[order]] for key, point in points.items()}
    originals = table(spark, [1], [rows["original"]], names[order])
    avatars = table(spark, [1, 2], [rows["own"], rows["other"]], names[order])
    by_first_two = local_cloaking(originals, avatars, ncp=2)
    assert by_first_two.summary.components == ("dim_1", "dim_2")
    assert by_first_two.summary.local_cloaking == 1  # 1 is nearer than 2
    assert local_cloaking(originals, avatars, ncp=9).summary.local_cloaking == 1
    assert local_cloaking(originals, avatars).summary.components == tuple(f"dim_{k}" for k in range(1, 13))


def test_the_columns_of_the_avatars_may_stand_in_another_order(spark):
    originals = table(spark, [1], [[0, 0, 0]], ["x", "y", "z"])
    avatars = table(spark, [1, 2], [[0, 0, 3], [5, 9, 0]], ["z", "y", "x"])  # (3, 0, 0) and (0, 9, 5)
    assert counted(originals, avatars, components=["x", "z"]) == {1: (0, 0)}
    assert counted(originals, avatars, ncp=1) == {1: (1, 0)}


@pytest.mark.parametrize(
    "names", [["Dim. 1", "Dim. 2"], ["a b", "a`b"], ["avatar_1", "original_1"], ["group", "key_1"]]
)
def test_names_of_components_may_hold_anything(spark, names):
    originals = table(spark, [1], [[0, 0]], names)
    assert counted(originals, table(spark, [1, 2], [[3, 4], [5, 0]], names)) == {1: (0, 1)}


@pytest.fixture(scope="module")
def grid():
    """Originals, more avatars, the own avatar of each original, and the counts that the double loop gives."""
    rng = np.random.default_rng(7)
    originals, avatars = rng.integers(-3, 4, (60, 3)), rng.integers(-3, 4, (80, 3))
    own = rng.permutation(80)[:60]
    closer, tied, _ = oracle.cloaking(avatars, originals, own)
    assert tied.any()
    return originals, avatars, own, dict(enumerate(zip(closer.tolist(), tied.tolist(), strict=True)))


def keys_of(own, m):
    """The id of the original that each of m avatars was made from; the ids from 1000 up are of none."""
    keys = np.arange(1000, 1000 + m)
    keys[own] = np.arange(len(own))
    return keys


@pytest.mark.parametrize("shift", [0, 1, -1024, 2**20])
def test_a_shift_that_is_exact_changes_no_count(spark, grid, shift):
    originals, avatars, own, expected = grid
    found = counted(table(spark, range(60), originals + shift), table(spark, keys_of(own, 80), avatars + shift))
    assert found == expected


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_rows_and_of_avatars_changes_no_count(spark, grid, seed):
    originals, avatars, own, expected = grid
    rng, keys = np.random.default_rng(seed), keys_of(own, 80)
    left, right = rng.permutation(60), rng.permutation(80)
    assert counted(table(spark, left, originals[left]), table(spark, keys[right], avatars[right])) == expected


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 1), (5, 3), (7, 12)])
def test_partitions_and_tasks_change_no_count(spark, grid, partitions, tasks):
    originals, avatars, own, expected = grid
    tables = table(spark, range(60), originals), table(spark, keys_of(own, 80), avatars)
    assert counted(*(side.repartition(partitions) for side in tables), tasks=tasks) == expected


@pytest.mark.parametrize("options", [{"strategy": "broadcast"}, {"strategy": "partition", "cell_rows": 10}])
def test_the_strategy_changes_no_count(spark, grid, options):
    originals, avatars, own, expected = grid
    found = counted(table(spark, range(60), originals), table(spark, keys_of(own, 80), avatars), **options)
    assert found == expected


def test_whole_numbers_and_floats_count_as_doubles_do(spark, grid):
    originals, avatars, own, expected = grid
    columns = [F.col(f"dim_{k}").cast(kind) for k, kind in enumerate(("int", "float", "decimal(9,3)"), 1)]
    tables = [
        side.select("id", *columns)
        for side in (table(spark, range(60), originals), table(spark, keys_of(own, 80), avatars))
    ]
    assert counted(*tables) == expected


def test_the_tolerance_that_is_asked_for_is_used(spark):
    originals, avatars = table(spark, [1], [[3, 4]]), table(spark, [1, 2], [[3, 4 + 3e-5], [3, 4 + 2.5e-5]])
    assert counted(originals, avatars) == {1: (1, 0)}
    assert counted(originals, avatars, tie_tolerance=1e-6) == {1: (0, 1)}  # tau is 1e-6 * (5 + 5)
    with_rounding = table(spark, [1], [[0.3]]), table(spark, [1, 2], [[0.5], [0.1]])
    assert counted(*with_rounding) == {1: (0, 1)}
    assert counted(*with_rounding, tie_tolerance=0) == {1: (1, 0)}


def test_originals_of_several_batches_all_come_back(spark, setting):
    points = np.arange(250) % 17
    with setting("spark.sql.execution.arrow.maxRecordsPerBatch", "40"):
        found = counted(table(spark, range(250), points[:, None]), table(spark, range(250), points[:, None]), tasks=2)
    same = {value: int((points == value).sum()) - 1 for value in range(17)}
    assert found == {i: (0, same[value]) for i, value in enumerate(points.tolist())}
