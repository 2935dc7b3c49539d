"""Types, dialects and keys that another program wrote otherwise: right figures, or the one fix."""

import datetime
import gzip
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloaking.columns import type_of
from cloaking.errors import InputError
from cloaking.spark import link
from cloaking.tables import read

# The cloaking of 0, 10, 20 and 30 is 1 (a tie), 0, 4 and 0.
ORIGINALS = {"id": [1, 2, 3, 4], "x": [0.0, 10.0, 20.0, 30.0]}
AVATARS = {"id": [1, 2, 3, 4, 8, 9], "x": [1.0, 10.0, 40.0, 31.0, -1.0, 19.0]}
MEDIAN = 0.5

HALVES = [0.0, 1.0, -2.5, 65504.0, 2.0**-24, -(2.0**-14), np.inf, 0.333251953125]


def pair(parquet, originals=ORIGINALS, avatars=AVATARS):
    return ["--originals", parquet("originals", originals), "--avatars", parquet("avatars", avatars)]


def with_column(columns, name, values):
    return pa.table(columns | {name: values})


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("us"), pa.time64("ns")])
def test_a_column_of_a_type_that_spark_refuses_does_no_harm_where_it_is_not_used(command, parquet, kind):
    done = command(*pair(parquet, with_column(ORIGINALS, "visit", pa.array([1001, 2, 3, 4]).cast(kind))))
    assert done.code == 0, done.problems
    assert (done.report["local_cloaking"], done.report["components"]) == (MEDIAN, ["x"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--id", "visit"], "key column 'visit' is timestamp in nanoseconds"),
        (["--components", "x,visit"], "component 'visit' is timestamp in nanoseconds"),
        (["--group-by", "visit"], "column 'visit' is timestamp in nanoseconds"),
        (["--project", "pca", "--ncp", "1"], "column 'visit' is timestamp in nanoseconds"),
    ],
)
def test_a_column_of_such_a_type_is_named_where_it_is_used(command, parquet, options, said):
    visits = pa.array([1001, 2, 3, 4, 5, 6], pa.int64()).cast(pa.timestamp("ns"))
    tables_of = pair(parquet, with_column(ORIGINALS, "visit", visits[:4]), with_column(AVATARS, "visit", visits))
    done = command(*tables_of, *options)
    assert done.code == 2
    assert any(said in line for line in done.problems), done.problems


def test_nanoseconds_that_the_session_reads_as_numbers_are_no_component(command, parquet, setting):
    visits = pa.array([1001, 2, 3, 4, 5, 6], pa.int64()).cast(pa.timestamp("ns"))
    tables_of = pair(parquet, with_column(ORIGINALS, "visit", visits[:4]), with_column(AVATARS, "visit", visits))
    with setting("spark.sql.legacy.parquet.nanosAsLong", "true"):
        done = command(*tables_of)
    assert (done.code, done.report["components"]) == (0, ["x"])


def test_uuids_are_keys(command, parquet):
    ids = [bytes([0xAB, 0xCD, *[0] * 13, number]) for number in AVATARS["id"]]
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(ids, pa.binary(16)))
    done = command(*pair(parquet, pa.table({"id": uuids[:4], "x": ORIGINALS["x"]}), pa.table(AVATARS | {"id": uuids})))
    assert (done.code, done.report["local_cloaking"]) == (0, MEDIAN)


def test_a_uuid_is_read_as_its_usual_text(spark, parquet):
    value = bytes.fromhex("0011223344556677889900aabbccddee")
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value], pa.binary(16)))
    found = read.read_table(spark, parquet("rows", pa.table({"id": uuids})), "originals").first()
    assert found.id == "00112233-4455-6677-8899-00aabbccddee"


def test_floats_of_16_bits_are_read_to_the_last_bit(spark, parquet):
    values = np.array(HALVES, np.float16)
    found = read.read_table(
        spark, parquet("rows", pa.table({"x": pa.array(values), "n": range(len(values))})), "originals"
    )
    rows = [row.x for row in found.orderBy("n").collect()]
    assert rows == values.astype(float).tolist()


def test_partitions_and_unsigned_numbers_stay_where_another_column_is_refused(spark, tmp_path):
    kinds = {"a": pa.uint8(), "b": pa.uint16(), "c": pa.uint32(), "d": pa.uint64()}
    columns = {name: pa.array([1], kind) for name, kind in kinds.items()}
    folder = tmp_path / "t" / "site=3"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns | {"t": pa.array([datetime.time(1)], pa.time64("us"))}), folder / "f.parquet")
    found = read.read_table(spark, f"parquet:{tmp_path}/t", "originals")
    plain = {"a": "smallint", "b": "int", "c": "bigint", "d": "decimal(20,0)", "t": "time of day", "site": "int"}
    assert {name: type_of(found, name) for name in found.columns} == plain
    assert found.drop("t").first() == (1, 1, 1, 1, 3)


