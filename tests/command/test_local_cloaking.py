"""The command: tables in, report and exit code out; nothing is left behind where it fails."""

import datetime
import json
import logging
import re
from dataclasses import replace

import numpy as np
import oracle
import pandas as pd
import pyspark
import pytest

from cloaking.errors import OutputError
from cloaking.tables import text_files

# The cloaking of 0, 10, 20 and 30 is 1 (a tie), 0, 4 and 0: median 0.5, one of two is guessed for the first.
ORIGINALS = {"id": [1, 2, 3, 4], "x": [0.0, 10.0, 20.0, 30.0]}
AVATARS = {"id": [1, 2, 3, 4, 8, 9], "x": [1.0, 10.0, 40.0, 31.0, -1.0, 19.0]}
CLOAKING = {1: (0, 1), 2: (0, 0), 3: (4, 0), 4: (0, 0)}
HIDDEN_RATE = 37.5


@pytest.fixture
def pair(parquet):
    """The options that name two good tables."""
    return ["--originals", parquet("originals", ORIGINALS), "--avatars", parquet("avatars", AVATARS)]


def rows_of(spark, ref):
    kind, path = ref.split(":", 1)
    return spark.read.format(kind).load(path)


def test_a_run_without_a_gate_reports_and_gives_0(command, pair):
    done = command(*pair)
    assert done.code == 0
    report = done.report
    assert report["schema_version"] == 1
    assert (report["local_cloaking"], report["hidden_rate"]) == (0.5, HIDDEN_RATE)
    assert (report["hidden_rate_ties_hide"], report["hidden_rate_ties_expose"]) == (50.0, 25.0)
    assert (report["originals"], report["avatars"], report["ncp"], report["components"]) == (4, 6, 1, ["x"])
    assert (report["verdict"], report["gates"], report["groups"]) == ("no gate", [], [])
    assert report["inputs"] == [{"ref": pair[1], "rows": 4}, {"ref": pair[3], "rows": 6}]
    assert report["name"] == pair[1]
    assert "unlinked_avatars" in [warning["code"] for warning in report["warnings"]]
    assert report["link"] == {"kind": "key", "columns": ["id"]}
    assert report["originals_with_ties"] == 1
    assert report["interval"] == {"level": 0.875, "low": 0.0, "high": 4.0}


