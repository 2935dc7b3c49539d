"""Report values that make a table unfit for projection, and suspicious ones, from the profiles of its columns.

A message holds table, column, counts and fix, never a value; it names a user's options as the command does.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from cloaking.errors import InputError
from cloaking.projection import roles
from cloaking.projection.profiles import FEW_VALUES, MOST_COLUMNS, Profile, profile
from cloaking.projection.roles import Roles
from cloaking.results import Notice

log = logging.getLogger(__name__)

LARGEST = 2.0**500  # largest magnitude of a number, so that its square is well within float64
SMALLEST = 2.0**-500  # smallest range of a column, for the same reason
_NAMED = 10  # the most columns that a message names


def profiled(
    table: DataFrame,
    chosen: Roles,
    missing: tuple[str, str],
    label: str,
    further: Callable[[Profile], tuple[list[str], tuple[Notice, ...]]] | None = None,
) -> tuple[Profile, tuple[Notice, ...]]:
    """Return the columns' profile and notices; raise an error if values are wrong or, unless allowed, missing."""
    start = time.monotonic()
    on_number, on_category = missing
    selected = roles.select(table, chosen, drop_rows=on_number == "drop-rows")
    found = profile(selected, len(chosen.continuous), len(chosen.categorical))
    log.info("profiled: %s rows=%d seconds=%.1f", label, found.rows, time.monotonic() - start)
    if found.endless:
        raise InputError(*endless(found, chosen.categorical, label))
    strange, notices = further(found) if further is not None else ([], ())
    problems = [
        *numbers(found, chosen.continuous, on_number, label),
        *missing_levels(found, chosen.categorical, on_category, label),
        *strange,
    ]
    if problems:
        raise InputError(*problems)
    left_out = dropped(table.count(), found.rows, label) if on_number == "drop-rows" else ()
    return found, (
        *left_out,
        *filled(found, chosen.continuous, label),
        *own_level(found, chosen.categorical, label),
        *notices,
    )


def endless(profile: Profile, categorical: Sequence[str], label: str) -> list[str]:
    """Return a problem per column with more modalities than a projection can have columns."""
    return [
        f"{label}: column '{categorical[q]}' has more modalities than the {MOST_COLUMNS:,} columns that can be "
        "projected; is it a key? Name it in --id or --drop, or regroup it"
        for q in profile.endless
    ]


def numbers(profile: Profile, continuous: Sequence[str], missing_continuous: str, label: str) -> list[str]:
    """Return a problem per column with missing (if refused) or infinite numbers, or numbers that cannot be squared."""
    problems = [] if profile.rows else [f"{label}: has no rows to project; look at the table and at --where"]
    for name, found in zip(continuous, profile.continuous, strict=True):
        gaps = profile.rows - found.values
        if gaps and (missing_continuous == "error" or not found.values):
            fix = "fill it, or give --missing-continuous mean or drop-rows" if found.values else "leave it out: --drop"
            problems.append(
                f"{label}: column '{name}' is missing (null or NaN) in {gaps:,} of {profile.rows:,} rows; {fix}"
            )
        if found.infinite:
            problems.append(
                f"{label}: column '{name}' is infinite in {found.infinite:,} of {profile.rows:,} rows; correct them"
            )
        elif max(abs(found.low), abs(found.high)) > LARGEST or 0 < found.high - found.low < SMALLEST:
            problems.append(f"{label}: column '{name}' has numbers too large or too small to be squared; rescale it")
    return problems


def missing_levels(profile: Profile, categorical: Sequence[str], missing_categorical: str, label: str) -> list[str]:
    """Return a problem per column with missing categories, if they are refused."""
    if missing_categorical != "error":
        return []
    return [
        f"{label}: column '{name}' is missing (null) in {levels[None]:,} of {profile.rows:,} rows; fill it, or give "
        "--missing-categorical level, which makes missing a modality of its own"
        for name, levels in zip(categorical, profile.categorical, strict=True)
        if None in levels
    ]


def filled(profile: Profile, continuous: Sequence[str], label: str) -> tuple[Notice, ...]:
    """Return a notice of the columns whose missing numbers take the originals' mean."""
    gaps = {name: profile.rows - found.values for name, found in zip(continuous, profile.continuous, strict=True)}
    counts = [f"'{name}' {count:,}" for name, count in gaps.items() if count]
    if not counts:
        return ()
    message = f"{label}: missing numbers take the originals' mean, of {profile.rows:,} rows: {_some(counts)}"
    return (Notice("missing_filled", message),)


