"""The Python interface: two DataFrames in, figures and counts out, on made-up and on real data."""

import json
import logging

import numpy as np
import oracle
import pandas as pd
import pytest
from chispa import assert_df_equality

from cloaking import CloakingError, local_cloaking
from cloaking.spark import plan


def line(spark, points, ids=None, **more):
    """A table of points on a line."""
    columns = {"id": range(len(points)) if ids is None else ids, "x": np.asarray(points, dtype=np.float64), **more}
    return spark.createDataFrame(pd.DataFrame(columns))


def test_figures_of_a_case_made_by_hand(spark):
    avatars = line(spark, [1, 10, 40, 31, -1, 19], ids=[0, 1, 2, 3, 8, 9])
    found = local_cloaking(line(spark, [0, 10, 20, 30]), avatars).summary
    # original 0: own 1, and -1 as near; 10: own equal; 20: own 40 at 20, 10, 31, 19 and 1 nearer; 30: own at 1
    assert [found.local_cloaking, found.min, found.max, found.mean] == [0.5, 0, 4, 1.25]
    assert found.hidden_rate == pytest.approx(100 * (1 - (1 / 2 + 1 + 0 + 1) / 4))
    assert (found.hidden_rate_ties_hide, found.hidden_rate_ties_expose) == (50.0, 25.0)
    assert (found.originals, found.avatars, found.components, found.originals_with_ties) == (4, 6, ("x",), 1)


@pytest.mark.parametrize(
    ("originals", "avatars", "median", "rate"),
    [
        ([0], [5], 0.0, 0.0),  # one avatar: the attacker cannot miss
        ([0, 10], [0, 10], 0.0, 0.0),
        ([0, 1, 5], [2, 2, 2], 2.0, 200 / 3),  # one of three equals
        ([0, 0], [1, 2], 0.5, 50.0),
        ([0, -10], [1, -1], 0.5, 25.0),
    ],
)
def test_the_figures_of_small_cases(spark, originals, avatars, median, rate):
    found = local_cloaking(line(spark, originals), line(spark, avatars)).summary
    assert found.local_cloaking == median
    assert found.hidden_rate == pytest.approx(rate)


def test_unlinked_avatars_count_and_are_told(spark):
    found = local_cloaking(line(spark, [0]), line(spark, [3, 1, 2, -3], ids=[0, 7, 8, 9])).summary
    assert (found.local_cloaking, found.avatars) == (3.0, 4)
    assert [notice.code for notice in found.warnings if "unlinked" in notice.code] == ["unlinked_avatars"]


def test_the_ways_to_say_the_link_give_one_result(spark):
    originals = spark.createDataFrame([("a", 1, 0.0), ("a", 2, 10.0), ("b", 1, 20.0)], "ward string, id int, x double")
    rows = [("a", 1, 11.0), ("a", 2, 2.0), ("b", 1, 20.0)]
    by_key = local_cloaking(originals, spark.createDataFrame(rows, originals.schema), id=["ward", "id"])
    renamed = spark.createDataFrame(rows, "w string, n int, x double")
    by_name = local_cloaking(originals, renamed, id=("ward", "id"), made_from=("w", "n"))
    assert_df_equality(by_key.counts, by_name.counts, ignore_row_order=True)
    found = {(row.ward, row.id): row.cloaking for row in by_key.counts.collect()}
    assert found == {("a", 1): 1, ("a", 2): 1, ("b", 1): 0}
    assert by_key.counts.columns == ["ward", "id", "closer", "tied", "cloaking"]

    single = line(spark, [0, 10, 20], ids=["u", "v", "w"])
    avatars = line(spark, [20, 11, 2], ids=[1, 2, 3])
    link = spark.createDataFrame([("u", 2), ("v", 3), ("w", 1)], "original_id string, avatar_id long")
    by_table = local_cloaking(single, avatars, link=link)
    assert {row.id: row.cloaking for row in by_table.counts.collect()} == {"u": 1, "v": 1, "w": 0}
    assert "unlinked_avatars" not in [notice.code for notice in by_table.summary.warnings]