def test_the_report_has_the_documented_keys(command, pair):
    report = command(*pair).report
    keys = [
        "schema_version",
        "run_id",
        "name",
        "run_at",
        "run_date",
        "local_cloaking",
        "hidden_rate",
        "hidden_rate_ties_hide",
        "hidden_rate_ties_expose",
        "originals",
        "avatars",
        "ncp",
        "components",
        "cloaking",
        "originals_with_ties",
        "groups",
        "verdict",
        "gates",
        "warnings",
        "inputs",
        "link",
        "interval",
        "explained_variance",
        "parameters",
        "versions",
        "strategy",
        "seconds",
    ]
    assert set(keys) <= set(report)
    assert {"mean", "min", "max", "quantiles", "classes"} <= set(report["cloaking"])
    assert list(report["cloaking"]["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert [c["from"] for c in report["cloaking"]["classes"]] == [0, 1, 2, 3, 5, 10, 20, 50, 100]
    assert [c["to"] for c in report["cloaking"]["classes"]] == [0, 1, 2, 4, 9, 19, 49, 99, None]
    assert [c["originals"] for c in report["cloaking"]["classes"]] == [2, 1, 0, 1, 0, 0, 0, 0, 0]
    assert set(report["seconds"]) == {"session", "checks", "count", "write", "total"}
    run_at = datetime.datetime.fromisoformat(report["run_at"])
    assert run_at.utcoffset() == datetime.timedelta(0)
    assert report["run_date"] == run_at.date().isoformat()
    assert {"cloaking", "python", "spark", "numpy"} <= set(report["versions"])


def test_the_date_is_that_of_the_start_where_a_run_lasts_past_midnight(command, pair, monkeypatch):
    import time

    from cloaking.command import inputs

    class Clock(datetime.datetime):
        """A clock of which the tables are read a second after midnight."""

        midnight = False

        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 2, 0, 0, 1, tzinfo=tz) if cls.midnight else cls(2026, 11, 1, 23, 59, 59, tzinfo=tz)

    def read(*arguments):
        Clock.midnight = True
        return reading(*arguments)

    reading = inputs.read
    monkeypatch.setattr(inputs, "read", read)
    monkeypatch.setattr(datetime, "datetime", Clock)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    done = command(*pair)
    assert (done.code, done.report["run_date"]) == (0, "2026-11-01")
    assert done.report["run_at"] == "2026-11-01T23:59:59+00:00"


def test_options_find_their_way_into_the_report(command, pair):
    report = command(*pair, "--name", "patients", "--run-date", "2026-02-28", "--tasks", "3").report
    assert (report["name"], report["run_date"]) == ("patients", "2026-02-28")
    assert report["parameters"]["tasks"] == 3
    assert report["parameters"]["id"] == ["id"]
    assert report["parameters"]["tie_tolerance"] == 1e-12


def test_spark_settings_stay_out_of_the_report(command, pair):
    assert "swordfish" not in json.dumps(command(*pair, "--conf", "spark.hadoop.fs.s3a.secret.key=swordfish").report)


@pytest.mark.parametrize(
    ("gates", "code", "verdict", "met"),
    [
        (["--min-local-cloaking", "0.5"], 0, "pass", [True]),
        (["--min-local-cloaking", "0.6"], 3, "fail", [False]),
        (["--min-hidden-rate", "37.5"], 0, "pass", [True]),
        (["--min-hidden-rate", "37.6", "--min-local-cloaking", "0"], 3, "fail", [True, False]),
    ],
)
def test_the_gate_decides_and_the_report_is_written_either_way(command, pair, gates, code, verdict, met):
    done = command(*pair, *gates)
    assert (done.code, done.report["verdict"]) == (code, verdict)
    assert [gate["met"] for gate in done.report["gates"]] == met
    for gate in done.report["gates"]:
        assert (gate["operator"], gate["value"]) == (">=", done.report[gate["metric"]])


def test_a_gate_that_is_not_met_keeps_the_counts(command, pair, tmp_path, spark):
    counts = f"parquet:{tmp_path}/counts"
    assert command(*pair, "--min-hidden-rate", "99", "--counts", counts).code == 3
    assert rows_of(spark, counts).count() == 4


def test_the_closing_line_says_the_result(command, pair, caplog, tmp_path):
    caplog.set_level(logging.INFO, "cloaking")
    command(*pair, "--min-local-cloaking", "0.5")
    line = caplog.messages[-1]
    wanted = "local_cloaking=0.5 hidden_rate=37.50 originals=4 avatars=6 ncp=1 verdict=pass seconds="
    assert line.startswith(wanted)
    assert re.fullmatch(rf"\d+(\.\d+)? report={tmp_path}/report/report.json", line.removeprefix(wanted))
    assert any("unlinked_avatars" in message for message in caplog.messages)


@pytest.mark.parametrize(("value", "shown"), [(11.0, "11"), (0.5, "0.5"), (1234567.5, "1234567.5"), (5e6, "5000000")])
def test_the_closing_line_rounds_no_median(command, pair, caplog, monkeypatch, value, shown):
    from cloaking import measure

    real = measure.measure

    def measured(*args):
        found = real(*args)
        return replace(found, summary=replace(found.summary, local_cloaking=value))

    monkeypatch.setattr(measure, "measure", measured)
    caplog.set_level(logging.INFO, "cloaking")
    command(*pair)
    assert caplog.messages[-1].startswith(f"local_cloaking={shown} ")


def test_the_report_of_the_next_run_replaces_the_last(command, pair, tmp_path):
    first, second = command(*pair), command(*pair, "--name", "second")
    assert (first.report["name"], second.report["name"]) == (pair[1], "second")
    assert first.report["run_id"] != second.report["run_id"]
    assert not [entry.name for entry in (tmp_path / "report").iterdir() if entry.name.startswith(".")]


def test_counts_are_written_where_asked_and_read_back_equal(command, pair, tmp_path, spark):
    counts = f"parquet:{tmp_path}/counts"
    assert command(*pair, "--counts", counts).report["local_cloaking"] == 0.5
    table = rows_of(spark, counts)
    assert table.dtypes == [("id", "bigint"), ("closer", "bigint"), ("tied", "bigint"), ("cloaking", "bigint")]
    assert {row.id: (row.closer, row.tied) for row in table.collect()} == CLOAKING


def test_existing_counts_are_refused_before_anything_is_done_unless_they_may_be_replaced(
    command, pair, tmp_path, parquet, spark
):
    counts = parquet("counts", {"old": [1]})
    done = command(*pair, "--counts", counts)
    assert (done.code, done.report) == (2, None)
    assert "--overwrite" in done.problems[-1]
    assert rows_of(spark, counts).columns == ["old"]
    folder = f"parquet:{tmp_path}/folder"
    assert command(*pair, "--counts", folder).code == 0
    assert command(*pair, "--counts", folder, "--where-avatars", "id <= 4", "--overwrite").code == 0
    assert {row.id: row.cloaking for row in rows_of(spark, folder).collect()} == {1: 0, 2: 0, 3: 3, 4: 0}


@pytest.mark.parametrize("kind", ["parquet:{}/counts", "counts_of_a_failed_run"])
def test_counts_are_removed_where_a_later_step_fails(command, pair, tmp_path, kind, spark, monkeypatch, caplog):

    def full(*_):
        raise OutputError("--output: no space left")

    monkeypatch.setattr(text_files, "into", full)
    done = command(*pair, "--counts", kind.format(tmp_path))
    assert done.code == 2
    assert done.problems[-1] == "local-cloaking: --output: no space left"
    assert "removed again" in caplog.text
    assert not (tmp_path / "counts").exists()
    assert not spark.catalog.tableExists("counts_of_a_failed_run")


@pytest.mark.parametrize("kind", ["parquet:{}/counts", "counts_of_last_month"])
@pytest.mark.parametrize("failing", ["to_json", "into"])
def test_the_earlier_counts_and_report_stand_where_a_later_step_fails(
    command, pair, tmp_path, kind, failing, spark, monkeypatch, caplog
):
    from cloaking import report
    from cloaking.tables import read

    def broken(*_):
        raise ZeroDivisionError("meant")

    def rows():
        return sorted(read.read_table(spark, kind.format(tmp_path), "counts").collect())

    counts = ["--counts", kind.format(tmp_path), "--overwrite"]
    first = command(*pair, *counts).report
    before = rows()
    page = (tmp_path / "report" / "report.html").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(report if failing == "to_json" else text_files, failing, broken)
        done = command(*pair, *counts, "--where-avatars", "id <= 4")
    assert (done.code, done.report) == (1, first)
    assert rows() == before
    assert (tmp_path / "report" / "report.html").read_bytes() == page
    assert f"counts '{kind.format(tmp_path)}': removed again, since a later step failed; the earlier one" in caplog.text
    assert command(*pair, *counts, "--where-avatars", "id <= 4").code == 0
    assert rows() != before
    assert not [path for path in tmp_path.rglob(".*") if path.suffix != ".crc"]
    assert not [table.name for table in spark.catalog.listTables() if "counts_of_last_month_" in table.name]
    spark.sql("DROP TABLE IF EXISTS counts_of_last_month")


def test_a_column_that_the_tables_are_partitioned_by_is_a_component_only_where_it_is_named(command, tmp_path, spark):
    for name, columns in (("o", ORIGINALS), ("a", {key: AVATARS[key] for key in ORIGINALS})):
        rows = spark.createDataFrame(pd.DataFrame(columns)).selectExpr("*", "id % 2 AS site")
        rows.write.partitionBy("site").parquet(str(tmp_path / "run" / "x=5" / name))
    pair = [f"--{side}=parquet:{tmp_path}/run/x=5/{side[0]}" for side in ("originals", "avatars")]
    assert command(*pair).report["components"] == ["x"]
    assert command(*pair, "--components", "x,site").report["components"] == ["x", "site"]


def test_each_rule_is_told_with_its_operator_and_what_was_measured(command, pair, caplog):
    command(*pair, "--min-local-cloaking", "0.5", "--min-hidden-rate", "37.6")
    told = [(record.levelname, record.message) for record in caplog.records if record.message.startswith("gate ")]
    assert told == [
        ("INFO", "gate met: local_cloaking >= 0.5, measured 0.5"),
        ("WARNING", "gate not met: hidden_rate >= 37.6, measured 37.5"),
    ]


def test_counts_and_history_whose_path_is_a_pattern_are_refused(command, pair, tmp_path):
    for option in ("--counts", "--history"):
        done = command(*pair, option, f"parquet:{tmp_path}/d[1]")
        assert done.code == 2
        assert "may contain none of" in done.problems[-1]


def test_counts_never_take_the_place_of_an_input_by_another_name(command, pair, tmp_path, spark):
    pattern = pair[1].replace("originals.parquet", "orig*.parquet")
    done = command("--originals", pattern, *pair[2:], "--counts", pair[1], "--overwrite")
    assert done.code == 2
    assert "overlaps one of the tables to read" in done.problems[-1]
    spark.sql("CREATE OR REPLACE VIEW viewed_counts AS SELECT 1 AS one")
    done = command(*pair, "--counts", "viewed_counts", "--overwrite")
    assert (done.code, done.problems[-1].partition(": ")[2]) == (2, "counts 'viewed_counts': is a view; name a table")
    assert spark.sql("SHOW VIEWS LIKE 'viewed_counts'").count() == 1
    spark.sql("DROP VIEW viewed_counts")


def test_settings_that_a_running_spark_does_not_take_are_told(command, pair, caplog):
    assert command(*pair, "--dry-run", "--conf", "spark.sql.shuffle.partitions=7").code == 0
    assert "Spark runs already, so these settings change nothing: spark.sql.shuffle.partitions" in caplog.messages


def test_a_folder_that_takes_no_report_is_refused_before_anything_is_counted(command, pair, tmp_path):
    (tmp_path / "file").write_text("")
    done = command(*pair, "--counts", f"parquet:{tmp_path}/counts", output=tmp_path / "file")
    assert done.code == 2
    assert "--output" in done.problems[-1]
    assert not any("counted:" in line or "checked:" in line for line in done.problems)
    assert not (tmp_path / "counts").exists()


def test_a_bug_is_a_traceback_and_1_and_leaves_nothing(command, pair, tmp_path, monkeypatch):

    def broken(*_):
        raise ZeroDivisionError("meant")

    monkeypatch.setattr(text_files, "into", broken)
    done = command(*pair, "--counts", f"parquet:{tmp_path}/counts")
    assert (done.code, done.report) == (1, None)
    assert any("Traceback" in line for line in done.problems)
    assert not (tmp_path / "counts").exists()


def test_an_older_report_stands_where_the_next_one_cannot_be_written(command, pair, monkeypatch):

    first = command(*pair).report

    def full(*_):
        raise OutputError("--output: no space left")

    monkeypatch.setattr(text_files, "into", full)
    done = command(*pair)
    assert (done.code, done.report) == (2, first)


def test_counts_never_take_the_place_of_an_input(command, pair, tmp_path, spark):
    (tmp_path / "folder").mkdir()
    ref = f"parquet:{(tmp_path / 'originals.parquet').rename(tmp_path / 'folder' / 'part.parquet').parent}"
    done = command("--originals", ref, *pair[2:], "--counts", ref, "--overwrite")
    assert done.code == 2
    assert rows_of(spark, ref).columns == ["id", "x"]


def test_a_dry_run_checks_and_writes_nothing(command, pair, tmp_path):
    done = command(*pair, "--dry-run", "--counts", f"parquet:{tmp_path}/counts")
    assert (done.code, done.report) == (0, None)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["avatars.parquet", "originals.parquet"]
    for word in (pair[1], pair[3], "4 rows", "6 rows", "x", "task"):
        assert word in done.out


def test_a_dry_run_computes_no_distance(command, pair, monkeypatch):
    from cloaking.kernel import index

    monkeypatch.setattr(index.AvatarIndex, "__init__", None)
    assert command(*pair, "--dry-run", output=None).code == 0


def test_a_dry_run_finds_what_is_wrong(command, parquet):
    originals = parquet("originals", {"id": [1, 1], "x": [0.0, np.nan]})
    done = command("--originals", originals, "--avatars", originals, "--dry-run", output=None)
    assert done.code == 2
    assert len(done.problems) >= 2


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--nonsense"],
        ["--originals", "nosuch", "--avatars", "nosuch.table"],
        ["--originals", "parquet:/nosuch", "--avatars", "csv:/nosuch"],
        ["--config", "/nosuch.toml"],
    ],
)
def test_wrong_arguments_and_tables_are_lines_and_2(command, argv):
    done = command(*argv)
    assert (done.code, done.report) == (2, None)
    assert done.problems
    assert all(line.startswith("local-cloaking: ") for line in done.problems)


