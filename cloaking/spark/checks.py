"""Check keys, links and coordinates of two tables, and report all their problems in one error.

Each problem is a line with table, column, count and fix. No distance is computed before all checks have passed.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.columns import Side, column
from cloaking.errors import InputError
from cloaking.names import alike
from cloaking.options import EXACT_INTEGER
from cloaking.results import Notice
from cloaking.spark.link import AVATAR_ID, ORIGINAL_ID, Columns
from cloaking.spark.schemas import component_problems, key_type_problems, missing, numbers, unread
from cloaking.spark_errors import reading

log = logging.getLogger(__name__)

RESULTS = ("closer", "tied", "cloaking")  # the columns of the counts besides the key


@dataclass(frozen=True)
class Rows:
    """The number of rows in each table, and warnings about them."""

    originals: int
    avatars: int
    warnings: tuple[Notice, ...]


def check(
    originals: Side, avatars: Side, columns: Columns, problems: Iterable[str] = (), null_is_unlinked: bool = False
) -> Rows:
    """Check both tables in one pass over their keys and coordinates, and return their row counts.

    Args:
        originals: the originals, with their key.
        avatars: the avatars, with the columns that name the original from which each was made.
        columns: the columns of both that the run uses.
        problems: problems found before.
        null_is_unlinked: whether a null key means an avatar without a link; otherwise it is a problem.

    Raises:
        InputError: there are problems; the message has a line for each.
    """
    found, sides = list(problems), (originals, avatars)
    keys = [
        *missing(originals, originals.key, "key column", "name the key with --id"),
        *missing(avatars, avatars.key, "key column", "name it with --id or --made-from"),
    ]
    keys += [] if keys else key_type_problems(originals, avatars)
    found += keys
    group = [columns.group] if columns.group is not None else []
    found += [*missing(originals, group, "column", "see --group-by"), *unread(originals, group, "column")]
    found += [
        f"{originals.label}: key column '{name}' has the name of a result; rename it"
        for name in originals.key
        if alike(name, RESULTS)
    ]
    if keys:
        raise InputError(
            *found, *(line for side in (originals, avatars) for line in of_components(side, columns.components))
        )
    sides = (originals, avatars)
    usable = [numbers(side, columns.components) for side in sides]
    found += [line for side in sides for line in component_problems(side, columns.components)]
    counts = _count_rows(sides, usable)
    found += _row_problems(sides, usable, counts, null_is_unlinked)
    if found:
        raise InputError(*found)
    rows = Rows(counts["rows_0"], counts["rows_1"], _warnings(originals, avatars, counts))
    log.info("checked: originals=%d avatars=%d", rows.originals, rows.avatars)
    return rows


def of_components(side: Side, components: Sequence[str]) -> list[str]:
    """Return the problems of one table's components, for when its keys cannot be checked."""
    return [*component_problems(side, components), *_coordinate_problems(side, numbers(side, components))]


def link_problems(link: Side, originals: Side, avatars: Side) -> list[str]:
    """Return the problems of a link table and of the avatars' ids to which it refers."""
    problems = [
        *missing(link, (ORIGINAL_ID, AVATAR_ID), "column", f"a link table has {ORIGINAL_ID} and {AVATAR_ID}"),
        *missing(originals, originals.key, "key column", "name the key with --id"),
        *missing(avatars, avatars.key, "key column", "name the key with --id"),
    ]
    if len(originals.key) != 1:
        problems.append(f"{link.label}: links by one key column; put a single key into both tables")
    if problems:
        return problems
    for name, side in ((ORIGINAL_ID, originals), (AVATAR_ID, avatars)):
        problems += key_type_problems(side, Side(link.table, link.label, (name,)))
    for side, name in ((link, ORIGINAL_ID), (link, AVATAR_ID), (avatars, avatars.key[0])):
        rows = side.table.groupBy(column(name).alias("key")).count()
        null, more = F.col("key").isNull(), F.col("count") > 1
        with reading(side.label):
            nulls, repeated = rows.agg(F.sum(F.when(null, F.col("count"))), F.count_if(~null & more)).collect()[0]
        if nulls:
            problems.append(f"{side.label}: {nulls:,} rows have no '{name}'; fill or drop them")
        if repeated:
            problems.append(
                f"{side.label}: {repeated:,} value(s) of '{name}' occur in several rows; keep one row of each"
            )
    return problems


