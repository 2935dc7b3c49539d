"""Check the schemas of two tables: each column exists once, keys are comparable, components are numeric.

No row is read here; each problem is a line with table, column and fix.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import types as T

from cloaking.columns import Side, type_of
from cloaking.names import UNREAD, alike, written_instead

MOST_DIGITS = 38  # Spark's limit for decimals

# Types of one family are comparable as keys; types without a family cannot be keys (doubles, say, are rounded).
_FAMILIES: tuple[tuple[str, tuple[type[T.DataType], ...]], ...] = (
    ("integer", (T.ByteType, T.ShortType, T.IntegerType, T.LongType)),
    ("text", (T.StringType,)),
    ("date", (T.DateType,)),
    ("timestamp", (T.TimestampType,)),
    ("timestamp without zone", (T.TimestampNTZType,)),
    ("decimal", (T.DecimalType,)),
    ("binary", (T.BinaryType,)),
)


def component_problems(side: Side, components: Sequence[str]) -> list[str]:
    """Return the problems of components that are missing or not numeric."""
    there = [name for name in components if alike(name, side.table.columns) == [name]]
    usable = numbers(side, components)
    return [
        *missing(side, components, "component", "name others with --components"),
        *(
            f"{side.label}: component '{name}' is {type_of(side.table, name)}, not a number; cast it"
            for name in there
            if name not in usable
        ),
    ]


def numbers(side: Side, components: Sequence[str]) -> list[str]:
    """Return the components that exist exactly once and are numeric."""
    there = [name for name in components if alike(name, side.table.columns) == [name]]
    return [name for name in there if isinstance(side.type_of(name), T.NumericType)]


def unread(side: Side, names: Iterable[str], what: str) -> list[str]:
    """Return the problems of existing columns whose type in the file Spark does not read."""
    there = [name for name in names if alike(name, side.table.columns) == [name]]
    return [
        f"{side.label}: {what} '{name}' is {type_of(side.table, name)}, which Spark does not read; cast it"
        for name in there
        if UNREAD in side.table.schema[name].metadata
    ]


def missing(side: Side, names: Iterable[str], what: str, fix: str) -> list[str]:
    """Return the problems of columns that do not exist exactly once; Spark ignores case."""
    problems = []
    for name in names:
        same = alike(name, side.table.columns)
        if len(same) > 1:
            problems.append(
                f"{side.label}: {what} '{name}' occurs {len(same)} times if case is ignored; rename the others"
            )
        elif same != [name]:
            written = written_instead(name, side.table.columns)
            problems.append(f"{side.label}: {what} '{name}' is missing{f', {written}' if written else f'; {fix}'}")
    return problems


def key_type_problems(left: Side, right: Side) -> list[str]:
    """Return the problems of key columns whose type cannot be a key or cannot be compared with the other side's."""
    problems = []
    for names in zip(left.key, right.key, strict=True):
        kinds = [side.type_of(name) for side, name in zip((left, right), names, strict=True)]
        families = [_family(kind) for kind in kinds]
        problems += [
            f"{side.label}: key column '{name}' is {type_of(side.table, name)}, which makes no key; "
            "use an integer, text, date, timestamp or decimal"
            for side, name, family in zip((left, right), names, families, strict=True)
            if family is None
        ]
        if None not in families and not _comparable(*kinds):
            problems.append(
                f"{left.label} and {right.label}: the keys '{names[0]}' ({kinds[0].simpleString()}) and '{names[1]}' "
                f"({kinds[1].simpleString()}) have different types; cast one of them"
            )
    return problems


def _comparable(left: T.DataType, right: T.DataType) -> bool:
    """Return whether two keys are of one family; for decimals, whether one decimal type holds both without rounding."""
    if isinstance(left, T.DecimalType) and isinstance(right, T.DecimalType):
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return whole + max(left.scale, right.scale) <= MOST_DIGITS
    return _family(left) == _family(right)


def _family(kind: T.DataType) -> str | None:
    return next((family for family, types in _FAMILIES if isinstance(kind, types)), None)