def test_both_tables_that_are_missing_are_listed(command):
    done = command("--originals", "nosuch", "--avatars", "nosuch.table", "--link", "parquet:/nosuch")
    assert ["nosuch" in line for line in done.problems] == [True] * 3


def test_no_message_holds_a_value_of_a_record(command, parquet, caplog):
    secret = "secret-777333"
    originals = parquet("originals", {"id": [secret, secret, None, "a"], "x": [777333.25, np.nan, np.inf, 1.0]})
    avatars = parquet("avatars", {"id": [secret, "b"], "x": [777333.25, 0.0]})
    done = command("--originals", originals, "--avatars", avatars)
    assert done.code == 2
    assert len(done.problems) == 5  # a repeated key, a null key, NaN, infinity, an original without an avatar
    assert not any("777333" in text for text in [*done.problems, done.out, caplog.text])


@pytest.mark.skipif(pyspark.__version__ < "4", reason="before Spark 4 such a value is null, and its row not kept")
@pytest.mark.parametrize("where", ["cast(ward as int) = 1", "1 / (id - 2) > 0"])
def test_a_condition_that_breaks_on_a_row_is_2_and_shows_no_value(command, parquet, where):
    originals = parquet("originals", {**ORIGINALS, "ward": ["777333x"] * 4})
    done = command("--originals", originals, "--avatars", originals, "--where", where)
    assert (done.code, done.report) == (2, None)
    assert [line for line in done.problems if "777333" in line] == []


