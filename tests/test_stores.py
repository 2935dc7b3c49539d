"""Tables and texts written whole or not at all, in catalogs, files and at addresses."""

from pathlib import Path

import pandas as pd
import pytest
from chispa import assert_df_equality

from cloaking import CloakingError, files, stores, tables
from cloaking.errors import OutputError

ROWS = {"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}


def path_of(ref):
    return Path(ref.split(":", 1)[1])


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_a_table_is_read_back_as_it_was_written(spark, tmp_path, kind):
    table = spark.createDataFrame([(9007199254740993, "é,\n'\"", 1), (2, None, 0)], "id long, s string, closer long")
    back = stores.write(table, f"{kind}:{tmp_path}/deep/folder/table", "counts", overwrite=False)
    if kind != "csv":
        assert_df_equality(back, table, ignore_row_order=True, ignore_nullable=True)
    else:
        assert {(row.id, row.closer) for row in back.collect()} == {(9007199254740993, 1), (2, 0)}
    assert [entry.name for entry in (tmp_path / "deep" / "folder").iterdir()] == ["table"]


@pytest.mark.parametrize("schema", ["", "spark_catalog.default.", "lake.gold.", "lake.fixed."])  # fixed: no renaming
def test_a_table_of_a_catalog_is_written_and_removed(request, spark, schema):
    if schema.startswith("lake"):
        request.getfixturevalue("lake")
    name, table = f"{schema}written_test", spark.createDataFrame(pd.DataFrame(ROWS))
    before = spark.sql(f"SHOW TABLES {schema and f'IN {schema[:-1]}'}").count()
    back = stores.write(table, name, "counts", overwrite=False)
    assert_df_equality(back, table, ignore_row_order=True, ignore_nullable=True)
    with pytest.raises(OutputError, match="--overwrite"):
        stores.write(table, name, "counts", overwrite=False)
    assert stores.write(table.limit(1), name, "counts", overwrite=True).count() == 1
    assert spark.sql(f"SHOW TABLES {schema and f'IN {schema[:-1]}'}").count() == before + 1
    assert name in stores.remove(spark, name, "counts")
    assert not spark.catalog.tableExists(name)


def test_what_exists_is_refused_unless_it_may_be_replaced(spark, parquet, tmp_path):
    ref, table = parquet("rows", ROWS), spark.createDataFrame(pd.DataFrame(ROWS)).limit(1)
    with pytest.raises(OutputError, match="--overwrite"):
        stores.check_new(spark, ref, "counts", overwrite=False)
    with pytest.raises(OutputError, match="--overwrite"):
        stores.write(table, ref, "counts", overwrite=False)
    assert tables.read(spark, ref, "counts").count() == 3
    folder = f"parquet:{tmp_path}/counts"
    stores.write(spark.createDataFrame(pd.DataFrame(ROWS)), folder, "counts", overwrite=False)
    assert stores.write(table, folder, "counts", overwrite=True).count() == 1
    stores.remove(spark, folder, "counts")
    assert not path_of(folder).exists()


def test_a_single_file_can_be_replaced_too(spark, parquet):
    ref = parquet("rows", ROWS)
    assert stores.write(spark.createDataFrame(pd.DataFrame(ROWS)).limit(2), ref, "counts", overwrite=True).count() == 2


def test_a_write_that_fails_leaves_nothing_and_an_older_table_as_it_was(spark, tmp_path):
    good = spark.createDataFrame(pd.DataFrame(ROWS))
    bad = good.selectExpr("id", "if(id = 3, raise_error('meant'), x) as x")
    ref = f"parquet:{tmp_path}/counts"
    stores.write(good, ref, "counts", overwrite=False)
    with pytest.raises(Exception, match="meant"):
        stores.write(bad, ref, "counts", overwrite=True)
    assert tables.read(spark, ref, "counts").count() == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["counts"]


def test_a_write_that_fails_leaves_a_table_of_the_catalog_as_it_was(spark):
    good = spark.createDataFrame(pd.DataFrame(ROWS))
    bad = good.selectExpr("id", "if(id = 3, raise_error('meant'), x) as x")
    before = {table.name for table in spark.catalog.listTables()}
    stores.write(good, "kept_test", "counts", overwrite=False)
    with pytest.raises(Exception, match="meant"):
        stores.write(bad, "kept_test", "counts", overwrite=True)
    assert spark.table("kept_test").count() == 3
    assert {table.name for table in spark.catalog.listTables()} - before == {"kept_test"}
    stores.remove(spark, "kept_test", "counts")


@pytest.mark.parametrize(
    "ref",
    [
        "xyz:{}/counts",
        "nosuch.counts",
        "no.such.counts",
        "not a table",
        "csv:/proc/counts",
        "jdbc:counts",
        "parquet:{}/file/counts",
    ],
)
def test_a_place_that_takes_no_table_is_named(spark, tmp_path, ref):
    (tmp_path / "file").write_text("")
    ref = ref.format(tmp_path)
    table = spark.createDataFrame(pd.DataFrame(ROWS))
    with pytest.raises(CloakingError) as caught:
        stores.check_new(spark, ref, "counts", overwrite=False)
        stores.write(table, ref, "counts", overwrite=False)
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
    with pytest.raises(OutputError, match="--output"):
        files.check(folder.format(tmp_path))


@pytest.mark.parametrize("folder", ["{}", "{}/new/folder", "file://{}"])
def test_trying_a_folder_leaves_nothing(tmp_path, folder):
    (tmp_path / "report.json").write_text("{}")
    files.check(folder.format(tmp_path))
    assert [path.name for path in tmp_path.rglob("*")] == ["report.json"]
