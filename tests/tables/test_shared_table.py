"""A row takes the place of those of its key and of no others, whoever made the table and whoever writes at once."""

import threading

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.errors import CloakingError, OutputError
from cloaking.tables import shared_table

KEY = ("name", "day")
SCHEMA = T.StructType(
    [T.StructField("value", T.DoubleType()), T.StructField("name", T.StringType()), T.StructField("day", T.DateType())]
)
MODE = "spark.sql.sources.partitionOverwriteMode"


def put(spark, ref, value, name, day="2026-01-01"):
    row = spark.createDataFrame([(value, name, day)], "value double, name string, day string")
    row = row.withColumn("day", F.col("day").cast("date"))
    shared_table.replace(row, ref, "history", {"name": name, "day": row.first()["day"]})


def rows(spark, ref):
    table = shared_table.read(spark, ref, "history", SCHEMA, KEY)
    return sorted((row["name"], str(row["day"]), row["value"]) for row in table.collect())


@pytest.fixture
def table(spark):
    """Make a table of the catalog by its columns and its layout; return its name."""
    made = []

    def make(layout, columns="value double, name string, day date"):
        made.append(f"shared_{len(made)}")
        spark.sql(f"CREATE TABLE {made[-1]} ({columns}) {layout}")
        return made[-1]

    yield make
    for name in made:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("kind", ["csv", "text", "jdbc", "json", "avro", "delta", "iceberg", "hudi", "binaryfile"])
def test_a_path_keeps_rows_in_parquet_and_orc_alone(spark, tmp_path, kind):
    """Of all others the option that leaves other partitions alone means nothing, or nothing that is known."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "rows of others").touch()
    ref = f"{kind}:{tmp_path / 'history'}"
    with pytest.raises(OutputError, match=f"^history '.*': {kind} cannot keep it; use parquet:, orc: or a table of"):
        shared_table.read(spark, ref, "history", SCHEMA, KEY)
    with pytest.raises(OutputError, match="use parquet:, orc: or a table of a catalog"):
        put(spark, ref, 1.0, "a")
    assert [file.name for file in (tmp_path / "history").iterdir()] == ["rows of others"]


def test_a_key_has_the_folder_that_spark_gives_it(spark, tmp_path):
    """All signs of ASCII, a few at a time since a folder's name has an end."""
    signs = [chr(number) for number in range(1, 128)] + list("éß\u2028\U0001f600")
    for at in range(0, len(signs), 40):
        name = "".join(signs[at : at + 40])
        put(spark, f"parquet:{tmp_path / 'ours'}", 1.0, name)
        row = spark.createDataFrame([(1.0, name, "2026-01-01")], "value double, name string, day string")
        row.write.mode("append").partitionBy(*KEY).parquet(str(tmp_path / "sparks"))
    ours, sparks = (
        {str(path.parent.relative_to(tmp_path / side)) for path in (tmp_path / side).rglob("*.parquet")}
        for side in ("ours", "sparks")
    )
    assert len(sparks) == 4
    assert ours == sparks


def test_a_row_that_cannot_be_written_leaves_the_earlier_one_on_this_disk(spark, tmp_path):
    ref = f"parquet:{tmp_path / 'history'}"
    put(spark, ref, 1.0, "a")
    row = spark.createDataFrame([("a", 2.0)], "name string, value double").selectExpr(
        "if(value = 2, raise_error('meant'), value) as value", "name", "date'2026-01-01' as day"
    )
    with pytest.raises(Exception, match="meant"):
        shared_table.replace(row, ref, "history", {"name": "a", "day": "2026-01-01"})
    assert rows(spark, ref) == [("a", "2026-01-01", 1.0)]
    assert [path.name for path in (tmp_path / "history" / "name=a").iterdir()] == ["day=2026-01-01"]


@pytest.mark.parametrize(
    "layout",
    [
        "USING csv PARTITIONED BY (name, day)",
        "USING json PARTITIONED BY (name, day)",
        "USING parquet PARTITIONED BY (name, day) CLUSTERED BY (value) INTO 2 BUCKETS",
        "USING orc PARTITIONED BY (name, day) TBLPROPERTIES ('transactional' = 'TRUE')",
        "partitions that the catalog does not know",
        "lake",
    ],
)
def test_a_table_that_is_not_known_to_replace_a_row_and_no_others_is_refused(request, spark, table, setting, layout):
    if layout == "lake":
        name = f"{request.getfixturevalue('lake')}.gold.unknown"
        spark.sql(f"CREATE TABLE {name} (value double, name string, day date) USING other PARTITIONED BY (name, day)")
    elif layout.startswith("USING"):
        name = table(layout)
    else:
        with setting("spark.sql.hive.manageFilesourcePartitions", "false"):
            name = table("USING parquet PARTITIONED BY (name, day)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-01')")
    with pytest.raises(OutputError, match=f"^history '{name}': is a table that is not known to replace the rows of a "):
        rows(spark, name)
    with pytest.raises(OutputError, match="use Delta, Iceberg, or Parquet or ORC in Spark's own catalog"):
        put(spark, name, 3.0, "a")
    assert spark.table(name).count() == 2
    if layout == "lake":
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "layout", ["USING parquet", "USING parquet PARTITIONED BY (name)", "USING orc PARTITIONED BY (day, value)"]
)
def test_a_table_with_other_partitions_is_refused_and_keeps_its_rows(spark, table, layout):
    name = table(layout)
    spark.sql(f"INSERT INTO {name} (value, name, day) VALUES (1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-01')")
    with pytest.raises(OutputError, match=f"^history '{name}': is not partitioned by name and day, so that rows"):
        rows(spark, name)
    with pytest.raises(OutputError, match="of others would be lost"):
        put(spark, name, 3.0, "a")
    assert spark.table(name).count() == 2