def test_one_condition_serves_both_tables_unless_there_is_a_second(command, pair):
    both = command(*pair, "--where", "id <= 2").report
    assert (both["originals"], both["avatars"]) == (2, 2)
    apart = command(*pair, "--where", "id <= 2", "--where-avatars", "id <> 3").report
    assert (apart["originals"], apart["avatars"]) == (2, 5)


def test_a_config_file_runs_a_report_and_the_command_line_wins(command, pair, tmp_path):
    config = tmp_path / "report.toml"
    config.write_text(f"originals = '{pair[1]}'\navatars = '{pair[3]}'\nname = 'a'\nmin_hidden_rate = 99\n")
    done = command("--config", config, "--min-hidden-rate", "1", "--name", "b")
    assert (done.code, done.report["name"], done.report["verdict"]) == (0, "b", "pass")


def test_the_avatars_name_their_originals_in_a_column_of_their_own(command, parquet, pair):
    avatars = {"avatar": [5, 6, 7, 8, 9, 10], "made_from": AVATARS["id"], "x": AVATARS["x"]}
    done = command(*pair[:2], "--avatars", parquet("named", avatars), "--made-from", "made_from")
    assert done.report["local_cloaking"] == 0.5
    assert done.report["link"] == {"kind": "made from", "columns": ["made_from"]}


