"""Results never lie on the tables to read nor on each other, whatever both are called."""

import pytest

from cloaking import places
from cloaking.errors import OutputError


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
    with pytest.raises(OutputError, match="lies on one of the tables to read"):
        places.check_apart(spark, {"counts": result}, [read], None)


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
    places.check_apart(spark, {"counts": result}, [read, "parquet:s3://bucket/reports"], "/reports")


def test_results_on_each_other_and_a_report_within_a_table_are_refused(spark):
    results = {"counts": "parquet:/r/counts", "history": "parquet:/r/counts/history"}
    with pytest.raises(OutputError) as caught:
        places.check_apart(spark, results, ["parquet:/data/o"], "/data/o/report")
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
    with pytest.raises(OutputError, match="lies on one of the tables to read"):
        places.check_files(spark, {"counts": result.format(table)}, [spark.range(1), found])


def test_a_result_beside_the_files_of_an_input_passes(spark, table):
    results = {
        "counts": f"parquet:{table}_counts",
        "history": f"parquet:{table.parent.parent}/history",
        "other": "new_one",
    }
    places.check_files(spark, results, [spark.read.parquet(str(table))])


@pytest.mark.parametrize("path", ["/k/d[1]", "/k/d*", "/k/d?", "/k/{a,b}", "/k/d\\x"])
def test_a_path_that_spark_would_take_for_a_pattern_is_refused(path):
    with pytest.raises(OutputError, match=r"^counts: a path to write to may hold none of"):
        places.check_path(path, "counts")
    places.check_path("/k/d (1), of=2026-11-01 %41/ü", "counts")
