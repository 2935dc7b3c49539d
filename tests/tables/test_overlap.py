"""Results never lie on the tables to read nor on each other, whatever both are called."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from cloaking.errors import OutputError
from cloaking.tables import overlap


@pytest.fixture
def table(spark, tmp_path):
    """Write a table of one row to a folder and to the catalog at a location of its own; return both."""
    spark.range(1).write.parquet(str(tmp_path / "data" / "originals"))
    spark.sql(f"CREATE TABLE placed USING parquet LOCATION '{tmp_path / 'data' / 'originals'}'")
    yield tmp_path / "data" / "originals"
    spark.sql("DROP TABLE placed")


@pytest.mark.parametrize(
    ("read", "result"),
    [
        ("gold.patients", "gold.patients"),
        ("gold.patients", "spark_catalog.GOLD.`patients`"),
        ("patients", "default.patients"),
        ("parquet:/data/patients", "orc:/data/patients"),
        ("parquet:/data/patients", "parquet:file:/data/patients/"),
        ("parquet:/data/patients/year=2026", "parquet:/data/patients"),
        ("parquet:/data/patients", "parquet:/data/patients/counts"),
        ("parquet:s3a://bucket/patients", "parquet:s3://bucket/patients/"),
        ("parquet:hdfs:///data/patients", "parquet:hdfs://name:8020/data/patients"),
    ],
)
def test_a_result_on_an_input_is_refused_by_its_name(spark, read, result):
    with pytest.raises(OutputError, match="overlaps one of the tables to read"):
        overlap.check_apart(spark, {"counts": result}, [read], None)


@pytest.mark.parametrize(
    ("read", "result"),
    [
        ("gold.patients", "silver.patients"),
        ("gold.patients", "lake.gold.patients"),
        ("parquet:/data/patients", "parquet:/data/patients_counts"),
        ("parquet:s3a://bucket/patients", "parquet:s3://other/patients"),
        ("parquet:hdfs:///data/patients", "parquet:s3://data/patients"),
        ("spark_catalog.default.x", "parquet:/spark_catalog/default/x"),
        ("lake.gold.patients", "lake.gold.patients.counts"),
    ],
)
def test_a_result_beside_an_input_passes(spark, read, result):
    overlap.check_apart(spark, {"counts": result}, [read, "parquet:s3://bucket/reports"], "/reports")


def test_results_on_each_other_and_a_report_within_a_table_are_refused(spark):
    results = {"counts": "parquet:/r/counts", "history": "parquet:/r/counts/history"}
    with pytest.raises(OutputError) as caught:
        overlap.check_apart(spark, results, ["parquet:/data/o"], "/data/o/report")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "history 'parquet", "--output /data/o/report",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "result"),
    [
        (read, result)
        for read in ("folder", "pattern", "catalog", "view", "link")
        for result in ("parquet:{}", "orc:file:{}", "parquet:{}/..", "placed")
        if (read, result) != ("link", "placed")  # files read by a link have its name, and the catalog knows the other
    ],
)
def test_a_result_on_the_files_of_an_input_is_refused_whatever_both_are_called(spark, table, read, result):
    if read == "link":
        (table.parent / "linked").symlink_to(table)
    spark.table("placed").createOrReplaceTempView("seen")
    found = {
        "folder": lambda: spark.read.parquet(str(table)),
        "pattern": lambda: spark.read.parquet(str(table.parent / "orig*")),
        "catalog": lambda: spark.table("placed").where("id > 5"),
        "view": lambda: spark.table("seen"),
        "link": lambda: spark.read.parquet(str(table.parent / "linked")),
    }[read]()
    with pytest.raises(OutputError, match="overlaps one of the tables to read"):
        overlap.check_files(spark, {"counts": result.format(table)}, [spark.range(1), found])


def test_a_result_beside_the_files_of_an_input_passes(spark, table):
    results = {
        "counts": f"parquet:{table}_counts",
        "history": f"parquet:{table.parent.parent}/history",
        "other": "new_one",
    }
    overlap.check_files(spark, results, [spark.read.parquet(str(table))])


@pytest.mark.parametrize("path", ["/k/d[1]", "/k/d*", "/k/d?", "/k/{a,b}", "/k/d\\x"])
def test_a_path_that_spark_would_take_for_a_pattern_is_refused(path):
    with pytest.raises(OutputError, match=r"^counts: an output path may contain none of"):
        overlap.check_path(path, "counts")
    overlap.check_path("/k/d (1), of=2026-11-01 %41/ü", "counts")


@pytest.fixture
def default_store(spark):
    """Give Spark another default file system, of which a folder may be shown at a path, for the length of a block."""

    @contextlib.contextmanager
    def changed(store, shown=None, folder=None):
        settings = {"fs.defaultFS": store}
        if shown is not None:
            settings[f"fs.viewfs.mounttable.default.link.{shown}"] = f"file://{folder}"
        for key, value in settings.items():
            spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                spark.conf.unset(key)

    return changed


def test_a_path_is_on_this_disk_where_spark_says_so(spark, tmp_path, monkeypatch):
    started = Path.cwd()
    monkeypatch.chdir(tmp_path)  # Spark stays where it was
    assert overlap.local(spark, "/data/x") == overlap.local(spark, "file:///data/x") == Path("/data/x")
    assert overlap.local(spark, "data/x%20 y") == started / "data/x%20 y"
    assert overlap.local(spark, "s3a://bucket/x") is None
    assert overlap.local(spark, "//host/x") is None


def test_a_path_without_a_scheme_lies_in_the_default_file_system(spark, tmp_path, default_store):
    with default_store("viewfs:///", "/shown", tmp_path):
        assert overlap.local(spark, "/shown/x") is None
        assert overlap.local(spark, "x") is None
        assert overlap.local(spark, "file:/shown/x") == Path("/shown/x")
        for result in ("viewfs:///shown/x/y", "viewfs:/shown"):
            with pytest.raises(OutputError, match="overlaps one of the tables to read"):
                overlap.check_apart(spark, {"counts": f"parquet:{result}"}, ["parquet:/shown/x"], None)
        others = {"counts": "parquet:file:/shown/x", "history": "parquet:hdfs://name/shown/x"}
        overlap.check_apart(spark, others, ["parquet:/shown/x"], None)
        overlap.check_apart(spark, {"counts": "parquet:/shown/x"}, [], "/shown/x/report")  # a folder is on this disk


@pytest.mark.parametrize("store", ["nosuch://host", "viewfs://empty/"])  # one that is not, one without a folder
def test_a_path_in_a_store_that_spark_cannot_say_may_be_anywhere(spark, default_store, store):
    with default_store(store):
        assert overlap.local(spark, "/data/x") is None
        for other in ("parquet:file:/data/x", "parquet:s3a://bucket/data/x", "parquet:/data/x"):
            with pytest.raises(OutputError, match="overlaps one of the tables to read"):
                overlap.check_apart(spark, {"counts": "parquet:/data/x"}, [other], None)
        overlap.check_apart(spark, {"counts": "parquet:/data/x"}, ["parquet:/data/y", "gold.data.x"], None)


def test_no_path_is_on_this_disk_where_a_cluster_writes(spark):
    master = spark.conf.get("spark.master")
    try:
        spark.conf.set("spark.master", "yarn")
        assert overlap.local(spark, "/data/x") is overlap.local(spark, "file:/data/x") is None
    finally:
        spark.conf.set("spark.master", master)


CORE_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>viewfs:///</value></property>
<property><name>fs.viewfs.mounttable.default.link.{0}</name><value>file://{1}</value></property>
</configuration>
"""


