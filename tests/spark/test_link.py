"""Originals and avatars side by side, whatever the key, the names and the order of the rows."""

import datetime
import decimal

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F

from cloaking.spark import link
from cloaking.spark.link import Columns, by_link_table, choose_components, merge_small_groups


def linked(originals, avatars, columns, tasks=2):
    return link.link(link.originals(originals, columns), link.avatars(avatars, columns), columns, tasks)


def test_each_original_gets_the_coordinates_of_its_own_avatar(spark):
    originals = spark.createDataFrame([(1, 10.0, 11), (2, 20.0, 22)], "id long, x double, y int")
    avatars = spark.createDataFrame([(3, 0.0, 0), (2, 2.5, 3), (1, 1.5, 2)], "id long, x float, y int")
    expected = spark.createDataFrame(
        [(1, 0, 10.0, 11.0, 1.5, 2.0), (2, 0, 20.0, 22.0, 2.5, 3.0)],
        "key_1 long, group int, original_1 double, original_2 double, avatar_1 double, avatar_2 double",
    )
    found = linked(originals, avatars, Columns(("id",), ("id",), ("x", "y")))
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_a_key_of_two_columns_links_only_where_both_agree(spark):
    originals = spark.createDataFrame([("a", 1, 0.0), ("a", 2, 1.0), ("b", 1, 2.0)], "ward string, id int, x double")
    avatars = spark.createDataFrame([("b", 1, 7.0), ("a", 2, 8.0), ("a", 1, 9.0)], "w string, n int, x double")
    found = linked(originals, avatars, Columns(("ward", "id"), ("w", "n"), ("x",)))
    assert {(row.key_1, row.key_2, row.avatar_1) for row in found.collect()} == {
        ("a", 1, 9.0), ("a", 2, 8.0), ("b", 1, 7.0),
    }  # fmt: skip


def test_the_ids_of_avatars_of_their_own_are_under_the_name_of_the_key_or_in_avatar_id(spark):
    def found(*names):
        return link.own_ids(spark.createDataFrame([], ", ".join(f"{name} long" for name in names)), ("id",))

    assert found("id", "x") == found("id", "avatar_id") == found("x") == ("id",)
    assert found("avatar_id", "x") == ("avatar_id",)
    assert found("Avatar_ID", "x") == ("Avatar_ID",)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("int", [1, -2]),
        ("bigint", [9007199254740993, 9007199254740992]),
        ("string", ["007", "7"]),
        ("string", ["1b4e28ba-2fa1-11d2-883f-0016d3cca427", "1b4e28ba-2fa1-11d2-883f-0016d3cca428"]),
        ("date", [datetime.date(1969, 12, 31), datetime.date(2026, 2, 28)]),
        ("timestamp", [datetime.datetime(2026, 2, 28, 1, 2, 3, 4), datetime.datetime(2026, 2, 28, 1, 2, 3, 5)]),
        ("decimal(20,2)", [decimal.Decimal("9007199254740993.01"), decimal.Decimal("9007199254740993.02")]),
        ("binary", [bytearray(b"\0\1"), bytearray(b"\0\2")]),
    ],
)
def test_a_key_of_any_type_links_and_passes_untouched(spark, kind, keys):
    originals = spark.createDataFrame([(key, float(i)) for i, key in enumerate(keys)], f"id {kind}, x double")
    avatars = spark.createDataFrame([(key, 10.0 + i) for i, key in enumerate(keys)], f"id {kind}, x double")
    found = linked(originals, avatars.orderBy(F.desc("x")), Columns(("id",), ("id",), ("x",)))
    assert found.schema["key_1"].dataType == originals.schema["id"].dataType
    assert [(r.key_1, r.original_1, r.avatar_1) for r in found.orderBy("original_1").collect()] == [
        (key, float(i), 10.0 + i) for i, key in enumerate(keys)
    ]


def test_the_type_of_the_key_is_that_of_the_originals_where_the_avatars_have_a_wider_one(spark):
    originals = spark.createDataFrame([(1, 0.0)], "id int, x double")
    avatars = spark.createDataFrame([(1, 1.0)], "id long, x double")
    assert dict(linked(originals, avatars, Columns(("id",), ("id",), ("x",))).dtypes)["key_1"] == "int"


