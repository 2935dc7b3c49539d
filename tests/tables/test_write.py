"""Tables written whole or not at all, in catalogs, files and at addresses, and what an earlier one then is."""

import uuid

import pandas as pd
import pytest
from chispa import assert_df_equality

from cloaking import CloakingError
from cloaking.command.run import Stopped
from cloaking.errors import OutputError
from cloaking.tables import read, replacing, text_files
from cloaking.tables import write as module

ROWS = {"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}


@pytest.fixture
def rows(spark):
    return spark.createDataFrame(pd.DataFrame(ROWS))


def write(table, ref, overwrite=False):
    """Write one table alone; return it as it was read back under its temporary name."""
    with replacing.together() as results:
        back = module.write(table, ref, "counts", overwrite, results)
        back.cache().count()
    return back


@pytest.fixture
def elsewhere(spark, tmp_path):
    """The address of a folder in a store that is no disk to the library: Hadoop's view of the test's folder."""
    (tmp_path / "store").mkdir()
    mount = uuid.uuid4().hex
    spark.conf.set(f"fs.viewfs.mounttable.{mount}.link./store", f"file://{tmp_path}/store")
    yield f"viewfs://{mount}/store"
    spark.conf.unset(f"fs.viewfs.mounttable.{mount}.link./store")


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_a_table_is_read_back_as_it_was_written(spark, tmp_path, kind):
    table = spark.createDataFrame([(9007199254740993, "é,\n'\"", 1), (2, None, 0)], "id long, s string, closer long")
    back = write(table, f"{kind}:{tmp_path}/deep/folder/table")
    if kind != "csv":
        assert_df_equality(back, table, ignore_row_order=True, ignore_nullable=True)
    else:
        assert {(row.id, row.closer) for row in back.collect()} == {(9007199254740993, 1), (2, 0)}
    assert [entry.name for entry in (tmp_path / "deep" / "folder").iterdir()] == ["table"]


# A format and a path, or a schema; in lake.fixed no table is renamed, and the view of a folder only Spark reaches.
KINDS = ["parquet", "csv", "a file", "a link", "", "spark_catalog.default.", "lake.gold.", "lake.fixed.", "elsewhere"]


@pytest.fixture(params=KINDS)
def kept(request, spark, rows, tmp_path):
    """An earlier table of three rows; gives its reference, and a function that lists what is there."""
    if request.param in ("parquet", "csv", "a file", "a link", "elsewhere"):
        where = request.getfixturevalue("elsewhere") if request.param == "elsewhere" else tmp_path
        kind = "csv" if request.param == "csv" else "parquet"
        ref = f"{kind}:{where}/kept"
        if request.param == "a file":
            rows.toPandas().to_parquet(tmp_path / "kept")
        else:
            write(rows, ref)
        if request.param == "a link":
            (tmp_path / "disk").mkdir()
            (tmp_path / "kept").rename(tmp_path / "disk" / "kept")
            (tmp_path / "kept").symlink_to(tmp_path / "disk" / "kept")
        yield ref, lambda: sorted(str(path) for path in tmp_path.rglob("*kept*") if path.suffix != ".crc")
    else:
        if request.param.startswith("lake"):
            request.getfixturevalue("lake")
        schema = request.param and f"IN {request.param[:-1]}"
        write(rows, f"{request.param}kept")
        yield (
            f"{request.param}kept",
            lambda: sorted(row.tableName for row in spark.sql(f"SHOW TABLES {schema}").collect()),
        )
        spark.sql(f"DROP TABLE {request.param}kept")


def count(spark, ref):
    return read.read_table(spark, ref, "counts").count()


def test_an_earlier_table_stands_until_all_results_are_written_and_is_then_replaced(spark, rows, kept):
    ref, listed = kept
    before = listed()
    with pytest.raises(OutputError, match=r"--overwrite|PATH_ALREADY_EXISTS"):
        write(rows, ref)
    with replacing.together() as results:
        back = module.write(rows.limit(1), ref, "counts", True, results)
        assert (back.count(), count(spark, ref)) == (1, 3)
    assert count(spark, ref) == 1
    assert [name for name in listed() if name not in before] == left_empty(spark, ref, listed)


def left_empty(spark, ref, listed):
    """The tables beside this one that hold no rows, where only Spark reaches the store."""
    if "viewfs" not in ref:
        return []
    beside = [name for name in listed() if "/.kept." in name]
    assert [spark.read.parquet(f"{name}/new").count() for name in beside] == [0]
    return beside


@pytest.mark.parametrize("failure", [OutputError("meant"), ZeroDivisionError("meant"), Stopped(15)])
@pytest.mark.parametrize("when", ["before its turn", "in the last move"])
def test_an_earlier_table_is_put_back_on_any_failure(spark, rows, kept, tmp_path, failure, when, caplog):
    ref, listed = kept
    before = listed()

    class Refusing(text_files.Files):
        def move(self, name, to):
            if to.endswith("report.json"):
                raise failure
            super().move(name, to)

    with pytest.raises(type(failure)), replacing.together() as results:
        assert module.write(rows.limit(1), ref, "counts", True, results).count() == 1
        if when == "before its turn":
            raise failure
        text_files.into(str(tmp_path / "report"), results)("report.json", "{}")
        results.results[-1].store = Refusing(results.results[-1].store.store)
    assert count(spark, ref) == 3
    assert list((tmp_path / "report").glob("*") if when == "in the last move" else []) == []
    assert [name for name in listed() if name not in before] == left_empty(spark, ref, listed)
    stands = "emptied but not removed" if "viewfs" in ref else "removed again"
    assert f"counts '{ref}': {stands}, since a later step failed; the earlier one is unchanged" in caplog.messages


@pytest.mark.parametrize("ref", ["parquet:{}/new", "new_test", "lake.gold.new_test", "lake.fixed.new_test"])
@pytest.mark.parametrize("when", ["before its turn", "in the last move"])
def test_a_new_table_is_removed_again_where_a_later_step_fails(request, spark, rows, tmp_path, ref, when, caplog):
    if ref.startswith("lake"):
        request.getfixturevalue("lake")
    ref = ref.format(tmp_path)
    with pytest.raises(OutputError), replacing.together() as results:
        module.write(rows, ref, "counts", False, results)
        if when == "before its turn":
            raise OutputError("meant")
        (tmp_path / "report" / "report.json").mkdir(parents=True)  # where no file can go
        put = text_files.into(str(tmp_path / "report"), results)
        put("report.json", "{}")
        results.results[-1].earlier = "/nosuch/earlier"
    assert f"counts '{ref}': removed again, since a later step failed" in caplog.messages
    assert [path.name for path in tmp_path.rglob("*new*")] == []
    assert ref.startswith("parquet") or not spark.catalog.tableExists(ref)


def test_a_table_that_another_made_during_the_run_stays(spark, rows, tmp_path):
    ref = f"parquet:{tmp_path}/counts"
    with pytest.raises(OutputError, match="created by another process"), replacing.together() as results:
        module.write(rows.limit(1), ref, "counts", False, results)
        write(rows, ref)
    assert count(spark, ref) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["counts"]


def test_where_only_spark_reaches_the_store_a_new_table_is_written_at_once_and_said_to_stand(
    spark, rows, elsewhere, tmp_path, caplog
):
    with pytest.raises(ZeroDivisionError), replacing.together() as results:
        assert module.write(rows, f"parquet:{elsewhere}/new", "counts", True, results).count() == 3
        raise ZeroDivisionError
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["new"]
    assert f"'parquet:{elsewhere}/new': was written by this run" in caplog.text


def test_files_that_outlive_their_dropped_table_are_named(spark, rows, tmp_path, caplog):
    rows.write.option("path", str(tmp_path / "files")).saveAsTable("outside_test")
    try:
        write(rows.limit(1), "outside_test", overwrite=True)
        assert spark.table("outside_test").count() == 1
        [said] = [message for message in caplog.messages if "outside_test" in message]
        assert f"is dropped, but its files are still at file:{tmp_path}/files; remove it" in said
        assert spark.read.parquet(str(tmp_path / "files")).count() == 3
        assert {table.name for table in spark.catalog.listTables() if "outside" in table.name} == {"outside_test"}
    finally:
        spark.sql("DROP TABLE outside_test")


def test_a_mount_point_is_refused_before_anything_is_counted(spark):
    with pytest.raises(OutputError, match="mount point"):
        module.check_new(spark, "parquet:/proc", "counts", overwrite=True)


def test_what_exists_is_refused_unless_it_may_be_replaced(spark, parquet):
    ref = parquet("rows", ROWS)
    with pytest.raises(OutputError, match="--overwrite"):
        module.check_new(spark, ref, "counts", overwrite=False)
    module.check_new(spark, ref, "counts", overwrite=True)
    assert count(spark, ref) == 3


@pytest.mark.parametrize("ref", ["parquet:{}/counts", "kept_test"])
def test_a_write_that_fails_leaves_nothing_and_an_older_table_as_it_was(spark, rows, tmp_path, ref):
    bad = rows.selectExpr("id", "if(id = 3, raise_error('meant'), x) as x")
    ref, before = ref.format(tmp_path), {table.name for table in spark.catalog.listTables()}
    write(rows, ref)
    with pytest.raises(Exception, match="meant"):
        write(bad, ref, overwrite=True)
    assert count(spark, ref) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["counts"] * ref.startswith("parquet")
    assert {table.name for table in spark.catalog.listTables()} - before == {ref} - {f"parquet:{tmp_path}/counts"}
    spark.sql("DROP TABLE IF EXISTS kept_test")


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
def test_a_place_that_takes_no_table_is_named(spark, rows, tmp_path, ref):
    (tmp_path / "file").write_text("")
    ref = ref.format(tmp_path)
    with pytest.raises(CloakingError) as caught:
        module.check_new(spark, ref, "counts", overwrite=False)
        write(rows, ref)
    assert ref in str(caught.value)
