"""Everything that can be wrong with the input: two tables in, the columns and row counts to measure out, or one error.

Problems are gathered, each a line with table, column, count and fix, and raised once; nothing is computed before.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.errors import InputError
from cloaking.figures import Notice
from cloaking.linking import AVATAR_ID, ORIGINAL_ID, Columns, in_order
from cloaking.tables import column

log = logging.getLogger(__name__)

EXACT_INTEGER = 2**53  # the largest magnitude up to which every integer is a double

_KEY_FAMILIES: dict[type[T.DataType], str] = {
    T.ByteType: "integer",
    T.ShortType: "integer",
    T.IntegerType: "integer",
    T.LongType: "integer",
    T.StringType: "text",
    T.DateType: "date",
    T.TimestampType: "timestamp",
    T.TimestampNTZType: "timestamp without zone",
    T.DecimalType: "decimal",
    T.BinaryType: "binary",
}
_RESULTS = ("closer", "tied", "cloaking")


@dataclass(frozen=True)
class Rows:
    """How many rows were found on each side, and what is suspect without being wrong."""

    originals: int
    avatars: int
    warnings: tuple[Notice, ...]


@dataclass(frozen=True)
class Side:
    """One of the two tables, as messages call it, with the columns that hold the originals' key."""

    table: DataFrame
    label: str
    key: tuple[str, ...]


def choose_components(
    originals: DataFrame, keys: Sequence[str], group: str | None, components: Sequence[str] | None, ncp: int | None
) -> tuple[tuple[str, ...], list[str]]:
    """Return the components to measure over, and what is wrong with the choice.

    Unless named they are the numeric columns of the originals but for the keys and the group, numbered names in
    the order of their numbers; `ncp` takes the first of them.
    """
    if components is None:
        components = in_order(
            [f.name for f in originals.schema if isinstance(f.dataType, T.NumericType) and f.name not in (*keys, group)]
        )
        if not components:
            return (), ["no numeric column is left as a component; name them with --components"]
    if ncp is not None and not 1 <= ncp <= len(components):
        return tuple(components), [f"--ncp {ncp} is out of range: the originals have {len(components)} component(s)"]
    return tuple(components[:ncp]), []


def check(originals: Side, avatars: Side, columns: Columns, problems: Sequence[str], linked_by_table: bool) -> Rows:
    """Look for everything that is wrong with both tables, in one pass over their keys and coordinates.

    Args:
        originals: the originals and the columns of their key.
        avatars: the avatars and the columns that name the original that each was made from.
        columns: what the run uses of them.
        problems: what is known to be wrong already.
        linked_by_table: a link table gave the avatars' keys; then a null is an avatar without a link.

    Raises:
        InputError: with one line per problem.
    """
    found = list(problems)
    found += _column_problems(originals, columns.components, (*originals.key, columns.group))
    found += _column_problems(avatars, columns.components, avatars.key)
    found += [
        f"{originals.label}: the key column '{name}' has the name of a result column; rename it"
        for name in columns.id
        if name.lower() in _RESULTS
    ]
    keys = _key_problems(originals, avatars)
    found += keys
    usable = [(side, _usable(side, columns.components)) for side in (originals, avatars)]
    if not keys and all(name in side.table.columns for side, _ in usable for name in side.key):
        rows, more = _row_problems(usable, linked_by_table)
        if not found and not more:
            return rows
        found += more
    raise InputError(*found)


def link_problems(link: Side, avatars: Side, id_type: T.DataType | None) -> list[str]:
    """Return what is wrong with a link table and with the avatars' own ids that it refers to."""
    missing = [name for name in (ORIGINAL_ID, AVATAR_ID) if name not in link.table.columns]
    missing_id = [name for name in avatars.key if name not in avatars.table.columns]
    if missing or missing_id:
        return [
            *(f"{link.label}: column '{name}' is missing; a link table has {ORIGINAL_ID}, {AVATAR_ID}" for name in missing),
            *(f"{avatars.label}: key column '{name}' is missing; name it with --id" for name in missing_id),
        ]
    avatar_type = avatars.table.schema[avatars.key[0]].dataType
    problems = [
        f"{link.label}: column '{name}' is {link.table.schema[name].dataType.simpleString()}, the key it refers to is "
        f"{other.simpleString()}; cast one of them"
        for name, other in ((ORIGINAL_ID, id_type), (AVATAR_ID, avatar_type))
        if other is not None and _family(link.table.schema[name].dataType) != _family(other)
    ]
    for side, name in ((link, ORIGINAL_ID), (link, AVATAR_ID), (avatars, avatars.key[0])):
        nulls, repeated = (
            side.table.groupBy(column(name).alias("key"))
            .count()
            .agg(
                F.coalesce(F.sum(F.when(F.col("key").isNull(), F.col("count"))), F.lit(0)),
                F.count_if(F.col("key").isNotNull() & (F.col("count") > 1)),
            )
            .head()
        ) or (0, 0)
        if nulls:
            problems.append(f"{side.label}: {nulls:,} rows have no value in '{name}'; every row needs one")
        if repeated:
            problems.append(f"{side.label}: {repeated:,} values of '{name}' stand in several rows; keep one row of each")
    return problems