@pytest.mark.slow
def test_results_of_an_edge_node_lie_in_the_default_file_system_and_leave_nothing_beside_them(tmp_path):
    """A local master where files of Hadoop's set another default: `shown` is a folder there, and not on this disk."""
    root, shown, kept = Path(__file__).resolve().parents[2], tmp_path / "shown", tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "core-site.xml").write_text(CORE_SITE.format(shown, kept))
    tables = [f"--{side}=parquet:file:{root}/tests/data/wine_{side}.parquet" for side in ("originals", "avatars")]
    argv = [
        *tables,
        f"--counts=parquet:{shown}/counts",
        f"--history=orc:{shown}/history",
        f"--output={tmp_path}/report",
    ]
    argv += [
        "--run-date=2026-11-01",
        "--name=wine",
        "--conf",
        "spark.master=local[2]",
        "--conf",
        "spark.ui.enabled=false",
    ]
    for again in ([], ["--overwrite"]):
        done = subprocess.run(
            [sys.executable, root / "jobs" / "local_cloaking.py", *argv, *again],
            env=os.environ | {"HADOOP_CONF_DIR": str(tmp_path / "conf"), "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads((tmp_path / "report" / "report.json").read_text())["local_cloaking"] == 4.5
    assert not shown.exists()
    there = {path.name for path in kept.iterdir()}
    assert {name for name in there if not name.startswith(".")} == {"counts", "history"}
    for name in there - {"counts", "history"}:  # Spark alone reaches the store and removes nothing: it is emptied
        assert sum(pq.read_metadata(file).num_rows for file in (kept / name).rglob("*.parquet")) == 0
    assert len(pd.read_parquet(kept / "counts")) == 178
    assert [path.name for path in (kept / "history").iterdir()] == ["name=wine"]
    assert [path.name for path in (kept / "history" / "name=wine").iterdir()] == ["run_date=2026-11-01"]
    assert len(list((kept / "history").rglob("*.orc"))) == 1
