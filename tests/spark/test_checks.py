"""Whatever is wrong with the input is named with table, column and count, all of it at once, and never a value."""

import math
from decimal import Decimal

import pytest

from cloaking import CloakingError
from cloaking.columns import Side
from cloaking.options import Options
from cloaking.spark import plan
from cloaking.spark.link import own_ids

LABELS = ("originals 'O'", "avatars 'A'", "link 'L'")
SECRET = 777_333.25  # stands for what no message may show
NAN, INF = math.nan, math.inf


def prepare(originals, avatars, link=None, labels=("originals", "avatars", "link"), **options):
    """Prepare with options as `local_cloaking` takes them."""
    chosen = Options.of(options)
    key = chosen.made_from or chosen.id if link is None else own_ids(avatars, chosen.id)
    sides = Side(originals, labels[0], chosen.id), Side(avatars, labels[1], key)
    return plan.prepare(*sides, chosen, linked_by=None if link is None else Side(link, labels[2], ()))


@pytest.fixture
def found(spark):
    """The problems of two tables, each given as rows and schema."""

    def problems(originals, avatars, link=None, **options):
        tables = [spark.createDataFrame(*table) for table in (originals, avatars)]
        if link is not None:
            options["link"] = spark.createDataFrame(*link)
        with pytest.raises(CloakingError) as caught:
            prepare(*tables, labels=LABELS, **options)
        assert str(SECRET) not in str(caught.value)
        assert all("\n" not in problem for problem in caught.value.problems)
        return caught.value.problems

    return problems


def good(first=1, rows=4):
    return [(key, float(key), 0.5) for key in range(first, first + rows)], "id long, x double, y double"


def with_row(*row):
    return [*good()[0], row], good()[1]


