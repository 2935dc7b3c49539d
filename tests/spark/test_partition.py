"""Cutting space into cells changes no count: partition equals the double loop, and broadcast at sizes beyond it."""

import numpy as np
import oracle
import pandas as pd
import pytest
from cell_regimes import REGIMES
from chispa import assert_df_equality
from pyspark.sql import functions as F

from cloaking import local_cloaking
from cloaking.options import Options
from cloaking.spark import partition
from cloaking.spark.plan import spread

ROWS = 300


def tables(spark, originals, avatars):
    """Return both tables; the first avatars were made from the originals, row by row."""
    names = [f"dim_{k}" for k in range(1, originals.shape[1] + 1)]
    return [
        spark.createDataFrame(pd.DataFrame(points, columns=names).assign(id=np.arange(len(points))))
        for points in (originals, avatars)
    ]


def counts(originals, avatars, **options):
    """Return the closer and tied of each original, by id."""
    rows = local_cloaking(originals, avatars, **options).counts.collect()
    assert len({row.id for row in rows}) == len(rows) == originals.count()
    return [(row.closer, row.tied) for row in sorted(rows)]


def by_the_double_loop(originals, avatars):
    closer, within = oracle.count(avatars.tolist(), originals.tolist(), avatars[: len(originals)].tolist())
    return [(c, w - 1 - c) for c, w in zip(closer, within, strict=True)]


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.__name__)
def test_cells_of_any_shape_give_the_counts_of_the_double_loop(spark, regime):
    rng = np.random.default_rng(5)
    avatars = regime(rng)[rng.permutation(2_000)[:ROWS]]
    originals = avatars[rng.permutation(ROWS)] + rng.choice([0.0, 0.1, 1.0], size=(ROWS, 1))
    found = counts(*tables(spark, originals, avatars), strategy="partition", cell_rows=20)
    assert found == by_the_double_loop(originals, avatars)


def test_originals_far_beyond_the_usual_range_visit_every_cell(spark):
    rng = np.random.default_rng(6)
    avatars = rng.normal(size=(100, 2))
    originals = avatars[:60] + rng.normal(size=(60, 2))
    originals[:10] *= 1e200
    found = counts(*tables(spark, originals, avatars), strategy="partition", cell_rows=20)
    assert found == by_the_double_loop(originals, avatars)


def test_a_shuffled_link_with_balls_around_whole_cells_gives_the_counts_of_the_double_loop(spark):
    rng = np.random.default_rng(7)
    originals = rng.integers(-4, 5, size=(ROWS, 2)).astype(float)
    avatars = originals[rng.permutation(ROWS)]
    found = counts(*tables(spark, originals, avatars), strategy="partition", cell_rows=15)
    assert found == by_the_double_loop(originals, avatars)


def test_cells_that_a_poor_sample_left_too_large_are_split(spark, monkeypatch, caplog):
    monkeypatch.setattr(partition, "SAMPLED_PER_CELL", 2)
    caplog.set_level("INFO", "cloaking")
    rng = np.random.default_rng(8)
    avatars = rng.normal(size=(ROWS, 2))
    avatars[: ROWS // 2] = avatars[0]
    originals = avatars + rng.choice([0.0, 1.0], size=(ROWS, 1))
    found = counts(*tables(spark, originals, avatars), strategy="partition", cell_rows=30)
    assert found == by_the_double_loop(originals, avatars)
    assert any("cells:" in line and "split=0" not in line for line in caplog.messages)


def test_composite_keys_of_text_and_dates_survive(spark):
    rng = np.random.default_rng(9)
    points = rng.normal(size=(80, 2))
    frames = [
        frame.select(
            F.concat(F.lit("p"), F.col("id") % 7).alias("site"),
            F.date_add(F.lit("2020-01-01"), F.col("id").cast("int")).alias("day"),
            "dim_1",
            "dim_2",
        )
        for frame in tables(spark, points, points[::-1])
    ]
    options = {"id": ["site", "day"], "cell_rows": 10}
    one, other = (local_cloaking(*frames, strategy=how, **options).counts for how in ("partition", "broadcast"))
    assert_df_equality(one, other, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize(("mib", "strategy"), [(1, "partition"), (2, "broadcast")])
def test_auto_broadcasts_up_to_the_limit(spark, mib, strategy):
    rows = 2 * 2**20 // (8 * 4)  # 2 MiB of 4 components
    assert spread(spark, 10, rows, 4, Options(broadcast_limit=mib)).strategy == strategy


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "shuffled"), [(200_000, False), (40_000, True)], ids=["honest link", "shuffled link"])
def test_partition_equals_broadcast_on_large_tables(spark, rows, shuffled):
    rng, ncp = np.random.default_rng(10), 3
    originals = (3 * rng.normal(size=(40, ncp)))[rng.integers(40, size=rows)] + rng.normal(size=(rows, ncp))
    avatars = originals + rng.normal(size=(rows, ncp)) * 0.05
    avatars[: rows // 10] = avatars[0]  # equal ones
    avatars[rows // 10 : rows // 5, 0] = np.round(avatars[rows // 10 : rows // 5, 0])  # on borders
    frames = tables(spark, originals, avatars[rng.permutation(rows)] if shuffled else avatars)
    parts = [local_cloaking(*frames, strategy=how, cell_rows=rows // 22) for how in ("partition", "broadcast")]
    one, other = (part.counts.toPandas().sort_values("id", ignore_index=True) for part in parts)
    pd.testing.assert_frame_equal(one, other)
    assert len(one) == rows