def test_a_mistake_of_the_program_is_not_blamed_on_the_table(command, parquet, monkeypatch, capsys):
    monkeypatch.setattr(link, "link", lambda originals, *_: originals.select("nosuch"))
    done = command(*pair(parquet))
    assert done.code == 1
    assert "Traceback" in done.problems[0]


ROWS = {"id": [1, 2, 3, 4], "x": [0.5, 1.5, 2.5, 3.5]}


def one_problem(command, originals, avatars, *options):
    done = command("--originals", originals, "--avatars", avatars, *options)
    assert done.code == 2, done
    [line] = done.problems
    return line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id ,x\n1,0.5\n", "there is 'id ', with blanks"),
        ("\ufeff\ufeffid,x\n1,0.5\n", "two byte order marks"),
        ("id\u200b,x\n1,0.5\n", "with blanks or signs that do not show"),
        ("sep=,\nid,x\n1,0.5\n", "its first line is Excel's 'sep=' and not the header; remove that line"),
        ("sep=;\nid;x\n1;0.5\n", "its first line is Excel's 'sep=;'"),
        ("7,0.123456\n8,0.5\n", "2 of the 2 names in its first line are numbers"),
        ("ann,-3,0.123456\nbob,1,0.5\n", "2 of the 3 names in its first line are numbers"),
        ("id,x\n1,0.5\n".encode("utf-16"), "seems to be UTF-16"),
        (gzip.compress(b"id,x\n1,0.5\n", mtime=0), "is compressed by gzip"),
    ],
)
def test_a_csv_file_of_another_kind_is_told_by_its_first_line(command, parquet, csv, content, said):
    done = command("--originals", csv("o", content), "--avatars", parquet("a", ROWS))
    assert done.code == 2
    assert any(said in line for line in done.problems), done.problems
    assert "0.123456" not in "".join(done.problems)


def test_a_zip_archive_is_no_csv_file(command, parquet, tmp_path):
    with zipfile.ZipFile(tmp_path / "o.xlsx", "w") as archive:
        archive.writestr("sheet.xml", "<a/>")
    assert "is a zip archive" in one_problem(command, f"csv:{tmp_path}/o.xlsx", parquet("a", ROWS))
    assert "a file is not of this format" in one_problem(command, f"parquet:{tmp_path}/o.xlsx", parquet("a", ROWS))


@pytest.mark.parametrize("names", [["0", "1", "2"], ["id", "2019", "2020"]])
def test_a_header_may_hold_whole_numbers(command, csv, names):
    rows = f"{','.join(names)}\n1,0.5,0.25\n2,1.5,0.5\n"
    assert command("--originals", csv("o", rows), "--avatars", csv("a", rows), "--id", names[0]).code == 0


def test_a_file_whose_name_is_a_pattern_is_refused(command, parquet):
    parquet("o1", {"id": [9], "x": [9.0]})
    assert "rename the file" in one_problem(command, parquet("o[1]", ROWS), parquet("a", ROWS))


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["1.0", "2.0", "3.0", "4.0"], "4 of their keys are there, but written with .0 behind whole numbers"),
        (["1 ", " 2", "3\u00a0", "4"], "3 of their keys are there, but written with blanks around"),
        (["001", "002", "003", "004"], "written with zeros in front of numbers"),
    ],
)
def test_keys_that_are_only_written_otherwise_are_named_so(command, csv, ids, said):
    avatars = "".join(f'"{key}",0.5\n' for key in ids)
    line = one_problem(command, csv("o", "id,x\n1,0.5\n2,1.5\n3,2.5\n4,0\n"), csv("a", f"id,x\n{avatars}"))
    assert said in line


def test_true_and_TRUE_are_one_key_in_other_case(command, csv):  # noqa: N802
    line = one_problem(command, csv("o", "id,x\nTrue,0.5\nFalse,1.5\n"), csv("a", "id,x\nTRUE,0.5\nFALSE,1\n"))
    assert "2 of their keys are there, but written in other upper and lower case" in line


def test_keys_that_are_other_ones_are_not_called_the_same(command, csv):
    line = one_problem(command, csv("o", "id,x\n1,0.5\n2,1.5\n3,2\n"), csv("a", "id,x\n7,0.5\n8,1\n01,3\n"))
    assert "add them" in line


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_component_that_is_null_throughout_is_to_be_left_out(command, parquet, csv, kind):
    empty = pd.DataFrame(ROWS | {"y": [None] * 4}).astype({"y": float})
    ref = parquet("o", empty) if kind == "parquet" else csv("o", empty.to_csv(index=False))
    line = one_problem(command, ref, parquet("a", ROWS | {"y": ROWS["x"]}))
    assert "component 'y' is null in 4 of 4 rows; leave it out, by --components" in line


@pytest.mark.parametrize(
    ("ref", "meaning"),
    [("parquet:/nosuch/file", "no such file or folder"), ("nosuch", "no such table"), ("xyz:/tmp", "no such format")],
)
def test_spark_s_error_classes_are_put_into_words(spark, ref, meaning):
    with pytest.raises(InputError, match=meaning):
        read.read_table(spark, ref, "originals")