# Case -> originals, avatars, what the one line must hold: the table, the column, the count.
ONE_PROBLEM = {
    "no originals": (([], good()[1]), good(), ["O", "no rows"]),
    "no avatars": (good(), ([], good()[1]), ["A", "no rows"]),
    "a null key among the originals": (with_row(None, SECRET, 0.0), good(), ["O", "(column 'id')", "1 of 5"]),
    "a null key among the avatars": (good(), with_row(None, SECRET, 0.0), ["A", "'id'", "1 of 5"]),
    "a repeated original": (with_row(3, SECRET, 0.0), good(), ["O", "'id'", "1 "]),
    "a repeated avatar": (good(), with_row(3, SECRET, 0.0), ["A", "'id'", "1 "]),
    "originals without avatars": (good(rows=6), good(), ["A", "'id'", "2 of 6"]),
    "a null coordinate": (good(rows=5), with_row(5, None, SECRET), ["A", "'x'", "null", "1 of 5"]),
    "a NaN": (with_row(5, SECRET, NAN), good(rows=5), ["O", "'y'", "NaN", "1 of 5"]),
    "an infinity": (with_row(5, -INF, SECRET), good(rows=5), ["O", "'x'", "infinite", "1 of 5"]),
    "no key column": (good(), ([(1, 1.0, 1.0)], "key long, x double, y double"), ["A", "'id'", "--made-from"]),
    "no component": (good(), ([(k, 1.0) for k in range(1, 5)], "id long, x double"), ["A", "'y'", "missing"]),
    "a component by another case": (
        good(), (good()[0], "id long, X double, y double"), ["A", "'x'", "'X'"],
    ),
    "a component by another case, upper": (
        (good()[0], "id long, X double, y double"), good(), ["A", "'X'", "there is 'x'"],
    ),
    "a component of text": (
        good(), ([(k, "a", 1.0) for k in range(1, 5)], "id long, x string, y double"), ["A", "'x'", "string"],
    ),
    "keys of different types": (
        good(), ([(str(k), 1.0, 1.0) for k in range(1, 5)], "id string, x double, y double"),
        ["O", "A", "'id'", "bigint", "string"],
    ),
    "decimals of 39 digits together": (
        ([(Decimal(1), 1.0, 1.0)], "id decimal(38,20), x double, y double"),
        ([(Decimal(1), 1.0, 1.0)], "id decimal(21,2), x double, y double"), ["'id'", "decimal(38,20)", "decimal(21,2)"],
    ),
    "a key that is no key": (
        ([(1.0, 1.0, 1.0)], "id double, x double, y double"), ([(1, 1.0, 1.0)], good()[1]), ["O", "'id'", "double"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE_PROBLEM)
def test_what_is_wrong_is_named(found, case):
    originals, avatars, words = ONE_PROBLEM[case]
    [problem] = found(originals, avatars)
    for word in words:
        assert word in problem, problem


def test_decimals_of_38_digits_together_are_compared_without_rounding(spark):
    rows = [(Decimal("123456789012345678.25"), 1.0), (Decimal("-0.5"), 2.0)]
    wide, narrow = (spark.createDataFrame(rows, f"id decimal({size}), x double") for size in ("38,20", "20,2"))
    assert prepare(wide, narrow).rows.originals == 2
    assert prepare(narrow, wide).rows.originals == 2


@pytest.mark.parametrize("ncp", [0, 3, -2])
def test_an_ncp_out_of_range_is_refused(found, ncp):
    [problem] = found(good(), good(), ncp=ncp)
    assert str(ncp) in problem
    assert "2" in problem


def test_the_integers_that_a_double_would_round_are_refused(found):
    schema = "id long, x long"
    originals = [(1, 2**53), (2, 2**53 + 1), (3, -(2**53) - 1)], schema
    [problem] = found(originals, ([(k, 0) for k in (1, 2, 3)], schema))
    assert "O" in problem
    assert "'x'" in problem
    assert "2 of 3" in problem


def test_so_are_those_that_a_decimal_without_a_fraction_holds(found):
    schema = "id long, x decimal(20,0)"
    rows = [(1, Decimal(2**53)), (2, Decimal(2**53 + 1)), (3, Decimal(-(2**53) - 1))]
    [problem] = found((rows, schema), ([(k, Decimal(0)) for k in (1, 2, 3)], schema))
    assert all(words in problem for words in ("O", "'x'", "2^53", "2 of 3"))


def test_a_decimal_with_a_fraction_is_the_double_next_to_it(spark):
    table = spark.createDataFrame([(1, Decimal(2**60)), (2, Decimal("0.1"))], "id long, x decimal(38,2)")
    assert prepare(table, table).rows.originals == 2


def test_a_double_beyond_2_to_the_53_is_what_it_is(spark):
    table = spark.createDataFrame([(1, 2.0**60), (2, -1e300)], "id long, x double")
    assert prepare(table, table).rows.originals == 2


def test_all_that_is_wrong_is_listed_together(found):
    originals = [(1, NAN, 1.0), (1, 2.0, None), (None, INF, 0.0), (9, 0.0, 0.0)], "id long, x double, y double"
    avatars = [(1, "a", None), (None, "b", NAN), (7, "c", 1.0), (7, "c", 1.0)], "id long, x string, y double"
    problems = found(originals, avatars, components=["x", "y", "z"], group_by="ward")
    wanted = [
        ("O", "'id'", "1 of 4", "no key"), ("O", "'id'", "1 ", "several"), ("O", "'x'", "NaN", "1 of 4"),
        ("O", "'x'", "infinite", "1 of 4"), ("O", "'y'", "null", "1 of 4"), ("O", "'z'", "missing"),
        ("O", "'ward'", "missing"), ("A", "'id'", "1 of 4", "no key"), ("A", "'id'", "1 ", "several"),
        ("A", "'x'", "string"), ("A", "'y'", "null"), ("A", "'y'", "NaN"), ("A", "'z'", "missing"),
        ("A", "1 of 4 originals"),
    ]  # fmt: skip
    for words in wanted:
        label = f"{'originals' if words[0] == 'O' else 'avatars'} '{words[0]}'"
        assert any(problem.startswith(label) and all(w in problem for w in words[1:]) for problem in problems), words
    assert len(problems) == len(wanted)


def test_a_missing_key_hides_no_other_problem(found):
    problems = found(with_row(5, NAN, 0.0), ([(1, 1.0, None)], "key long, x double, y double"))
    assert any("A" in p and "'id'" in p for p in problems)
    assert any("O" in p and "'x'" in p and "NaN" in p for p in problems)
    assert any("A" in p and "'y'" in p and "null" in p for p in problems)


def test_a_composite_key_is_null_where_one_part_is_and_repeated_where_all_are(found):
    schema = "a int, b int, x double"
    rows = [(1, 1, 0.0), (1, 2, 0.0), (2, 1, 0.0)]
    [problem] = found(([*rows, (None, 1, 0.0)], schema), (rows, schema), id=["a", "b"])
    assert "(columns 'a', 'b')" in problem
    [problem] = found((rows, schema), ([*rows, (1, 2, 5.0)], schema), id=["a", "b"])
    assert problem.startswith("avatars")


def test_the_counts_in_a_message_have_thousands_marked(spark):
    table = spark.range(2_500).selectExpr("id", "double(null) as x")
    with pytest.raises(CloakingError, match=r"'x'.* 2,500 of 2,500"):
        prepare(table, spark.range(2_500).selectExpr("id", "1d as x"))


@pytest.mark.parametrize("name", ["closer", "tied", "cloaking", "Closer"])
def test_a_key_with_the_name_of_a_result_is_refused(found, name):
    table = [(1, 1.0)], f"{name} long, x double"
    [problem] = found(table, table, id=name)
    assert f"'{name}'" in problem


def test_a_name_that_is_there_twice_but_for_case_is_refused(spark):
    table = spark.createDataFrame([(1, 1.0, 2.0)], "id long, x double, y double").toDF("id", "x", "X")
    with pytest.raises(CloakingError, match="'x'"):
        prepare(table, table, components=["x"])


def test_made_from_needs_as_many_columns_as_the_key(found):
    problems = found(good(), good(), made_from=["id", "x"])
    assert any("made" in problem for problem in problems)


def test_a_component_given_twice_is_refused(found):
    problems = found(good(), good(), components=["x", "x"])
    assert any("'x'" in problem for problem in problems)


LINK = "original_id long, avatar_id long"
BAD_LINKS = {
    "an avatar linked twice": ([(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)], ["'avatar_id'", "1 "]),
    "an original linked twice": ([(1, 1), (2, 2), (3, 3), (4, 4), (4, 5)], ["'original_id'", "1 "]),
    "a null original": ([(1, 1), (2, 2), (3, 3), (4, 4), (None, 5)], ["'original_id'", "1 "]),
    "a null avatar": ([(1, 1), (2, 2), (3, 3), (4, 4), (5, None)], ["'avatar_id'", "1 "]),
}


@pytest.mark.parametrize("case", BAD_LINKS)
def test_a_link_table_is_one_to_one(found, case):
    rows, words = BAD_LINKS[case]
    [problem] = found(good(), good(rows=5), (rows, LINK))
    assert problem.startswith(LABELS[2])
    assert all(word in problem for word in words)


def test_a_link_table_without_its_columns_is_refused(found):
    problems = found(good(), good(), ([(1, 1)], "original long, avatar_id long"))
    assert any(LABELS[2] in problem and "'original_id'" in problem for problem in problems)


def test_a_link_table_that_leaves_originals_out_is_refused(found):
    [problem] = found(good(), good(), ([(1, 1), (2, 2)], LINK))
    assert "2 of 4 originals" in problem


def test_a_link_table_of_another_type_is_refused(found):
    [problem] = found(good(), good(), ([("1", 1)], "original_id string, avatar_id long"))
    assert "'original_id'" in problem
    assert "string" in problem


def test_nor_is_one_of_another_type_than_the_avatars_key(found):
    [problem] = found(good(), good(), ([(k, str(k)) for k in range(1, 5)], "original_id long, avatar_id string"))
    assert all(words in problem for words in (LABELS[1], LABELS[2], "'avatar_id'", "string"))


def test_a_link_table_needs_a_key_of_one_column(found):
    [problem] = found(good(), good(), ([(1, 1)], LINK), id=["id", "y"])
    assert problem.startswith(LABELS[2])
    assert "one key column" in problem


def test_a_bad_link_table_hides_no_other_problem(found):
    problems = found(with_row(5, NAN, 0.0), good(rows=5), ([(k, 1) for k in range(1, 6)], LINK))
    assert any(LABELS[2] in problem and "'avatar_id'" in problem for problem in problems)
    assert any(LABELS[0] in problem and "NaN" in problem for problem in problems)


def warnings(spark, originals, avatars, **options):
    tables = [spark.createDataFrame(*table) for table in (originals, avatars)]
    return {notice.code: notice.message for notice in prepare(*tables, labels=LABELS, **options).rows.warnings}


def test_good_tables_pass_without_a_word(spark):
    assert warnings(spark, good(), good()) == {}


def test_avatars_of_no_original_are_a_warning_with_their_number(spark):
    [(code, message)] = warnings(spark, good(), good(rows=7)).items()
    assert code == "unlinked_avatars"
    assert "3 of 7" in message
    assert LABELS[1] in message


def test_avatars_that_a_link_table_leaves_out_are_unlinked(spark):
    link = spark.createDataFrame([(k, 5 - k) for k in range(1, 5)], LINK)
    [(code, message)] = warnings(spark, good(), good(rows=6), link=link).items()
    assert code == "unlinked_avatars"
    assert "2 of 6" in message


def test_a_link_to_an_original_that_is_not_there_leaves_its_avatar_unlinked(spark):
    link = spark.createDataFrame([(k, k) for k in range(1, 6)], LINK)
    assert "1 of 5" in warnings(spark, good(), good(rows=5), link=link)["unlinked_avatars"]


def test_one_table_on_both_sides_is_a_warning(spark):
    table = spark.createDataFrame(*good())
    assert [notice.code for notice in prepare(table, table).rows.warnings] == ["same_table"]