def own_level(profile: Profile, categorical: Sequence[str], label: str) -> tuple[Notice, ...]:
    """Return a notice of the columns in which missing is a modality of its own."""
    pairs = zip(categorical, profile.categorical, strict=True)
    counts = [f"'{name}' {levels[None]:,}" for name, levels in pairs if None in levels]
    if not counts:
        return ()
    message = f"{label}: missing is a modality of its own, of {profile.rows:,} rows: {_some(counts)}"
    return (Notice("missing_level", message),)


def dropped(rows: int, kept: int, label: str) -> tuple[Notice, ...]:
    """Return a notice of how many rows were left out because a number is missing in them."""
    if rows == kept:
        return ()
    message = f"{label}: {rows - kept:,} of {rows:,} rows are left out, since a number is missing in them"
    return (Notice("rows_left_out", message),)


def constant(names: Sequence[str], label: str) -> tuple[Notice, ...]:
    """Return a notice of the columns that are left out because they hold one value."""
    if not names:
        return ()
    message = f"{label}: left out, since they hold one value: {_some(_quoted(names))}"
    return (Notice("constant_columns", message),)


def few_values(profile: Profile, continuous: Sequence[str], assumed: Sequence[str], label: str) -> tuple[Notice, ...]:
    """Return a notice of columns that are numbers by their type but may hold codes of categories."""
    pairs = zip(continuous, profile.continuous, strict=True)
    names = [name for name, found in pairs if found.few and found.low != found.high and name in assumed]
    if not names:
        return ()
    message = (
        f"{label}: taken for numbers, with at most {FEW_VALUES} distinct values: {_some(_quoted(names))}; "
        "if they are codes, name them in --categorical, else in --continuous"
    )
    return (Notice("few_values", message),)


def axes_not_unique(unique: bool, ncp: int) -> tuple[Notice, ...]:
    """Return a notice if the last component and the first one left out have the same eigenvalue."""
    if unique:
        return ()
    message = (
        f"components {ncp} and {ncp + 1} explain the same variance, so that the first {ncp} are not the only such "
        "space, and another one may give another result; take one component more or less"
    )
    return (Notice("axes_not_unique", message),)


def unseen(
    profile: Profile,
    known: Mapping[str, Iterable[str | None]],
    types: Sequence[tuple[str, str]],
    refuse: bool,
    label: str,
) -> tuple[list[str], tuple[Notice, ...]]:
    """Return a problem per column with modalities that the originals lack, or a notice if these are ignored.

    Args:
        profile: the profile of the table to project.
        known: each categorical column's modalities among the originals.
        types: each categorical column's type among the originals and in this table.
        refuse: whether unseen modalities are a problem.
        label: the name of the table in messages.
    """
    problems, ignored = [], []
    for levels, (name, seen), (theirs, ours) in zip(profile.categorical, known.items(), types, strict=True):
        strange = {level: rows for level, rows in levels.items() if level not in set(seen)}
        if not strange:
            continue
        rows = sum(strange.values())
        alike = {_loose(level) for level in seen}
        matches = sum(_loose(level) in alike for level in strange)
        holds = f"column '{name}' holds {len(strange):,} modalities in {rows:,} of {profile.rows:,} rows"
        if matches:  # never ignored: the types differ by mistake, and the result would look good nevertheless
            problems.append(
                f"{label}: {holds} that the originals lack as text, {matches:,} of which match as numbers or but for "
                f'case and spaces, as "2" and "2.0" or true and 1 do: the types differ ({theirs} among the originals, '
                f"{ours} here); cast both columns alike"
            )
        elif refuse:
            problems.append(
                f"{label}: {holds} that the originals lack; correct or regroup them, or give --unseen ignore"
            )
        else:
            ignored.append(f"'{name}' {rows:,}")
    if not ignored:
        return problems, ()
    message = f"{label}: modalities that the originals lack add nothing, in rows of {profile.rows:,}: {_some(ignored)}"
    return problems, (Notice("unseen_ignored", message),)


def _loose(level: str | None) -> float | str | None:
    """Return the modality in the form of a loose comparison: a number, or text without case and outer spaces."""
    if level is None:
        return None
    text = level.strip().casefold()
    try:
        return float({"true": "1", "false": "0"}.get(text, text))
    except ValueError:
        return text


def _quoted(names: Iterable[str]) -> list[str]:
    return [f"'{name}'" for name in names]


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _NAMED:,} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