def test_no_name_of_a_column_can_clash_with_our_own(spark):
    names = ["key_1", "group", "avatar_1", "original 1", "Dim. 1", "a`b"]
    schema = ", ".join(f"`{name.replace('`', '``')}` double" for name in names[1:])
    originals = spark.createDataFrame([(1, 1.0, 2.0, 3.0, 4.0, 5.0)], f"key_1 int, {schema}")
    found = linked(originals, originals, Columns(("key_1",), ("key_1",), tuple(names[1:]))).collect()[0]
    assert (
        [found[f"original_{k}"] for k in range(1, 6)] == [found[f"avatar_{k}"] for k in range(1, 6)] == [1, 2, 3, 4, 5]
    )


@pytest.mark.parametrize("shuffle_partitions", [2, 200])
@pytest.mark.parametrize("tasks", [1, 3])
def test_the_number_of_tasks_that_is_asked_for_is_kept(spark, tasks, shuffle_partitions):
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", shuffle_partitions)  # Spark makes no fewer of a join
    try:
        table = spark.range(1_000).select("id", F.lit(0.5).alias("x"))
        found = linked(table, table, Columns(("id",), ("id",), ("x",)), tasks)
        assert len(found.select(F.spark_partition_id().alias("p")).distinct().collect()) == tasks
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)


def test_a_link_table_says_which_original_an_avatar_was_made_from(spark):
    avatars = spark.createDataFrame([("u", 1.0), ("v", 2.0), ("w", 3.0)], "id string, x double")
    link = spark.createDataFrame([(20, "u"), (10, "v")], "original_id int, avatar_id string")
    found = {row.x: row.original_id for row in by_link_table(avatars, "id", link).collect()}
    assert found == {1.0: 20, 2.0: 10, 3.0: None}


def test_an_older_link_column_of_the_avatars_gives_way_to_the_link_table(spark):
    avatars = spark.createDataFrame([(1, 99, 1.0)], "id int, original_id int, x double")
    link = spark.createDataFrame([(10, 1)], "original_id int, avatar_id int")
    assert [row.original_id for row in by_link_table(avatars, "id", link).collect()] == [10]


@pytest.mark.parametrize(
    ("schema", "apart", "components", "ncp", "expected"),
    [
        ("id long, dim_10 double, dim_2 float, dim_1 int", ["id"], None, None, ["dim_1", "dim_2", "dim_10"]),
        ("`Dim. 10` double, `Dim. 9` double, id long", ["id"], None, 1, ["Dim. 9"]),
        ("id int, a double, s string, b decimal(5,2), ok boolean, d date", ["id"], None, None, ["a", "b"]),
        ("id int, age int, x double", ["id", "age"], None, None, ["x"]),
        ("id int, x2 double, x1 double", ["id"], ["x2", "x1"], None, ["x2", "x1"]),
        ("id int, x2 double, x1 double", ["id"], ["x2", "x1"], 1, ["x2"]),
    ],
)
def test_components_are_those_named_or_the_numeric_ones_in_the_order_of_their_numbers(
    spark, schema, apart, components, ncp, expected
):
    chosen, problems = choose_components(spark.createDataFrame([], schema), apart, components, ncp)
    assert (list(chosen), problems) == (expected, [])


@pytest.mark.parametrize("ncp", [0, -1, 3])
def test_an_ncp_out_of_range_is_a_problem(spark, ncp):
    _, [problem] = choose_components(spark.createDataFrame([], "id int, x double, y double"), ["id"], None, ncp)
    assert f"--ncp {ncp}" in problem
    assert "2" in problem


def test_no_numeric_column_is_a_problem(spark):
    _, [problem] = choose_components(spark.createDataFrame([], "id int, x string"), ["id"], None, None)
    assert "--components" in problem


@pytest.mark.parametrize(
    ("sizes", "alone", "merged"),
    [
        ({"a": 100, "b": 300}, ["b", "a"], False),
        ({"a": 100, "b": 99, "c": 1}, ["a"], True),  # the rest is 100
        ({"a": 100, "b": 200, "c": 99}, ["b"], True),  # 99 are too few: a joins them
        ({"a": 99, "b": 0}, [], True),
        ({"a": 150, "b": 5}, [], True),
        ({"b": 100, "a": 100}, ["a", "b"], False),
    ],
)
def test_small_groups_are_merged_and_the_next_smallest_joins_them_where_they_are_too_few(sizes, alone, merged):
    assert merge_small_groups(sizes) == (alone, merged)


def test_the_row_index_that_pandas_leaves_in_its_files_is_no_component(spark):
    table = spark.createDataFrame([(1, 0.5, 7)], "id long, dim_1 double, __index_level_0__ long")
    assert link.choose_components(table, ["id"], None, None) == (("dim_1",), [])
