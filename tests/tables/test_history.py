"""The history keeps one row per report and date; the same date replaces its row and no other."""

import json
from dataclasses import replace

import pytest
from report_examples import passing

from cloaking.errors import OutputError
from cloaking.results import PastRun
from cloaking.tables import history


def run(name="patients", run_date="2026-10-01", local_cloaking=11.0):
    one = passing()
    return replace(one, name=name, run_date=run_date, summary=replace(one.summary, local_cloaking=local_cloaking))


@pytest.fixture(params=["parquet", "orc", "table", "table made before", "lake", "lake made before"])
def ref(request, spark, tmp_path):
    """A folder, or the name of a table in a catalog; it does not exist yet, unless somebody made it before."""
    kind, *made = request.param.split(maxsplit=1)
    if kind in ("parquet", "orc"):
        yield f"{kind}:{tmp_path / 'history'}"
        return
    name = "history_of_runs" if kind == "table" else f"{request.getfixturevalue('lake')}.gold.history_of_runs"
    if made:
        columns = ", ".join(
            f"{one.name.upper()} {one.dataType.simpleString()}" for one in reversed(history.SCHEMA.fields)
        )
        using = "USING orc" if kind == "table" else ""
        spark.sql(f"CREATE TABLE {name} (remark string, {columns}) {using} PARTITIONED BY (run_date, name)")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def medians(spark, ref, name="patients"):
    return {past.run_date: past.local_cloaking for past in history.past(spark, ref, name)}


def test_there_is_no_past_before_the_first_run(spark, ref):
    assert history.past(spark, ref, "patients") == ()


def test_the_same_date_replaces_its_row_and_no_other(spark, ref):
    for one in (run(), run(run_date="2026-11-01"), run(name="staff", local_cloaking=3.0), run(local_cloaking=4.5)):
        history.record(spark, ref, one)
    assert medians(spark, ref) == {"2026-10-01": 4.5, "2026-11-01": 11.0}
    assert medians(spark, ref, "staff") == {"2026-10-01": 3.0}


def test_runs_come_back_oldest_first_with_their_band_and_verdict(spark, ref):
    for one in (run(run_date="2026-12-01"), run(run_date="2026-02-01")):
        history.record(spark, ref, one)
    found = history.past(spark, ref, "patients")
    quantiles = run().summary.quantiles
    assert [past.run_date for past in found] == ["2026-02-01", "2026-12-01"]
    assert {(past.p05, past.p95, past.verdict) for past in found} == {(quantiles[0.05], quantiles[0.95], run().verdict)}


def test_names_that_look_like_other_things_stay_names(spark, ref):
    names = ["007", "2026-01-01", "a/b=c", "ünï 'quoted' \U0001f600", "null", '${spark.master} \\ "x"; -- \n', "a}%2F"]
    for at, name in enumerate(names):
        history.record(spark, ref, run(name=name, local_cloaking=float(at)))
    for at, name in enumerate(names):
        assert medians(spark, ref, name) == {"2026-10-01": float(at)}


def test_a_row_holds_the_run_with_its_details_as_json(spark, tmp_path):
    ref, one = f"parquet:{tmp_path / 'history'}", run()
    history.record(spark, ref, one)
    row = spark.read.parquet(str(tmp_path / "history")).collect()[0]
    assert (row.run_id, row.hidden_rate, row.originals, row.ncp) == (
        one.run_id, one.summary.hidden_rate, one.summary.originals, one.summary.ncp
    )  # fmt: skip
    assert json.loads(row.versions) == dict(one.versions)
    assert [gate["metric"] for gate in json.loads(row.gates)] == [gate.metric for gate in one.gates]


@pytest.mark.parametrize(
    ("then", "now", "share", "said"),
    [
        ((11.0, 97.1482000467508), (11.0, 92.8938756428238), 0.04, ["the hidden rate fell from 97.1 to 92.9, by 4.4%"]),
        ((12.0, 97.0), (11.5, 97.0), 0.04, ["Local Cloaking fell from 12.0 to 11.5, by 4.2%"]),
        ((12.0, 97.04), (12.0, 97.01), 0.0, ["the hidden rate fell from 97.04 to 97.01, by 0.0%"]),
        ((12.0, 97.0), (12.0, 97.0), 0.0, []),
        ((0.0, 0.0), (0.0, 0.0), 0.0, []),
    ],
)
def test_a_figure_that_fell_by_more_than_the_share_is_told_with_what_it_was(then, now, share, said):
    summary = replace(passing().summary, local_cloaking=now[0], hidden_rate=now[1])
    past = [PastRun("2026-10-01", then[0], 1, 2, "pass", hidden_rate=then[1], ncp=summary.ncp)]
    found = [notice.message for notice in history.fell(past, summary, "2026-11-01", share)]
    assert found == [one.replace(" to ", " on 2026-10-01 to ") for one in said]


def test_what_cannot_be_written_is_one_line(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"^history 'parquet:.*cannot be written \([\w.]+\); look at "):
        history.record(spark, f"parquet:{tmp_path / 'file' / 'history'}", run())
