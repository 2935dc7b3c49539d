"""One dialect of CSV is read exactly; every other is refused with what was found and the fix, never guessed."""

import datetime
import decimal

import pytest
from pyspark.sql import types as T

from cloaking import CloakingError
from cloaking.tables import csv as module


@pytest.fixture
def read(spark, csv):
    def table(content, text=("id",), whole_files=False):
        path = csv("table", content).removeprefix("csv:")
        return module.read(spark, path, "originals 'O'", text, whole_files)

    return table


def test_what_is_written_is_read_back_to_the_last_blank_and_microsecond(spark, tmp_path):
    times = [datetime.datetime(2026, 1, 1, 0, 0, 0, microsecond) for microsecond in (0, 1, 2, 999_999)]
    rows = [(text, time, time) for text, time in zip(["a", "a ", " a", '"a,\n'], times, strict=True)]
    table = spark.createDataFrame(rows, "k string, t timestamp, n timestamp_ntz")
    module.write(table, str(tmp_path / "t"), "error")
    back = module.read_back(spark, str(tmp_path / "t"), table.schema)
    assert sorted(tuple(row) for row in back.collect()) == sorted(rows)


def refused(read, content, **options):
    with pytest.raises(CloakingError) as caught:
        read(content, **options)
    assert all(problem.startswith("originals 'O'") for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("whole_files", [False, True])
@pytest.mark.parametrize(
    "content",
    [
        "id,Dim. 1,label\n007,1.5,a\n9007199254740993,-2e-3,b\n",
        "\ufeffid,Dim. 1,label\n007,1.5,a\n9007199254740993,-2e-3,b\n",
        "id,Dim. 1,label\r\n007,1.5,a\r\n9007199254740993,-2e-3,b",
        '"id","Dim. 1","label"\n"007","1.5","a"\n"9007199254740993","-2e-3","b"\n',
    ],
    ids=["plain", "byte order mark", "Windows line ends", "quotes"],
)
def test_numbers_become_double_and_keys_stay_text(read, content, whole_files):
    table = read(content, whole_files=whole_files)
    assert table.dtypes == [("id", "string"), ("Dim. 1", "double"), ("label", "string")]
    assert [tuple(row) for row in table.collect()] == [("007", 1.5, "a"), ("9007199254740993", -0.002, "b")]


def test_a_number_is_the_double_nearest_to_its_text(read):
    texts = ["0.1", "1e23", "2.2250738585072011e-308", "9007199254740993", "-0.30000000000000004", "+.5", "5.", "1E5"]
    rows = "".join(f"{i},{text}\n" for i, text in enumerate(texts))
    assert [row.x for row in read("id,x\n" + rows).collect()] == [float(text) for text in texts]


def test_values_may_hold_commas_quotes_and_letters_of_any_language(read):
    [row] = read('id,x,note\n"a,""b"" é",1,"x,y"\n').collect()
    assert tuple(row) == ('a,"b" é', 1.0, "x,y")


def test_whole_files_may_hold_line_breaks_in_quotes(read):
    assert [row.id for row in read('id,x\n"a\nb",1\nc,2\n', whole_files=True).collect()] == ["a\nb", "c"]


def test_an_empty_value_is_null_and_nan_and_infinity_are_themselves(read):
    found = [row.x for row in read("id,x\n1,\n2,NaN\n3,-inf\n4,Infinity\n5,1\n").collect()]
    assert found[0] is None
    assert str(found[1:]) == "[nan, -inf, inf, 1.0]"


def test_a_folder_of_files_is_one_table(spark, csv):
    csv("folder/a", "id,x\n1,1\n")
    path = csv("folder/b", "id,x\n2,2\n").removeprefix("csv:").rsplit("/", 1)[0]
    assert {row.x for row in module.read(spark, path, "O", ("id",)).collect()} == {1.0, 2.0}


@pytest.mark.parametrize("whole_files", [False, True])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id;x;y\n1;1,5;2\n", ["semicolons", "commas"]),
        ("id\tx\n1\t2\n", ["tabs"]),
        ("id|x\n1|2\n", ["bars"]),
        ("id,é\n1,2\n".encode("latin-1"), ["UTF-8"]),
        ("id,x\né,1\n".encode("latin-1"), ["UTF-8"]),
        ("id,x\n1,2\n".encode("utf-16"), ["UTF-8"]),
        ("", ["empty"]),
        ("id,,x\n1,2,3\n", ["name"]),
        ("id,x,X\n1,2,3\n", ["x", "X", "same name"]),
        ("id,x,x\n1,2,3\n", ["x", "same name"]),
        ("id,x\n1,2\n777333\n", ["1 of 2 rows"]),
        ("id,x\n1,2\n777333,2,3\n777333,1,2\n", ["2 of 3 rows"]),
        ('id,x\n1,"1,5"\n2,777333\n', ["'x'", "1 of its 2", "decimal point"]),
        ("id,x\n1,777333\n2,1 kg\n3,4\n", ["'x'", "1 of its 3"]),
        ("id,x\n1,777333\n2,NA\n", ["'x'", "1 of its 2"]),
        ('id,x,y\n1,"1,5",1\n2,"777333,5",1\n', ["'x'", "2 of its 2", "decimal points"]),
        ("id,x,y\n1, 777333,1\n2, 2.5,1\n", ["'x'", "2 of its 2", "no blanks"]),
    ],
)
def test_another_dialect_is_refused_with_the_fix(read, content, words, whole_files):
    [problem] = refused(read, content, whole_files=whole_files)
    for word in words:
        assert word in problem
    assert "777333" not in problem