def test_a_key_with_the_name_of_a_column_of_the_link_table_links(spark):
    table = line(spark, [0, 10]).withColumnRenamed("id", "original_id")
    link = spark.createDataFrame([(0, 1), (1, 0)], "original_id long, avatar_id long")
    found = local_cloaking(table, table, id="original_id", link=link).counts
    assert {row.original_id: row.cloaking for row in found.collect()} == {0: 1, 1: 1}


def test_the_same_table_on_both_sides_is_a_warning(spark):
    table = line(spark, [0, 1, 2])
    found = local_cloaking(table, table).summary
    assert found.local_cloaking == 0
    assert "same_table" in [notice.code for notice in found.warnings]


def test_shuffled_links_are_suspect(spark):
    values = np.arange(400.0)
    moved = np.random.default_rng(1).permutation(values)
    codes = [notice.code for notice in local_cloaking(line(spark, values), line(spark, moved)).summary.warnings]
    assert "link_suspect" in codes
    assert local_cloaking(line(spark, values), line(spark, values + 0.25)).summary.warnings == ()


def test_groups_are_summarised_apart_the_small_ones_and_null_together(spark):
    labels = ["a"] * 120 + ["b"] * 100 + ["c"] * 60 + [None] * 50
    points = np.arange(330.0)
    # b, c and null: two avatars nearer than the own, at 0.25 and 0.75
    avatars = line(spark, np.where(points < 120, points, points + 1.25))
    found = local_cloaking(line(spark, points, ward=labels), avatars, group_by="ward").summary
    assert {label: group.originals for label, group in found.groups.items()} == {"a": 120, "b": 100, "(other)": 110}
    assert {label: group.local_cloaking for label, group in found.groups.items()} == {"a": 0, "b": 2, "(other)": 2}
    assert found.originals == 330


def test_null_is_a_group_where_it_is_large_enough(spark):
    originals = line(spark, range(300), ward=["a"] * 150 + [None] * 150)
    found = local_cloaking(originals, line(spark, range(300)), group_by="ward").summary
    assert {label: group.originals for label, group in found.groups.items()} == {"a": 150, "(none)": 150}


def test_a_group_may_have_the_label_that_others_are_merged_under(spark):
    originals = line(spark, range(360), ward=["(other)"] * 130 + ["a"] * 120 + ["b"] * 60 + [None] * 50)
    found = local_cloaking(originals, line(spark, range(360)), group_by="ward").summary
    assert sum(group.originals for group in found.groups.values()) == 360
    assert found.groups["a"].originals == 120


def test_more_groups_than_are_told_apart_are_refused(spark, monkeypatch):
    monkeypatch.setattr(plan, "GROUPS", 2)
    wards = ["a"] * 100 + ["b"] * 100 + ["c"] * 100 + ["d"] * 50 + ["e"] * 50
    originals = line(spark, range(400), ward=wards)
    with pytest.raises(CloakingError, match="column 'ward' has more than the 2 groups"):
        local_cloaking(originals, line(spark, range(400)), group_by="ward")
    wards = [ward for ward in ("north", "south", "east", "west") for _ in range(100)] + ["small"] * 50
    with pytest.raises(CloakingError, match="more than the 2 groups"):
        local_cloaking(line(spark, range(450), ward=wards), line(spark, range(450)), group_by="ward")
    monkeypatch.setattr(plan, "GROUPS", 3)
    found = local_cloaking(originals, line(spark, range(400)), group_by="ward").summary
    assert {label: group.originals for label, group in found.groups.items()} == dict.fromkeys(
        ["a", "b", "c", "(other)"], 100
    )


def test_a_numeric_group_is_no_component(spark):
    found = local_cloaking(line(spark, range(5), age=[1, 2, 3, 4, 5]), line(spark, range(5)), group_by="age").summary
    assert found.components == ("x",)


@pytest.mark.parametrize(
    "options",
    [{"tie_tolerance": 1e-3}, {"tie_tolerance": -1e-12}, {"tie_tolerance": float("nan")}, {"strategy": "nonsense"}],
)
def test_an_option_out_of_range_is_refused_before_spark_is_asked(spark, options):
    with pytest.raises((CloakingError, ValueError), match=next(iter(options))):
        local_cloaking(line(spark, [0, 1]), line(spark, [0, 1]), **options)