def _column_problems(side: Side, components: Sequence[str], others: Sequence[str | None]) -> list[str]:
    """Return what is wrong with the columns themselves: missing, ambiguous or not numeric."""
    names, problems = side.table.columns, []
    for name in dict.fromkeys([*(name for name in others if name), *components]):
        what = "component" if name in components else "column"
        same = [other for other in names if other.casefold() == name.casefold()]
        if name not in names:
            hint = f"; there is '{same[0]}', which differs in case" if same else ""
            problems.append(f"{side.label}: {what} '{name}' is missing{hint}")
        elif len(same) > 1:
            problems.append(f"{side.label}: {what} '{name}' stands {len(same)} times (upper and lower case are alike); rename")
    problems += [
        f"{side.label}: component '{name}' is {side.table.schema[name].dataType.simpleString()}, a number is needed; "
        "cast it or name others with --components"
        for name in components
        if names.count(name) == 1 and not isinstance(side.table.schema[name].dataType, T.NumericType)
    ]
    return problems


def _usable(side: Side, components: Sequence[str]) -> list[str]:
    """Return the components whose values can be looked at."""
    folded = [name.casefold() for name in side.table.columns]
    return [
        name
        for name in components
        if name in side.table.columns
        and folded.count(name.casefold()) == 1
        and isinstance(side.table.schema[name].dataType, T.NumericType)
    ]


def _key_problems(originals: Side, avatars: Side) -> list[str]:
    """Return the key columns whose types cannot be compared."""
    problems = []
    for left, right in zip(originals.key, avatars.key, strict=True):
        types = []
        for side, name in ((originals, left), (avatars, right)):
            if name not in side.table.columns:
                break
            kind = side.table.schema[name].dataType
            types.append(kind)
            if _family(kind) is None:
                problems.append(
                    f"{side.label}: key column '{name}' is {kind.simpleString()}, which is no key; "
                    "use an integer, text, date, timestamp or decimal column"
                )
        if len(types) == 2 and not problems and _family(types[0]) != _family(types[1]):
            problems.append(
                f"{originals.label} and {avatars.label}: the keys '{left}' ({types[0].simpleString()}) and '{right}' "
                f"({types[1].simpleString()}) have different types; cast one of them"
            )
    return problems


def _family(kind: T.DataType) -> str | None:
    return next((family for cls, family in _KEY_FAMILIES.items() if isinstance(kind, cls)), None)


def _row_problems(sides: Sequence[tuple[Side, list[str]]], linked_by_table: bool) -> tuple[Rows, list[str]]:
    """Count, per key, the rows of each side, and fold that into counts of everything that can be wrong."""
    (originals, _), (avatars, _) = sides
    stacked = None
    for number, (side, components) in enumerate(sides):
        part = side.table.select(
            *(column(name).alias(f"key_{i}") for i, name in enumerate(side.key)),
            *(F.lit(int(number == other)).cast("long").alias(f"n_{other}") for other in (0, 1)),
            F.lit(0).cast("long").alias("bad") if not components else _any(
                _bad(side.table, name) for name in components
            ).cast("long").alias("bad"),
        )  # fmt: skip
        part = part.select(
            "*", *((F.col("bad") if number == other else F.lit(0).cast("long")).alias(f"bad_{other}") for other in (0, 1))
        )
        stacked = part if stacked is None else stacked.unionByName(part)
    assert stacked is not None
    keys = [f"key_{i}" for i in range(len(originals.key))]
    flags = ["n_0", "n_1", "bad_0", "bad_1"]
    per_key = stacked.groupBy(*keys).agg(*(F.sum(flag).alias(flag) for flag in flags))

    null = _any(F.col(key).isNull() for key in keys)
    totals = {flag: F.sum(flag) for flag in flags}
    for n in (0, 1):
        mine, other = F.col(f"n_{n}"), F.col(f"n_{1 - n}")
        totals |= {
            f"null_{n}": F.sum(F.when(null, mine)),
            f"repeated_{n}": F.count_if(~null & (mine > 1)),
            f"alone_{n}": F.sum(F.when(~null & (other == 0), mine)),
        }
    row = per_key.agg(*(F.coalesce(total, F.lit(0)).alias(name) for name, total in totals.items())).head()
    assert row is not None
    found = row.asDict()
    rows = Rows(found["n_0"], found["n_1"], _warnings(originals, avatars, found))
    log.info("checked: originals=%d avatars=%d", rows.originals, rows.avatars)
    return rows, _row_messages(sides, found, linked_by_table)


