"""The index that is sent to the workers: jobs at once never meet each other's, and none fills the disk."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from pyspark import SparkFiles

from cloaking import local_cloaking
from cloaking.kernel.index import AvatarIndex
from cloaking.spark import broadcast

ROUNDS = 20


def table(spark, points):
    return spark.createDataFrame(pd.DataFrame({"id": np.arange(len(points)), "x": points, "y": points[::-1]}))


def pairs_of_sites(rng):
    """Two sites of 40 originals, the avatars of the one those of the other and some of its own."""
    first = rng.integers(0, 50, 40).astype(float)
    return [(first, first + rng.integers(-3, 4, 40)), (first[::-1].copy(), first + rng.integers(-3, 4, 40))]


def by_oracle(originals, avatars):
    x, y = (np.column_stack([points, points[::-1]]) for points in (originals, avatars))
    closer, tied, _ = oracle.cloaking(y, x)
    return {i: (int(a), int(b)) for i, (a, b) in enumerate(zip(closer, tied, strict=True))}


@pytest.fixture
def switched(monkeypatch):
    """Make two jobs that run at once both save their index before either goes on."""
    barrier, save = threading.Barrier(2), AvatarIndex.save

    def saved(index, path):
        save(index, path)
        barrier.wait(timeout=60)

    monkeypatch.setattr(AvatarIndex, "save", saved)


@pytest.mark.slow
def test_jobs_at_once_in_one_session_count_their_own_avatars(spark, switched):
    rng = np.random.default_rng(0)

    def measure(site):
        result = local_cloaking(table(spark, site[0]), table(spark, site[1]), strategy="broadcast")
        counts = {row.id: (row.closer, row.tied) for row in result.counts.collect()}
        return result.summary.local_cloaking, counts

    with ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS):
            sites = pairs_of_sites(rng)
            for site, (figure, counts) in zip(sites, pool.map(measure, sites), strict=True):
                expected = by_oracle(*site)
                assert counts == expected
                assert figure == np.median([sum(pair) for pair in expected.values()])


def shipped_bytes():
    folders = (broadcast._folder(), Path(SparkFiles.getRootDirectory()))
    return sum(file.stat().st_size for folder in folders for file in folder.glob("avatars-*"))


def test_a_result_that_is_gone_leaves_no_bytes_and_later_jobs_run(spark):
    originals, avatars = (table(spark, np.arange(200.0) + shift) for shift in (0, 0.25))
    result = local_cloaking(originals, avatars, strategy="broadcast")
    held = shipped_bytes()
    before = held
    for _ in range(3):
        result = local_cloaking(originals, avatars, strategy="broadcast")
        gc.collect()
        assert shipped_bytes() == held > 0
    assert before == held
    figure = result.summary.local_cloaking
    del result
    gc.collect()
    assert shipped_bytes() < held
    assert local_cloaking(originals, avatars, strategy="broadcast").summary.local_cloaking == figure


def test_counts_that_were_asked_for_can_be_run_when_their_result_is_gone(spark):
    originals, avatars = (table(spark, np.arange(20.0) + shift) for shift in (0, 0.25))
    nearest = local_cloaking(originals, avatars, strategy="broadcast").counts.where("cloaking >= 0").select("id")
    gc.collect()
    assert nearest.count() == 20


def test_coordinates_come_in_columns_where_the_session_has_arrow_off(spark, setting, monkeypatch):
    originals, avatars = (table(spark, np.arange(20.0) + shift) for shift in (0, 0.25))
    with setting("spark.sql.execution.arrow.pyspark.enabled", "false"):
        monkeypatch.setattr(type(originals), "collect", None)  # by which rows would come one by one
        from cloaking.spark.arrow import collected, matrix

        points = matrix(collected(avatars.select("x", "y")), ["x", "y"])
    assert points[:, 0].tolist() == [i + 0.25 for i in range(20)]