def test_a_link_table_needs_a_key_of_one_column(spark):
    table = line(spark, [0, 1], ward=["a", "b"])
    link = spark.createDataFrame([(0, 0), (1, 1)], "original_id long, avatar_id long")
    with pytest.raises(CloakingError, match="link"):
        local_cloaking(table, table, id=["id", "ward"], link=link)


def test_one_line_a_stage_is_logged(spark, caplog):
    caplog.set_level(logging.INFO, "cloaking")
    local_cloaking(line(spark, [0, 1]), line(spark, [0, 1]))
    assert any("originals=2" in record.getMessage() for record in caplog.records)


def test_what_is_shown_of_a_result_are_its_figures(spark):
    shown = repr(local_cloaking(line(spark, [777333]), line(spark, [777333])))
    assert "hidden_rate=0.0" in shown
    assert "DataFrame" not in shown
    assert "777333" not in shown


@pytest.mark.parametrize(
    ("name", "avatars", "options"),
    [
        ("aids_famd_nf5", "aids_famd_nf5_avatars", {"ncp": 5}),
        ("aids_famd_nf5", "aids_famd_nf5_avatars_shuffled_mapped", {"made_from": "original_id", "ncp": 5}),
        ("wbcd_famd_nf2", "wbcd_famd_nf2_avatars", {}),
    ],
)
def test_real_data_give_their_known_counts_and_figures(spark, reference_data, name, avatars, options):
    known = pd.read_csv(reference_data / f"{name}_counts.csv")
    tables = [_real(spark, reference_data / table) for table in (f"{name}_originals", avatars)]
    found = local_cloaking(*tables, **options)

    expected = json.loads((reference_data / "expected.json").read_text())[name]
    figures = ["local_cloaking", "hidden_rate", "hidden_rate_ties_hide", "hidden_rate_ties_expose"]
    figures += ["originals_with_ties", "min", "max", "mean"]
    assert {key: getattr(found.summary, key) for key in figures} == pytest.approx(
        {key: expected[key] for key in figures}
    )
    assert {str(p): q for p, q in found.summary.quantiles.items()} == pytest.approx(expected["quantiles"])
    counts = found.counts.toPandas().sort_values("id")[["id", "closer", "tied", "cloaking"]]
    pd.testing.assert_frame_equal(counts.reset_index(drop=True), known.sort_values("id").reset_index(drop=True))
    assert "link_suspect" not in [notice.code for notice in found.summary.warnings]


def test_real_data_with_the_map_ignored_are_suspect(spark, reference_data):
    originals, shuffled = (
        pd.read_parquet(reference_data / f"aids_famd_nf5_{table}.parquet").assign(id=range(2139))
        for table in ("originals", "avatars_shuffled_mapped")
    )
    found = local_cloaking(spark.createDataFrame(originals), spark.createDataFrame(shuffled), ncp=5).summary
    assert found.local_cloaking == 1069
    assert found.hidden_rate == pytest.approx(99.8, abs=0.05)
    assert "link_suspect" in [notice.code for notice in found.warnings]


def _real(spark, path):
    if path.with_suffix(".parquet").exists():
        return spark.read.parquet(str(path.with_suffix(".parquet")))
    return spark.createDataFrame(pd.read_csv(path.with_suffix(".csv"), float_precision="round_trip"))


def test_random_tables_agree_with_the_double_loop(spark):
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(150, 4)).round(1), rng.normal(size=(180, 4)).round(1)
    names = [f"dim_{k}" for k in range(1, 5)]
    originals = spark.createDataFrame(pd.DataFrame(x, columns=names).assign(id=range(150)))
    avatars = spark.createDataFrame(pd.DataFrame(y, columns=names).assign(id=range(180)))
    found = local_cloaking(originals, avatars)
    closer, tied, cloaking = oracle.cloaking(y, x, range(150))
    counts = found.counts.toPandas().sort_values("id")
    np.testing.assert_array_equal(counts[["closer", "tied", "cloaking"]], np.column_stack([closer, tied, cloaking]))
    expected = oracle.figures(closer, tied)._asdict()
    assert {key: getattr(found.summary, key) for key in expected} == pytest.approx(expected)