def _row_messages(sides: Sequence[tuple[Side, list[str]]], found: dict[str, int], linked_by_table: bool) -> list[str]:
    problems = []
    for n, (side, components) in enumerate(sides):
        rows, key = found[f"n_{n}"], ", ".join(f"'{name}'" for name in side.key)
        if not rows:
            problems.append(f"{side.label}: has no rows; look at the table and at --where")
        if found[f"null_{n}"] and not (n == 1 and linked_by_table):
            problems.append(f"{side.label}: {found[f'null_{n}']:,} of {rows:,} rows have no key (column {key}); fill or drop them")
        if found[f"repeated_{n}"]:
            problems.append(
                f"{side.label}: {found[f'repeated_{n}']:,} keys stand in several rows (column {key}); keep one row of each"
            )
        if found[f"bad_{n}"]:
            problems += _coordinate_messages(side, components, rows)
    originals, avatars = sides[0][0], sides[1][0]
    if found["alone_0"] and found["n_1"]:
        key = ", ".join(f"'{name}'" for name in avatars.key)
        problems.append(
            f"{avatars.label}: {found['alone_0']:,} of {found['n_0']:,} originals have no avatar (column {key}); "
            "add them, or say how rows belong together with --made-from, --link or --by-position"
        )
    return problems


def _coordinate_messages(side: Side, components: Sequence[str], rows: int) -> list[str]:
    """Count the unusable coordinates column by column; a second pass, taken only when there are some."""
    columns = {}
    for name in components:
        value = column(name).cast("double")
        columns |= {
            (name, "null"): value.isNull(),
            (name, "NaN"): F.isnan(value),
            (name, "infinite"): F.abs(value) == float("inf"),
            (name, "beyond 2^53"): _beyond(side.table, name),
        }
    counts = side.table.agg(*(F.count_if(condition) for condition in columns.values())).head() or ()
    fix = {"beyond 2^53": "a double would round them; rescale the column"}
    return [
        f"{side.label}: component '{name}' is {what} in {count:,} of {rows:,} rows; "
        + fix.get(what, "fill or drop them before the projection")
        for (name, what), count in zip(columns, counts, strict=True)
        if count
    ]


def _warnings(originals: Side, avatars: Side, found: dict[str, int]) -> tuple[Notice, ...]:
    warnings = []
    if found["alone_1"] or found["null_1"]:
        count = found["alone_1"] + found["null_1"]
        warnings.append(
            Notice(
                "unlinked_avatars",
                f"{avatars.label}: {count:,} of {found['n_1']:,} avatars were made from none of the originals; "
                "they count among the avatars that hide an original",
            )
        )
    if originals.table.sameSemantics(avatars.table):
        warnings.append(Notice("same_table", f"{originals.label} and {avatars.label} are the same table"))
    return tuple(warnings)


def _bad(table: DataFrame, name: str) -> Column:
    """Tell whether a coordinate is null, NaN, infinite, or an integer that a double would round."""
    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf")) | _beyond(table, name)


def _beyond(table: DataFrame, name: str) -> Column:
    kind = table.schema[name].dataType
    if isinstance(kind, T.LongType) or isinstance(kind, T.DecimalType) and kind.scale == 0:
        return F.coalesce((column(name) > EXACT_INTEGER) | (column(name) < -EXACT_INTEGER), F.lit(False))
    return F.lit(False)


def _any(conditions: "Sequence[Column] | object") -> Column:
    found = F.lit(False)
    for condition in conditions:  # type: ignore[attr-defined]
        found = found | condition
    return found
