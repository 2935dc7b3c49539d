"""What is suspect is told, and what is honest is not: each notice from tables made to have one fault."""

import numpy as np
import pandas as pd
import pytest

from cloaking import local_cloaking, measure
from cloaking.spark import warnings
from cloaking.spark.link import Columns


def codes(spark, originals, avatars, **options):
    """The codes of the warnings on two matrices, row by row."""
    tables = []
    for points in (originals, avatars):
        points = np.asarray(points, dtype=float)
        frame = pd.DataFrame(points, columns=[f"dim_{k}" for k in range(1, points.shape[1] + 1)])
        tables.append(spark.createDataFrame(frame.assign(id=np.arange(len(points)))))
    found = local_cloaking(*tables, **options)
    assert found.counts.count() == len(originals)  # the counts can be taken again, observed or not
    return {notice.code for notice in found.summary.warnings}


@pytest.fixture(scope="module")
def honest():
    """Originals, and avatars between two others near them."""
    rng = np.random.default_rng(3)
    originals = rng.normal(size=(300, 2))
    near = ((originals[:, None] - originals) ** 2).sum(axis=2).argsort(axis=1)[:, 1:9]
    pairs = near[np.arange(300)[:, None], rng.integers(0, 8, (300, 2))]
    weight = rng.uniform(0.2, 0.8, (300, 1))
    return originals, weight * originals[pairs[:, 0]] + (1 - weight) * originals[pairs[:, 1]]


def test_honest_tables_give_no_warning(spark, honest):
    assert codes(spark, *honest) == set()


@pytest.mark.parametrize("strategy", ["broadcast", "partition"])
def test_coordinates_far_from_the_origin_are_told(spark, honest, strategy):
    originals, avatars = honest
    assert codes(spark, originals + 1e7, avatars + 1e7, strategy=strategy, cell_rows=100) == {"far_from_origin"}
    assert codes(spark, originals + 1e7, avatars + 1e7, tie_tolerance=0) == set()


def test_few_different_rows_are_told(spark, honest):
    originals, avatars = np.round(honest[0]), np.round(honest[1])
    assert len(np.unique(originals, axis=0)) < 150
    assert "low_distinct" in codes(spark, originals, avatars + np.array([0.25, 0]))


def test_avatars_equal_to_their_originals_are_told(spark, honest):
    originals, avatars = honest
    some = np.where(np.arange(300)[:, None] < 31, originals, avatars)
    assert codes(spark, originals, some) == {"avatars_equal_originals"}
    assert codes(spark, originals, np.where(np.arange(300)[:, None] < 30, originals, avatars)) == set()


def test_avatars_that_repeat_others_are_told(spark, honest):
    originals, avatars = honest
    assert "repeated_avatars" in codes(spark, originals, avatars[np.arange(300) // 2 * 2])


def test_avatars_of_another_scale_are_told_by_component(spark, honest):
    originals, avatars = honest
    assert "avatars_out_of_range" in codes(spark, originals, avatars * [1, 4])
    columns = Columns(("id",), ("id",), ("height", "weight"))
    seen = {
        f"{side}_{end}_{k}": v for side in ("original", "own") for end, v in (("low", -1), ("high", 1)) for k in (0, 1)
    }
    seen |= {"rows": 10, "equal": 0, "coarse": 0, "originals": 10, "avatars": 10, "own_high_1": 2.5}
    [notice] = warnings.of_rows(seen, columns)
    assert "weight" in notice.message
    assert "height" not in notice.message


def test_stored_counts_do_not_take_the_warnings_away(command, spark, honest, parquet, tmp_path):
    originals, avatars = honest
    refs = [
        parquet(name, {"id": np.arange(300), "x": points[:, 0] + 1e7, "y": points[:, 1]})
        for name, points in (("originals", originals), ("avatars", avatars))
    ]
    options = ["--originals", refs[0], "--avatars", refs[1]]
    for counts in ([], ["--counts", f"parquet:{tmp_path}/counts"]):
        report = command(*options, *counts).report
        assert [warning["code"] for warning in report["warnings"]] == ["far_from_origin"]


def test_a_driver_that_is_never_told_says_so(spark, honest, monkeypatch):
    class Silent(measure.Observation):
        @property
        def get(self):
            raise TimeoutError

    monkeypatch.setattr(measure, "Observation", Silent)
    monkeypatch.setattr(measure, "OBSERVED_WITHIN", 0.1)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    assert "not_observed" in codes(spark, *honest)


@pytest.mark.parametrize(
    ("n", "far", "expected"),
    [(1, 1, False), (2, 2, False), (4, 4, True), (10, 1, False), (10, 5, False), (10, 6, True), (1000, 100, False)],
)
def test_the_bound_of_a_suspect_link_holds_for_small_tables(n, far, expected):
    # by hand, n KL(far / n, 0.1) against ln 1000 = 6.91: 2 ln 10 = 4.61, 4 ln 10 = 9.21, 10 KL(0.5) = 5.11, of 0.6 7.51
    assert bool(warnings.of_counts(n, far, 0)) is expected