def test_all_columns_of_broken_numbers_are_named(read):
    assert len(refused(read, "id,x,y\n1,1,2\n2,a,b\n")) == 2


def test_a_header_alone_is_a_table_without_rows(read):
    assert read("id,x\n").collect() == []


def test_files_of_one_folder_must_have_one_header(spark, csv):
    from cloaking.tables import read

    csv("folder/a", "id,x\n1,1\n")
    folder = csv("folder/b", "x,id\n2,2\n").rsplit("/", 1)[0]
    with pytest.raises(CloakingError):
        read.read_table(spark, folder, "originals", text=("id",))


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (T.IntegerType(), ["1", "-20"], [1, -20]),
        (T.LongType(), ["9007199254740993"], [9007199254740993]),
        (T.DateType(), ["2026-02-28"], [datetime.date(2026, 2, 28)]),
        (T.TimestampType(), ["2026-02-28 01:02:03"], [datetime.datetime(2026, 2, 28, 1, 2, 3)]),
        (T.DecimalType(9, 2), ["1.50", "-7.00"], [decimal.Decimal("1.50"), decimal.Decimal("-7.00")]),
        (T.StringType(), ["007", "a"], ["007", "a"]),
    ],
)
def test_a_key_takes_a_type_where_every_text_is_canonical(spark, kind, texts, values):
    table = module.take_type(spark.createDataFrame([(text,) for text in texts], "id string"), "id", kind)
    assert table.schema["id"].dataType == kind
    assert [row.id for row in table.collect()] == values


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.IntegerType(), "007"),
        (T.IntegerType(), "1.0"),
        (T.IntegerType(), "+1"),
        (T.IntegerType(), "-0"),
        (T.IntegerType(), " 1"),
        (T.IntegerType(), "3000000000"),
        (T.LongType(), "9223372036854775808"),
        (T.DateType(), "2026-2-28"),
        (T.DateType(), "28.02.2026"),
        (T.TimestampType(), "2026-02-28"),
        (T.DecimalType(9, 2), "1.5"),
    ],
)
def test_a_key_stays_text_where_one_text_is_not_canonical(spark, kind, text):
    good = "2026-02-28" if isinstance(kind, T.DateType) else "1"
    assert module.take_type(spark.createDataFrame([(good,), (text,)], "id string"), "id", kind) is None