def test_a_folder_with_other_partitions_is_refused(spark, tmp_path):
    ref = f"parquet:{tmp_path / 'folder'}"
    spark.createDataFrame([], SCHEMA).write.parquet(str(tmp_path / "folder"))
    with pytest.raises(OutputError, match="of others would be lost"):
        rows(spark, ref)


def test_a_table_of_a_format_that_replaces_no_rows_is_refused(spark, tmp_path, setting):
    """Spark's catalog of a database empties a table that is overwritten."""
    catalog = "spark.sql.catalog.base"
    spark.conf.set(catalog, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    spark.conf.set(f"{catalog}.url", f"jdbc:derby:{tmp_path / 'base'};create=true")
    spark.conf.set(f"{catalog}.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    spark.sql("CREATE NAMESPACE base.gold")
    spark.sql("CREATE TABLE base.gold.history (value double, name string, day date)")
    spark.sql("INSERT INTO base.gold.history VALUES (1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-01')")
    with pytest.raises(OutputError, match="of others would be lost"):
        rows(spark, "base.gold.history")
    with pytest.raises(OutputError, match="of others would be lost"):
        put(spark, "base.gold.history", 3.0, "a")
    assert spark.table("base.gold.history").count() == 2
    with pytest.raises(OutputError, match="cannot be written"):  # it makes no partitions
        put(spark, "base.gold.other", 3.0, "a")
    for key in (catalog, f"{catalog}.url", f"{catalog}.driver"):
        spark.conf.unset(key)


def test_a_view_is_refused(spark, table):
    spark.sql(f"CREATE OR REPLACE VIEW shared_view AS SELECT * FROM {table('USING parquet')}")
    with pytest.raises(CloakingError, match="history 'shared_view'"):
        rows(spark, "shared_view")
    with pytest.raises(CloakingError, match="history 'shared_view'"):
        put(spark, "shared_view", 1.0, "a")
    spark.sql("DROP VIEW shared_view")


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_rows_of_others_stay_whatever_the_session_does_with_partitions(spark, table, setting, mode):
    name = table("USING parquet PARTITIONED BY (name, day)")
    with setting(MODE, mode):
        for value, report in ((1.0, "a"), (2.0, "b"), (3.0, "a")):
            put(spark, name, value, report)
            assert (report, "2026-01-01", value) in rows(spark, name)  # no list of files is kept from before
    assert rows(spark, name) == [("a", "2026-01-01", 3.0), ("b", "2026-01-01", 2.0)]


def test_a_partition_elsewhere_is_overwritten_where_it_is(spark, table, tmp_path):
    name = table("USING parquet PARTITIONED BY (name, day)")
    at = f"PARTITION (name = 'a', day = '2026-01-01') LOCATION '{tmp_path / 'else where'}'"
    spark.sql(f"ALTER TABLE {name} ADD {at}")
    for value, report in ((1.0, "a"), (2.0, "b"), (3.0, "a")):
        put(spark, name, value, report)
    assert rows(spark, name) == [("a", "2026-01-01", 3.0), ("b", "2026-01-01", 2.0)]
    assert list((tmp_path / "else where").glob("*.parquet"))


def test_a_new_table_is_in_parquet_where_the_usual_format_keeps_no_rows_by_their_key(spark, setting):
    with setting("spark.sql.sources.default", "csv"):
        put(spark, "shared_new", 1.0, "a")
        assert rows(spark, "shared_new") == [("a", "2026-01-01", 1.0)]
    spark.sql("DROP TABLE shared_new")


def test_a_name_that_the_session_cannot_write_in_sql_is_refused(spark, table, setting):
    name = table("USING parquet PARTITIONED BY (name, day)")
    with setting("spark.sql.parser.escapedStringLiterals", "true"):
        put(spark, name, 1.0, "plain")
        with pytest.raises(OutputError, match=f"^history '{name}': .*escapedStringLiterals=false"):
            put(spark, name, 1.0, "it's")
    assert rows(spark, name) == [("plain", "2026-01-01", 1.0)]


def test_columns_that_the_row_does_not_have_are_left_empty_and_its_own_take_the_types_of_the_table(spark, table):
    layout, columns = "USING parquet PARTITIONED BY (day, name)", "day string, name string, remark int, VALUE float"
    name = table(layout, columns)
    put(spark, name, 1.0, "a")
    assert [tuple(row) for row in spark.table(name).select("remark", "value", "name").collect()] == [(None, 1.0, "a")]
    assert rows(spark, name) == [("a", "2026-01-01", 1.0)]


@pytest.mark.parametrize("kind", ["parquet", "orc", "table"])
def test_runs_at_once_lose_no_row_of_each_other_not_even_the_first(spark, tmp_path, kind):
    """Four reports, each for three dates, each date twice: the last of each stays."""
    ref = f"{kind}:{tmp_path / 'history'}" if kind != "table" else "shared_at_once"
    start, failures = threading.Barrier(4), []

    def runs(name):
        try:
            start.wait(60)
            for value, day in enumerate(["2026-01-01", "2026-02-01", "2026-03-01"] * 2):
                put(spark, ref, float(value), name, day)
        except Exception as error:
            failures.append(error)

    reports = [threading.Thread(target=runs, args=(name,)) for name in "abcd"]
    for one in reports:
        one.start()
    for one in reports:
        one.join()
    assert failures == []
    assert rows(spark, ref) == [
        (name, f"2026-0{month}-01", float(2 + month)) for name in "abcd" for month in (1, 2, 3)
    ]  # fmt: skip
    if kind == "table":
        spark.sql("DROP TABLE shared_at_once")
