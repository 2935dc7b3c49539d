"""References to tables, by name or by format and path; rows by their position; counts written whole or not at all."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pytest
from chispa import assert_df_equality

from cloaking import CloakingError, files, tables
from cloaking.errors import InputError, OutputError

ROWS = {"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}


def path_of(ref):
    return Path(ref.split(":", 1)[1])


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
        assert_df_equality(tables.read(spark, ref, "originals"), expected, ignore_row_order=True, ignore_nullable=True)
    found = tables.read(spark, csv("rows", "id,x\n1,0.5\n2,1.5\n3,2.5\n"), "originals", text=("id",))
    assert [tuple(row) for row in found.collect()] == [("1", 0.5), ("2", 1.5), ("3", 2.5)]


def test_only_the_rows_of_the_condition_are_kept(spark, parquet):
    found = tables.read(spark, parquet("rows", ROWS), "originals", where="x > 1 and id <> 3")
    assert [row.id for row in found.collect()] == [2]


@pytest.mark.parametrize(
    "ref",
    ["nosuch", "nosuch.table", "no.such.table", "not a table", "parquet:/nosuch/file", "csv:/nosuch/file", "xyz:/tmp"],
)
def test_a_table_that_cannot_be_read_is_named(spark, ref):
    with pytest.raises(InputError, match=r"^originals") as caught:
        tables.read(spark, ref, "originals")
    [problem] = caught.value.problems
    assert ref in problem
    assert "\n" not in problem


def test_a_file_of_another_format_is_refused(spark, tmp_path):
    (tmp_path / "text.parquet").write_text("secret")
    with pytest.raises(InputError, match="originals") as caught:
        tables.read(spark, f"parquet:{tmp_path}/text.parquet", "originals").count()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("where", ["nosuch = 1", "x >", "sum(x) > 1"])
def test_a_condition_that_is_none_is_refused_and_shown(spark, parquet, where):
    with pytest.raises(InputError, match="condition") as caught:
        tables.read(spark, parquet("rows", ROWS), "originals", where=where)
    assert where in str(caught.value)


def numbered(spark, ref, **options):
    """The rows in the order of the numbers that reading by position gave them."""
    frame = tables.read(spark, ref, "originals", by_position=True, **options)
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
        assert dict(tables.read(spark, ref, "originals", by_position=True).dtypes)["id"] == "bigint"


def test_a_folder_of_one_file_has_positions_and_one_of_several_has_none(spark, parquet, tmp_path):
    parquet("rows", ROWS)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(tmp_path / "rows.parquet", folder / "a.parquet")
    assert len(numbered(spark, f"parquet:{folder}")) == 3
    shutil.copy(tmp_path / "rows.parquet", folder / "b.parquet")
    with pytest.raises(InputError, match="2") as caught:
        tables.read(spark, f"parquet:{folder}", "originals", by_position=True)
    assert "--id" in str(caught.value)


def test_orc_and_catalogs_have_no_positions(spark, tmp_path, catalog_table):
    pa.orc.write_table(pa.table(ROWS), tmp_path / "rows.orc")
    for ref in (f"orc:{tmp_path}/rows.orc", catalog_table):
        with pytest.raises(InputError, match="--by-position") as caught:
            tables.read(spark, ref, "originals", by_position=True)
        assert "--id" in str(caught.value)


def matched(spark, typed, text, swap=False):
    """The types and values of a typed key and one from CSV after they were matched."""
    left, right = spark.createDataFrame(typed, "a int"), spark.createDataFrame(text, "b string")
    if swap:
        right, left = tables.match_key_types(right, ["b"], True, left, ["a"], False)
    else:
        left, right = tables.match_key_types(left, ["a"], False, right, ["b"], True)
    types, rows = zip(*((side.dtypes[0][1], [row[0] for row in side.collect()]) for side in (left, right)), strict=True)
    return *types, *rows


@pytest.mark.parametrize("swap", [False, True])
def test_a_csv_key_takes_the_type_of_the_other_side_or_both_are_text(spark, swap):
    assert matched(spark, [(7,)], [("8",)], swap) == ("int", "int", [7], [8])
    assert matched(spark, [(7,)], [("007",)], swap) == ("string", "string", ["7"], ["007"])


def test_no_key_is_changed_where_both_or_neither_come_from_csv(spark):
    left, right = spark.createDataFrame([(1,)], "a int"), spark.createDataFrame([("1",)], "b string")
    for csv_side in (True, False):
        found = tables.match_key_types(left, ["a"], csv_side, right, ["b"], csv_side)
        assert [table.dtypes[0][1] for table in found] == ["int", "string"]


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_a_table_is_read_back_as_it_was_written(spark, tmp_path, kind):
    table = spark.createDataFrame([(9007199254740993, "é,\n'\"", 1), (2, None, 0)], "id long, s string, closer long")
    back = tables.write(table, f"{kind}:{tmp_path}/deep/folder/table", overwrite=False)
    if kind != "csv":
        assert_df_equality(back, table, ignore_row_order=True, ignore_nullable=True)
    else:
        assert {(row.id, row.closer) for row in back.collect()} == {(9007199254740993, 1), (2, 0)}
    assert [entry.name for entry in (tmp_path / "deep" / "folder").iterdir()] == ["table"]


def test_a_table_of_the_catalog_is_written_and_removed(spark):
    table = spark.createDataFrame(pd.DataFrame(ROWS))
    back = tables.write(table, "written_test", overwrite=False)
    assert_df_equality(back, table, ignore_row_order=True, ignore_nullable=True)
    with pytest.raises(OutputError, match="--overwrite"):
        tables.write(table, "written_test", overwrite=False)
    assert tables.write(table.limit(1), "written_test", overwrite=True).count() == 1
    assert "written_test" in tables.remove(spark, "written_test")
    assert not spark.catalog.tableExists("written_test")


def test_what_exists_is_refused_unless_it_may_be_replaced(spark, parquet, tmp_path):
    ref, table = parquet("rows", ROWS), spark.createDataFrame(pd.DataFrame(ROWS)).limit(1)
    with pytest.raises(OutputError, match="--overwrite"):
        tables.check_new(spark, ref, overwrite=False)
    with pytest.raises(OutputError, match="--overwrite"):
        tables.write(table, ref, overwrite=False)
    assert tables.read(spark, ref, "counts").count() == 3
    folder = f"parquet:{tmp_path}/counts"
    tables.write(spark.createDataFrame(pd.DataFrame(ROWS)), folder, overwrite=False)
    assert tables.write(table, folder, overwrite=True).count() == 1
    tables.remove(spark, folder)
    assert not path_of(folder).exists()


def test_a_single_file_can_be_replaced_too(spark, parquet):
    ref = parquet("rows", ROWS)
    assert tables.write(spark.createDataFrame(pd.DataFrame(ROWS)).limit(2), ref, overwrite=True).count() == 2


def test_a_write_that_fails_leaves_nothing_and_an_older_table_as_it_was(spark, tmp_path):
    good = spark.createDataFrame(pd.DataFrame(ROWS))
    bad = good.selectExpr("id", "if(id = 3, raise_error('meant'), x) as x")
    ref = f"parquet:{tmp_path}/counts"
    tables.write(good, ref, overwrite=False)
    with pytest.raises(Exception, match="meant"):
        tables.write(bad, ref, overwrite=True)
    assert tables.read(spark, ref, "counts").count() == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["counts"]


@pytest.mark.parametrize(
    "ref",
    ["xyz:{}/counts", "nosuch.counts", "no.such.counts", "not a table", "csv:/proc/counts", "parquet:{}/file/counts"],
)
def test_a_place_that_takes_no_table_is_named(spark, tmp_path, ref):
    (tmp_path / "file").write_text("")
    ref = ref.format(tmp_path)
    table = spark.createDataFrame(pd.DataFrame(ROWS))
    with pytest.raises(CloakingError) as caught:
        tables.check_new(spark, ref, overwrite=False)
        tables.write(table, ref, overwrite=False)
    assert ref in str(caught.value)


def test_a_text_is_written_whole_and_replaces_an_older_one(tmp_path):
    folder = tmp_path / "new" / "folder"
    for text in ("an older and longer text", "é"):
        assert files.write(str(folder), "report.json", text) == f"{folder}/report.json"
        assert (folder / "report.json").read_text(encoding="utf-8") == text
    assert len(list(folder.iterdir())) == 1


def test_a_text_can_go_to_an_address(tmp_path):
    files.write(f"file://{tmp_path}/reports/", "report.json", "{}")
    assert (tmp_path / "reports" / "report.json").read_text() == "{}"


@pytest.mark.parametrize("folder", ["{}/file", "{}/file/deeper", "nosuch://bucket/folder"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, folder):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--output"):
        files.write(folder.format(tmp_path), "report.json", "{}")