@pytest.mark.parametrize("own", ["id", "avatar_id"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_link_table_of_any_format_links(command, parquet, csv, pair, kind, own):
    links = {"original_id": [1, 2, 3, 4], "avatar_id": [11, 12, 13, 14]}
    other = {own: [11, 12, 13, 14, 18, 19], "x": AVATARS["x"]}
    avatars = parquet("other", other) if kind == "parquet" else csv("other", pd.DataFrame(other).to_csv(index=False))
    ref = parquet("links", links) if kind == "parquet" else csv("links", pd.DataFrame(links).to_csv(index=False))
    done = command(*pair[:2], "--avatars", avatars, "--link", ref)
    assert done.code == 0, done.problems
    assert done.report["hidden_rate"] == HIDDEN_RATE
    assert "unlinked_avatars" in [warning["code"] for warning in done.report["warnings"]]


def test_files_of_the_platform_link_by_position(command, csv, tmp_path, spark):
    originals = csv("t.projections.original-0", "Dim. 1,Dim. 2\n" + "".join(f"{i},0\n" for i in range(1_500)))
    avatars = csv("t.projections.avatars-0", "Dim. 2,Dim. 1\n" + "".join(f"0,{i + 0.75}\n" for i in range(1_500)))
    counts = f"parquet:{tmp_path}/counts"
    done = command("--originals", originals, "--avatars", avatars, "--by-position", "--counts", counts)
    assert done.code == 0
    assert done.report["components"] == ["Dim. 1", "Dim. 2"]
    found = {row.id: (row.closer, row.tied) for row in rows_of(spark, counts).collect()}
    assert found == {0: (0, 0), **dict.fromkeys(range(1, 1500), (1, 0))}  # avatar i - 1 is 0.25 from i


def test_positions_that_have_no_partner_are_refused(command, csv):
    done = command("--originals", csv("a", "x\n1\n2\n3\n"), "--avatars", csv("b", "x\n1\n2\n"), "--by-position")
    assert done.code == 2
    assert any("1 of 3 originals" in line for line in done.problems)


@pytest.mark.parametrize(
    ("originals", "avatars", "key_type"),
    [
        ("csv", "parquet", "bigint"),  # takes the other side's type
        ("parquet", "csv", "bigint"),
        ("csv", "csv", "string"),
    ],
)
def test_keys_of_csv_files_find_their_partners(command, parquet, csv, tmp_path, spark, originals, avatars, key_type):
    ids = [9007199254740993, 9007199254740992]

    def written(kind, name, columns):
        return parquet(name, columns) if kind == "parquet" else csv(name, pd.DataFrame(columns).to_csv(index=False))

    counts = f"parquet:{tmp_path}/counts"
    done = command(
        "--originals", written(originals, "o", {"id": ids, "x": [0.0, 0.0]}),
        "--avatars", written(avatars, "a", {"id": ids, "x": [1.0, 2.0]}), "--counts", counts,
    )  # fmt: skip
    assert done.code == 0
    table = rows_of(spark, counts)
    assert table.dtypes[0] == ("id", key_type)
    assert {str(row.id): row.cloaking for row in table.collect()} == {"9007199254740993": 0, "9007199254740992": 1}


def test_zero_padded_keys_stay_text(command, csv, tmp_path, spark):
    text = "id,x\n007,{}\n7,{}\n"
    counts = f"parquet:{tmp_path}/counts"
    refs = ["--originals", csv("o", text.format(0, 10)), "--avatars", csv("a", text.format(1, 9.5))]
    assert command(*refs, "--counts", counts).code == 0
    assert {row.id for row in rows_of(spark, counts).collect()} == {"007", "7"}


def test_zero_padded_keys_do_not_match_numbers_and_that_is_said(command, csv, parquet):
    done = command("--originals", parquet("o", {"id": [7], "x": [0.0]}), "--avatars", csv("a", "id,x\n007,1\n"))
    assert done.code == 2
    assert any("1 of 1 originals have no avatar" in line for line in done.problems)


@pytest.mark.parametrize("kind", ["parquet", "csv", "position"])
def test_one_table_on_both_sides_is_a_warning_in_the_report(command, parquet, csv, kind):
    ref = parquet("t", ORIGINALS) if kind == "parquet" else csv("t", pd.DataFrame(ORIGINALS).to_csv(index=False))
    done = command("--originals", ref, "--avatars", ref, *(["--by-position"] if kind == "position" else []))
    assert done.code == 0
    assert "same_table" in [warning["code"] for warning in done.report["warnings"]]


def test_groups_stand_in_the_report(command, parquet):
    points = [float(i) for i in range(250)]
    originals = parquet("o", {"id": range(250), "x": points, "ward": ["north"] * 150 + ["south"] * 100})
    done = command("--originals", originals, "--avatars", originals, "--group-by", "ward")
    assert [(group["group"], group["originals"]) for group in done.report["groups"]] == [("north", 150), ("south", 100)]
    assert all({"local_cloaking", "hidden_rate", "cloaking"} <= set(group) for group in done.report["groups"])
    assert done.report["components"] == ["x"]


def test_further_columns_of_the_avatars_are_ignored_and_named_in_the_log(command, parquet, pair, caplog):
    caplog.set_level(logging.INFO, "cloaking")
    avatars = parquet("more", {**AVATARS, "y": [1.0] * 6, "note": ["n"] * 6})
    assert command(*pair[:2], "--avatars", avatars).report["components"] == ["x"]
    assert any("y" in message and "note" in message for message in caplog.messages)


def test_the_real_tables_give_their_known_figures(command, reference_data):
    refs = [f"csv:{reference_data}/wbcd_famd_nf2_{side}.csv" for side in ("originals", "avatars")]
    report = command("--originals", refs[0], "--avatars", refs[1]).report
    figures = [
        report[key] for key in ("local_cloaking", "hidden_rate", "hidden_rate_ties_hide", "hidden_rate_ties_expose")
    ]
    assert [round(figure, 4) for figure in figures] == [24.0, 92.6907, 98.5359, 57.6867]


def raw_columns(rng, rows=120):
    arms = np.array(["a", "b", "c"])[rng.integers(3, size=rows)]
    return {"id": range(rows), "age": rng.normal(50, 9, rows), "weight": rng.normal(70, 5, rows), "arm": arms}


def test_raw_tables_are_measured_in_the_space_of_their_originals(command, parquet, tmp_path):
    rng = np.random.default_rng(3)
    originals, avatars = (raw_columns(rng) for _ in range(2))
    refs = [parquet(name, columns) for name, columns in (("raw_o", originals), ("raw_a", avatars))]
    done = command("--originals", refs[0], "--avatars", refs[1], "--project", "famd", "--ncp", 2, "--group-by", "arm",
                   "--counts", f"parquet:{tmp_path}/counts")  # fmt: skip
    assert (done.code, done.report["ncp"], done.report["components"]) == (0, 2, ["dim_1", "dim_2"])

    # the same space by numpy's decomposition of the standardised columns and weighted indicators of the originals
    numbers = np.column_stack([originals["age"], originals["weight"]])
    shares = np.array([np.mean(originals["arm"] == arm) for arm in "abc"])

    def standardised(columns):
        values = np.column_stack([columns["age"], columns["weight"]])
        indicators = np.column_stack([columns["arm"] == arm for arm in "abc"])
        return np.hstack(
            [(values - numbers.mean(axis=0)) / numbers.std(axis=0), (indicators - shares) / np.sqrt(shares)]
        )

    axes = np.linalg.svd(standardised(originals))[2][:2].T
    x, y = standardised(originals) @ axes, standardised(avatars) @ axes
    closer, within = oracle.count(y.tolist(), x.tolist(), y.tolist())
    found = pd.read_parquet(tmp_path / "counts").sort_values("id")
    assert found["closer"].tolist() == list(closer)
    assert found["cloaking"].tolist() == [count - 1 for count in within]
    variance = np.linalg.svd(standardised(originals), compute_uv=False) ** 2
    assert done.report["explained_variance"] == pytest.approx((variance / variance.sum())[:2], rel=1e-9)


def test_real_raw_tables_give_their_known_figures(command, reference_data):
    refs = [f"csv:{reference_data}/wbcd_raw_{side}.csv" for side in ("originals", "avatars")]
    options = ("--project", "auto", "--categorical", "Class", "--ncp", 2)
    report = command("--originals", refs[0], "--avatars", refs[1], *options).report
    figures = [report[name] for name in ("local_cloaking", "hidden_rate", "originals_with_ties")]
    assert figures == [24.0, pytest.approx(92.69071777, abs=1e-8), 329]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--categorical", "arm"), "--categorical needs --project"),
        (("--project", "pca"), "--project needs --ncp, the number of components to keep"),
        (("--project", "pca", "--ncp", 2, "--components", "age"), "--components is for projected tables; leave it out"),
    ],
)
def test_what_projecting_needs_and_excludes_is_said(command, pair, options, problem):
    assert any(problem in line for line in command(*pair, *options).problems)
