"""Names of columns: exact, whatever stands in them, and in the order of their numbers."""

import pytest

from cloaking.columns import column
from cloaking.names import alike, in_order, quoted


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["dim_10", "dim_2", "dim_1"], ["dim_1", "dim_2", "dim_10"]),
        (["Dim. 2", "Dim. 12", "Dim. 1"], ["Dim. 1", "Dim. 2", "Dim. 12"]),
        (["x", "dim_2", "age", "dim_1"], ["x", "dim_1", "dim_2", "age"]),
        (["b2", "a2", "b1", "a1"], ["b1", "b2", "a1", "a2"]),
        (["z", "y", "x"], ["z", "y", "x"]),
        (["dim_02", "dim_1"], ["dim_1", "dim_02"]),
        (["1", "0"], ["0", "1"]),
        ([], []),
    ],
)
def test_names_with_one_prefix_go_by_their_number_and_all_else_keeps_its_place(names, expected):
    assert in_order(names) == expected


def test_twelve_components_have_one_order_whatever_the_order_of_the_columns():
    names = [f"dim_{k}" for k in range(1, 13)]
    assert in_order(sorted(names)) == names
    assert in_order(names[::-1]) == names


def test_a_backtick_is_doubled():
    assert quoted("a`b.c d") == "`a``b.c d`"


@pytest.mark.parametrize("name", ["Dim. 1", "a.b", "a b", "a`b", "`", "select", "é", "a.`b` c"])
def test_a_column_is_found_by_exactly_its_name(spark, name):
    assert spark.sql(f"select 7 as {quoted(name)}").select(column(name)).collect()[0][0] == 7


def test_names_that_differ_only_in_case_are_alike():
    assert alike("ID", ["id", "Id", "idx"]) == ["id", "Id"]
    assert alike("id", ["idx"]) == []