def _count_rows(sides: Sequence[Side], components: Sequence[Sequence[str]]) -> dict[str, int]:
    """Count rows, keys and unusable coordinates of both sides (0 originals, 1 avatars), in one action.

    The rows of both are united and counted per key; the counts of all keys are then summed into a single row.
    """
    keys = [f"key_{i}" for i in range(len(sides[0].key))]
    parts = []
    for number, (side, names) in enumerate(zip(sides, components, strict=True)):
        flags = {
            f"rows_{number}": F.lit(True),
            f"bad_{number}": _any(~_usable(side, name) for name in names),
        }
        absent = {f"{flag}_{1 - number}": F.lit(False) for flag in ("rows", "bad")}
        parts.append(
            side.table.select(
                *(column(name).alias(key) for name, key in zip(side.key, keys, strict=True)),
                *(flag.cast("long").alias(name) for name, flag in sorted((flags | absent).items())),
            )
        )
    per_key = parts[0].unionByName(parts[1]).groupBy(*keys)
    counted = per_key.agg(*(F.sum(name).alias(name) for name in ("rows_0", "rows_1", "bad_0", "bad_1")))

    null = _any(F.col(key).isNull() for key in keys)
    totals = {name: F.sum(name) for name in ("rows_0", "rows_1", "bad_0", "bad_1")}
    for number in (0, 1):
        mine, others = F.col(f"rows_{number}"), F.col(f"rows_{1 - number}")
        totals[f"null_{number}"] = F.sum(F.when(null, mine))
        totals[f"repeated_{number}"] = F.count_if(~null & (mine > 1))
        totals[f"unmatched_{number}"] = F.sum(F.when(~null & (others == 0), mine))
    found = counted.agg(*(F.coalesce(total, F.lit(0)).alias(name) for name, total in totals.items()))
    try:
        return dict(found.collect()[0].asDict())
    except (PySparkException, Py4JJavaError):
        _read_separately(sides, components)
        raise


def _read_separately(sides: Sequence[Side], components: Sequence[Sequence[str]]) -> None:
    """Read the used columns of each side separately, to find out which side causes an error of both together."""
    problems: list[str] = []
    for side, names in zip(sides, components, strict=True):
        try:
            with reading(side.label):
                side.table.agg(F.max(F.xxhash64(*map(column, (*side.key, *names))))).collect()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)


def _row_problems(
    sides: Sequence[Side], components: Sequence[Sequence[str]], counts: dict[str, int], null_is_unlinked: bool
) -> list[str]:
    problems = []
    for number, side in enumerate(sides):
        rows, null = counts[f"rows_{number}"], counts[f"null_{number}"]
        repeated = counts[f"repeated_{number}"]
        if null and not (number == 1 and null_is_unlinked):
            problems.append(
                f"{side.label}: {null:,} of {rows:,} rows have no key ({_listed(side.key)}); fill or drop them"
            )
        if repeated:
            problems.append(
                f"{side.label}: {repeated:,} key(s) occur in several rows ({_listed(side.key)}); keep one of each"
            )
        if counts[f"bad_{number}"] or not rows:
            problems += _coordinate_problems(side, components[number])
    if counts["unmatched_0"] and counts["rows_1"]:
        fix = _notation_difference(sides, counts["unmatched_0"])
        fix = fix or "add them, or define the link: --made-from, --link, --by-position"
        problems.append(
            f"{sides[1].label}: {counts['unmatched_0']:,} of {counts['rows_0']:,} originals have no avatar "
            f"({_listed(sides[1].key)}); {fix}"
        )
    return problems


