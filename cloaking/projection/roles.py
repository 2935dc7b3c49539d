"""Choose which columns of a table are numbers and which are categories, and select them.

Unless the user says otherwise, columns of numbers are continuous, and text and booleans are categorical. Categories are
compared as the text that Spark casts them to: 2 of any integer type is "2", of a double "2.0", a boolean "true" or
"false".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.columns import column, type_of
from cloaking.errors import InputError
from cloaking.names import alike, written_instead
from cloaking.options import Space

_FLOATING = (T.FloatType, T.DoubleType)
_CATEGORIES = (T.NumericType, T.StringType, T.BooleanType, T.DateType)  # dates only if they are named


@dataclass(frozen=True)
class Roles:
    """The columns to project, in the table's order, and the types of the categorical ones."""

    continuous: tuple[str, ...]
    categorical: tuple[str, ...]
    types: tuple[str, ...]
    assumed: tuple[str, ...] = ()  # continuous because of their type, not by name


def choose(table: DataFrame, label: str, space: Space, keys: Sequence[str] = ()) -> Roles:
    """Return the role of each column of the originals, except the keys and those to drop.

    Raises:
        InputError: a named column is missing or named twice, or a column can have no role; one line each.
    """
    continuous, categorical, drop = space.continuous, space.categorical, space.drop
    named = {"--continuous": continuous, "--categorical": categorical, "--drop": drop, "key": keys}
    problems = [
        problem
        for option, names in named.items()
        for name in names
        for problem in missing(table, name, label, "column", f"look at {option}" if option != "key" else "see --id")
    ]
    every = [name for names in named.values() for name in dict.fromkeys(names)]
    problems += [
        f"column '{name}' is named in more than one of {', '.join(named)}; name it once"
        for name in dict.fromkeys(every)
        if every.count(name) > 1
    ]
    kinds = {field.name: field.dataType for field in table.schema}
    repeated = [name for name in kinds if len(alike(name, table.columns)) > 1 and name not in {*drop, *keys}]
    problems += [f"{label}: column '{name}' is there twice, but for case; rename one" for name in repeated]

    numbers, categories, assumed = [], [], []
    for name, kind in kinds.items():
        if name in drop or name in keys:
            continue
        if name in continuous:
            numbers.append(name)
            problems += not_a_number(table, name, label)
        elif name in categorical:
            categories.append(name)
            problems += no_category(table, name, label)
        elif isinstance(kind, T.NumericType):
            numbers.append(name)
            assumed.append(name)
        elif isinstance(kind, T.StringType | T.BooleanType):
            categories.append(name)
        else:
            problems.append(f"{label}: column '{name}' is {type_of(table, name)}, which has no role; {_fix(kind)}")
    if not numbers and not categories and not problems:
        problems.append(f"{label}: no column is left to project; look at --drop and --id")
    if problems:
        raise InputError(*problems)
    types = tuple(type_of(table, name) for name in categories)
    return Roles(tuple(numbers), tuple(categories), types, tuple(assumed))


def missing(table: DataFrame, name: str, label: str, what: str, fix: str) -> list[str]:
    """Return a problem if no column has exactly this name; Spark itself ignores case."""
    if name in table.columns:
        return []
    written = written_instead(name, table.columns)
    return [f"{label}: {what} '{name}' is missing{f', {written}' if written else f'; {fix}'}"]


def not_a_number(table: DataFrame, name: str, label: str) -> list[str]:
    """Return a problem if a column that must be numeric is not."""
    kind = table.schema[name].dataType if name in table.columns else T.DoubleType()
    if isinstance(kind, T.NumericType):
        return []
    return [f"{label}: column '{name}' is {type_of(table, name)}, not a number; {_fix(kind)}"]


def no_category(table: DataFrame, name: str, label: str) -> list[str]:
    """Return a problem if a column that must be categorical has a type without a well-defined text form."""
    kind = table.schema[name].dataType if name in table.columns else T.StringType()
    if isinstance(kind, _CATEGORIES):
        return []
    return [f"{label}: column '{name}' is {type_of(table, name)}, which makes no categories; {_fix(kind)}"]


def select(table: DataFrame, roles: Roles, keep: Sequence[str] = (), drop_rows: bool = False) -> DataFrame:
    """Select the kept columns as keep_0.., the numbers as number_0.. (double), the categories as category_0.. (text).

    NaN becomes null, so that every missing value is null; with `drop_rows`, rows with a missing number are left out.
    """
    selected = table.select(
        *(column(name).alias(f"keep_{i}") for i, name in enumerate(keep)),
        *(_number(table, name).alias(f"number_{i}") for i, name in enumerate(roles.continuous)),
        *(_text(table, name).alias(f"category_{i}") for i, name in enumerate(roles.categorical)),
    )
    if drop_rows and roles.continuous:
        selected = selected.dropna(subset=[f"number_{i}" for i in range(len(roles.continuous))])
    return selected


def _number(table: DataFrame, name: str) -> Column:
    value = column(name).cast("double")
    if isinstance(table.schema[name].dataType, _FLOATING):
        return F.when(~F.isnan(value), value)
    return value


def _text(table: DataFrame, name: str) -> Column:
    value = column(name)
    if isinstance(table.schema[name].dataType, _FLOATING):
        value = F.when(~F.isnan(value), value + F.lit(0).cast("float"))  # -0.0 becomes 0.0
    return value.cast("string")


def _fix(kind: T.DataType) -> str:
    if isinstance(kind, T.DateType):
        return "cast it to a number of days in both tables, or name it in --categorical or --drop"
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return "cast it to a number of seconds or to text in both tables, or name it in --drop"
    return "cast it in both tables, or name it in --drop"
