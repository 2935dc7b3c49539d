"""References to tables, by name or by format and path; rows by their position."""

import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pytest
from chispa import assert_df_equality

from cloaking.columns import Side
from cloaking.errors import InputError
from cloaking.tables import read

ROWS = {"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}


@pytest.fixture
def catalog_table(spark):
    spark.createDataFrame(pd.DataFrame(ROWS)).write.mode("overwrite").saveAsTable("tables_test")
    yield "tables_test"
    spark.sql("drop table if exists tables_test")


def test_a_table_is_read_by_its_name_or_by_format_and_path(spark, parquet, csv, tmp_path, catalog_table):
    expected = spark.createDataFrame(pd.DataFrame(ROWS))
    pa.orc.write_table(pa.table(ROWS), tmp_path / "rows.orc")
    refs = [catalog_table, f"spark_catalog.default.{catalog_table}", parquet("rows", ROWS), f"orc:{tmp_path}/rows.orc"]
    for ref in refs:
        assert_df_equality(
            read.read_table(spark, ref, "originals"), expected, ignore_row_order=True, ignore_nullable=True
        )
    found = read.read_table(spark, csv("rows", "id,x\n1,0.5\n2,1.5\n3,2.5\n"), "originals", text=("id",))
    assert [tuple(row) for row in found.collect()] == [("1", 0.5), ("2", 1.5), ("3", 2.5)]


def test_only_the_rows_of_the_condition_are_kept(spark, parquet):
    found = read.read_table(spark, parquet("rows", ROWS), "originals", where="x > 1 and id <> 3")
    assert [row.id for row in found.collect()] == [2]


@pytest.mark.parametrize(
    "ref",
    ["nosuch", "nosuch.table", "no.such.table", "not a table", "parquet:/nosuch/file", "csv:/nosuch/file", "xyz:/tmp"],
)
def test_a_table_that_cannot_be_read_is_named(spark, ref):
    with pytest.raises(InputError, match=r"^originals") as caught:
        read.read_table(spark, ref, "originals")
    [problem] = caught.value.problems
    assert ref in problem
    assert "\n" not in problem


def test_the_columns_that_a_table_is_partitioned_by_are_known(spark, tmp_path):
    rows = spark.createDataFrame([(1, 0.5, 1, 7), (2, 1.5, 2, 7)], "id long, dim_1 double, site int, `a b` int")
    rows.write.partitionBy("site", "a b").parquet(str(tmp_path / "t"))
    rows.write.partitionBy("site").saveAsTable("partitioned_rows")

    def found(ref):
        return read.partition_columns(spark, ref, read.read_table(spark, ref, "originals"))

    assert found(f"parquet:{tmp_path}/t") == ("a b", "site")
    assert found(f"parquet:{tmp_path}/t/site=1") == ("a b",)
    assert found(f"parquet:{tmp_path}/t/site=*/a b=7") == ()
    assert found("partitioned_rows") == ("site",)
    spark.sql("DROP TABLE partitioned_rows")


def test_a_file_of_another_format_is_refused(spark, tmp_path):
    (tmp_path / "text.parquet").write_text("secret")
    with pytest.raises(InputError, match="originals") as caught:
        read.read_table(spark, f"parquet:{tmp_path}/text.parquet", "originals").count()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("where", ["nosuch = 1", "x >", "sum(x) > 1"])
def test_a_condition_that_is_none_is_refused_and_shown(spark, parquet, where):
    with pytest.raises(InputError, match="condition") as caught:
        read.read_table(spark, parquet("rows", ROWS), "originals", where=where)
    assert where in str(caught.value)


def numbered(spark, ref, **options):
    """The rows in the order of the numbers that reading by position gave them."""
    frame = read.read_table(spark, ref, "originals", by_position=True, **options)
    return [tuple(row) for row in frame.orderBy("id").select("id", "x").collect()]


@pytest.mark.parametrize("max_bytes", ["1000", "128m"])
def test_rows_are_numbered_from_0_in_the_order_of_a_csv_file(spark, csv, setting, max_bytes):
    values = [(i * 7919) % 3_001 for i in range(3_001)]
    ref = csv("rows", "x,y\n" + "".join(f"{value},0\n" for value in values))
    with setting("spark.sql.files.maxPartitionBytes", max_bytes):
        assert numbered(spark, ref) == list(enumerate(values))


@pytest.mark.parametrize("max_bytes", ["1000", "128m"])
def test_rows_are_numbered_from_0_in_the_order_of_a_parquet_file_of_several_row_groups(
    spark, parquet, setting, max_bytes
):
    values = [float((i * 7919) % 3_001) for i in range(3_001)]
    ref = parquet("rows", {"x": values}, row_group_size=250)
    with setting("spark.sql.files.maxPartitionBytes", max_bytes):
        assert numbered(spark, ref) == list(enumerate(values))
        kept = [(i, value) for i, value in enumerate(values) if value > 2_990]
        assert numbered(spark, ref, where="x > 2990") == kept


def test_a_condition_keeps_the_numbers_of_csv_rows(spark, csv):
    assert numbered(spark, csv("rows", "x\n5\n6\n7\n"), where="x <> 6") == [(0, 5.0), (2, 7.0)]


def test_a_column_with_the_name_of_the_number_gives_way(spark, parquet, csv):
    assert numbered(spark, parquet("rows", {"id": [9, 9], "x": [1.0, 2.0]})) == [(0, 1.0), (1, 2.0)]
    assert numbered(spark, csv("rows", "ID,x\na,1\na,2\n")) == [(0, 1.0), (1, 2.0)]


def test_the_number_of_a_row_is_a_long(spark, csv, parquet):
    for ref in (csv("rows", "x\n5\n"), parquet("rows", {"x": [5.0]})):
        assert dict(read.read_table(spark, ref, "originals", by_position=True).dtypes)["id"] == "bigint"


def test_a_folder_of_one_file_has_positions_and_one_of_several_has_none(spark, parquet, tmp_path):
    parquet("rows", ROWS)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(tmp_path / "rows.parquet", folder / "a.parquet")
    assert len(numbered(spark, f"parquet:{folder}")) == 3
    shutil.copy(tmp_path / "rows.parquet", folder / "b.parquet")
    with pytest.raises(InputError, match="2") as caught:
        read.read_table(spark, f"parquet:{folder}", "originals", by_position=True)
    assert "--id" in str(caught.value)


def test_orc_and_catalogs_have_no_positions(spark, tmp_path, catalog_table):
    pa.orc.write_table(pa.table(ROWS), tmp_path / "rows.orc")
    for ref in (f"orc:{tmp_path}/rows.orc", catalog_table):
        with pytest.raises(InputError, match="--by-position") as caught:
            read.read_table(spark, ref, "originals", by_position=True)
        assert "--id" in str(caught.value)


def matched(spark, typed, text, swap=False):
    """The types and values of a typed key and one from CSV after they were matched."""
    left, right = spark.createDataFrame(typed, "a int"), spark.createDataFrame(text, "b string")
    sides = [Side(left, "left", ("a",)), Side(right, "right", ("b",), is_csv=True)]
    left, right = read.match_key_types(*sides[::-1])[::-1] if swap else read.match_key_types(*sides)
    tables = (left.table, right.table)
    types, rows = zip(*((one.dtypes[0][1], [row[0] for row in one.collect()]) for one in tables), strict=True)
    return *types, *rows


@pytest.mark.parametrize("swap", [False, True])
def test_a_csv_key_takes_the_type_of_the_other_side_or_both_are_text(spark, swap):
    assert matched(spark, [(7,)], [("8",)], swap) == ("int", "int", [7], [8])
    assert matched(spark, [(7,)], [("007",)], swap) == ("string", "string", ["7"], ["007"])


def test_no_key_is_changed_where_both_or_neither_come_from_csv(spark):
    left, right = spark.createDataFrame([(1,)], "a int"), spark.createDataFrame([("1",)], "b string")
    for csv_side in (True, False):
        found = read.match_key_types(Side(left, "left", ("a",), csv_side), Side(right, "right", ("b",), csv_side))
        assert [side.table.dtypes[0][1] for side in found] == ["int", "string"]