def _notation_difference(sides: Sequence[Side], unmatched: int) -> str | None:
    """Find a difference in notation that keeps keys from matching, in extra passes; called only if some do not match.

    Returns:
        The fix, or None if ignoring no such difference matches at least half of the unmatched keys.
    """
    ways: dict[str, Callable[[Column], Column]] = {
        "with .0 behind whole numbers": lambda key: F.regexp_replace(key, r"^([+-]?[0-9]+)[.]0+$", "$1"),
        "with blanks around": lambda key: F.regexp_replace(key, r"^[\s\u00a0\ufeff]+|[\s\u00a0\ufeff]+$", ""),
        "in other upper and lower case": F.lower,
        "with zeros in front of numbers": lambda key: F.regexp_replace(key, "^0+(?=[0-9])", ""),
    }
    for called, way in ways.items():
        left, right = (
            side.table.select(
                *(way(column(name).cast("string")).alias(f"key_{i}") for i, name in enumerate(side.key))
            ).dropna()
            for side in sides
        )
        with reading(sides[1].label):
            still = left.join(right, on=left.columns, how="left_anti").count()
        if 2 * still <= unmatched:
            return f"{unmatched - still:,} of their keys are there, but written {called} in one table; write them alike"
    return None


def _coordinate_problems(side: Side, components: Sequence[str]) -> list[str]:
    """Return the problems of unusable coordinates; this extra pass is made only if there are some, or no rows."""
    fix = dict.fromkeys(("null", "NaN", "infinite"), "fill or drop these rows before the projection")
    fix["an integer beyond 2^53"] = "a double would round it; rescale the component"
    asked = [(name, kind) for name in components for kind in fix]
    conditions = [condition for name in components for condition in _unusable(side, name)]
    with reading(side.label):
        rows, *found = side.table.agg(F.count(F.lit(1)), *map(F.count_if, conditions)).collect()[0]
    if not rows:
        return [f"{side.label}: has no rows; look at the table and at --where"]
    return [
        f"{side.label}: component '{name}' is {kind} in {count:,} of {rows:,} rows; "
        + ("leave it out, by --components, or look at how it was written" if count == rows else fix[kind])
        for (name, kind), count in zip(asked, found, strict=True)
        if count
    ]


def _warnings(originals: Side, avatars: Side, counts: dict[str, int]) -> tuple[Notice, ...]:
    warnings = []
    unlinked = counts["unmatched_1"] + counts["null_1"]
    if unlinked:
        message = (
            f"{avatars.label}: {unlinked:,} of {counts['rows_1']:,} avatars were made from none of these originals; "
            "they count among the avatars that hide an original"
        )
        warnings.append(Notice("unlinked_avatars", message))
    if originals.table.sameSemantics(avatars.table):
        warnings.append(Notice("same_table", f"{originals.label} and {avatars.label} are the same table"))
    return tuple(warnings)


def _usable(side: Side, name: str) -> Column:
    """Return whether a coordinate is finite and exact as a double; for null and NaN the comparison is false."""
    finite = F.coalesce(F.abs(column(name).cast("double")) < float("inf"), F.lit(False))
    return finite & ~_beyond(side, name)


def _unusable(side: Side, name: str) -> list[Column]:
    """Return whether a coordinate is null, NaN, infinite, or an integer that a double would round, in this order."""
    value = column(name).cast("double")
    return [value.isNull(), F.isnan(value), F.abs(value) == float("inf"), _beyond(side, name)]


def _beyond(side: Side, name: str) -> Column:
    kind = side.type_of(name)
    if isinstance(kind, T.LongType) or (isinstance(kind, T.DecimalType) and kind.scale == 0):
        return (column(name) > EXACT_INTEGER) | (column(name) < -EXACT_INTEGER)
    return F.lit(False)


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))


def _listed(names: Sequence[str]) -> str:
    return ("columns " if len(names) > 1 else "column ") + ", ".join(f"'{name}'" for name in names)
