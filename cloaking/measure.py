"""Originals and avatars -> Local Cloaking, in Python: link, check, count, summarise."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from cloaking import checks, counting, linking, schemas, suspicions
from cloaking.errors import InputError, SettingsError
from cloaking.figures import OTHER_GROUPS, SMALLEST_GROUP, Summary
from cloaking.names import column
from cloaking.options import (
    BROADCAST_LIMIT,
    CELL_ROWS,
    LARGEST_NUMBER,
    LARGEST_TIE_TOLERANCE,
    STRATEGIES,
    TIE_TOLERANCE,
)
from cloaking.report import to_fragment
from cloaking.summary import OVERALL, summarise

log = logging.getLogger(__name__)

GROUPS = 1_000  # the most groups that are told apart
OBSERVED_WITHIN = 60  # seconds after the counting; a driver that drowns in events may drop the one that tells


@dataclass(frozen=True)
class LocalCloaking:
    """What was measured: the figures in `summary`, and the counts of each original (sensitive) in `counts`."""

    summary: Summary
    _counts: DataFrame = field(repr=False)
    _shipped: counting.Shipped | None = field(default=None, repr=False)  # freed with this result

    @property
    def counts(self) -> DataFrame:
        """The key under its own name, `closer`, `tied` and `cloaking`, one row per original.

        It is lazy: each action on it counts again, so write it before you use it twice. Once it is asked for, the index
        of the avatars stays on the driver's disk until Spark stops.
        """
        if self._shipped is not None:
            self._shipped.keep()
        return self._counts

    def _repr_html_(self) -> str | None:
        """Show the figures and their histogram in a notebook; without the extra `report`, the plain text."""
        try:
            return to_fragment(self.summary)
        except SettingsError:
            return None


@dataclass(frozen=True)
class Options:
    """What `local_cloaking` may be told, besides the tables; see there.

    Raises:
        SettingsError: with one line per value that cannot be.
    """

    id: tuple[str, ...] = ("id",)
    made_from: tuple[str, ...] | None = None
    components: tuple[str, ...] | None = None
    ncp: int | None = None
    group_by: str | None = None
    tie_tolerance: float = TIE_TOLERANCE
    strategy: str = "auto"
    broadcast_limit: int = BROADCAST_LIMIT
    cell_rows: int = CELL_ROWS
    tasks: int | None = None
    quantiles: tuple[float, ...] = ()
    at_least: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if self.made_from is not None and len(self.made_from) != len(self.id):
            problems.append(
                f"made_from names {len(self.made_from)} column(s), id {len(self.id)}; match them one by one"
            )
        for name in ("id", "made_from", "components"):
            names = getattr(self, name)
            if names is not None and not names:
                problems.append(f"{name} must name at least one column")
            repeated = sorted({column for column in names or () if names.count(column) > 1})
            problems += [f"{name} names '{column}' more than once" for column in repeated]
        if not 0 <= self.tie_tolerance <= LARGEST_TIE_TOLERANCE:
            problems.append(f"tie_tolerance must be from 0 to {LARGEST_TIE_TOLERANCE}, not {self.tie_tolerance}")
        if self.strategy not in STRATEGIES:
            problems.append(f"strategy must be one of {', '.join(STRATEGIES)}, not '{self.strategy}'")
        for name in ("broadcast_limit", "cell_rows", "tasks"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST_NUMBER:
                problems.append(f"{name} must be from 1 to {LARGEST_NUMBER}, not {value}")
        if not all(0 < share < 1 for share in self.quantiles):
            problems.append(f"quantiles must be between 0 and 1, not {', '.join(map(str, self.quantiles))}")
        if not all(k >= 1 for k in self.at_least):
            problems.append(f"at_least must be from 1, not {', '.join(map(str, self.at_least))}")
        if problems:
            raise SettingsError(*problems)


@dataclass(frozen=True)
class Plan:
    """Tables that passed every check, ready to be counted."""

    originals: DataFrame = field(repr=False)
    avatars: DataFrame = field(repr=False)
    columns: linking.Columns
    rows: checks.Rows
    groups: Mapping[int, str]
    tie_tolerance: float
    spread: counting.Spread
    quantiles: tuple[float, ...] = ()
    at_least: tuple[int, ...] = ()


def local_cloaking(
    originals: DataFrame,
    avatars: DataFrame,
    *,
    id: str | Sequence[str] = "id",
    made_from: str | Sequence[str] | None = None,
    link: DataFrame | None = None,
    components: Sequence[str] | None = None,
    ncp: int | None = None,
    group_by: str | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
    strategy: str = "auto",
    broadcast_limit: int = BROADCAST_LIMIT,
    cell_rows: int = CELL_ROWS,
    tasks: int | None = None,
    quantiles: Sequence[float] = (),
    at_least: Sequence[int] = (),
) -> LocalCloaking:
    """Measure Local Cloaking: the median number of other avatars at least as close to an original as its own.

    Args:
        originals: one row per original: its key and its coordinates in the projected space.
        avatars: one row per avatar: the key of the original it was made from, and its coordinates.
        id: the originals' key, one or more columns; the avatars carry it too.
        made_from: the avatars' columns that hold that key, where they are called otherwise.
        link: a table `original_id`, `avatar_id`, one to one, where the avatars have ids of their own: in a column
            named like the key, or else in `avatar_id`.
        components: the columns to take distances over; unless given, the numeric columns of the originals.
        ncp: take the first ncp of the components.
        group_by: a column of the originals; the figures are given per group too.
        tie_tolerance: relative width of a tie, from 0 to 1e-6.
        strategy: `broadcast` sends all avatars to every machine, `partition` cuts space into cells, `auto` picks by
            size. All give the same counts.
        broadcast_limit: MiB of avatars' coordinates up to which `auto` broadcasts.
        cell_rows: the most avatars that a task of `partition` holds.
        tasks: Spark tasks to count with; unless given, from the number of rows.
        quantiles: shares of quantiles of the cloaking to give besides 0.05, 0.25, 0.5, 0.75 and 0.95.
        at_least: the k for which to give how many originals at least k other avatars hide, besides the usual ones.

    Returns:
        The figures in `.summary`, the counts of each original in `.counts`.

    Raises:
        InputError: everything that is wrong with the tables, one line each.
    """
    options = Options(
        id=_names(id),
        made_from=None if made_from is None else _names(made_from),
        components=None if components is None else _names(components),
        ncp=ncp,
        group_by=group_by,
        tie_tolerance=tie_tolerance,
        strategy=strategy,
        broadcast_limit=broadcast_limit,
        cell_rows=cell_rows,
        tasks=tasks,
        quantiles=tuple(quantiles),
        at_least=tuple(at_least),
    )
    return measure(prepare(originals, avatars, options, link=link))


def prepare(
    originals: DataFrame,
    avatars: DataFrame,
    options: Options,
    *,
    link: DataFrame | None = None,
    labels: tuple[str, str, str] = ("originals", "avatars", "link"),
    partitions: Sequence[str] = (),
) -> Plan:
    """Link and check the tables as `local_cloaking` does, without computing a distance.

    `labels` is what messages call the originals, the avatars and the link table; `partitions` are columns of the
    originals that are components only where they are named.
    """
    key, avatars_key = options.id, options.made_from or options.id
    apart = [*key, *partitions, *([options.group_by] if options.group_by is not None else [])]
    chosen, problems = linking.choose_components(originals, apart, options.components, options.ncp, labels[0])
    if link is not None:
        avatars_key = linking.own_ids(avatars, key)
    side = schemas.Side(originals, labels[0], key)
    other = schemas.Side(avatars, labels[1], avatars_key)
    if link is not None:
        wrong = checks.link_problems(schemas.Side(link, labels[2], ()), side, other)
        if wrong:
            raise InputError(*problems, *wrong, *checks.alone(side, chosen), *checks.alone(other, chosen))
        avatars, avatars_key = linking.by_link_table(avatars, avatars_key[0], link), (linking.ORIGINAL_ID,)
        other = schemas.Side(avatars, labels[1], avatars_key)
    columns = linking.Columns(key, avatars_key, chosen, options.group_by)
    rows = checks.check(side, other, columns, problems, null_is_unlinked=link is not None)
    log.info("components: %d of the originals: %s", len(chosen), ", ".join(chosen))
    unused = [name for name in avatars.columns if name not in (*avatars_key, *key, *chosen)]
    if unused:
        log.info("ignored: columns of the avatars: %s", ", ".join(unused))
    groups = _groups(originals, options.group_by, labels[0]) if options.group_by is not None else {}
    return Plan(
        originals=linking.originals(originals, columns, {label: n for n, label in groups.items()}),
        avatars=linking.avatars(avatars, columns),
        columns=columns,
        rows=rows,
        groups=groups,
        tie_tolerance=options.tie_tolerance,
        spread=counting.spread(
            originals.sparkSession,
            rows.originals,
            rows.avatars,
            len(chosen),
            strategy=options.strategy,
            broadcast_limit=options.broadcast_limit,
            cell_rows=options.cell_rows,
            tasks=options.tasks,
        ),
        quantiles=options.quantiles,
        at_least=options.at_least,
    )


def measure(plan: Plan, keep: Callable[[DataFrame], DataFrame] | None = None) -> LocalCloaking:
    """Count and summarise what `prepare` checked.

    `keep` may store the counts (key, closer, tied, cloaking) and return them as read back; then summarising reads
    them instead of counting again.
    """
    columns = plan.columns
    linked = linking.link(plan.originals, plan.avatars, columns, plan.spread.tasks)
    seen = Observation()
    watched = linked.observe(seen, *suspicions.observed(columns, plan.tie_tolerance))
    found = counting.count(watched, plan.avatars, columns, plan.rows.avatars, plan.tie_tolerance, plan.spread)
    counted, shipped = found.table, found.shipped
    keys = [F.col(key).alias(name) for key, name in zip(columns.keys, columns.id, strict=True)]
    counts = counted.select(*keys, "closer", "tied", "cloaking")
    if keep is not None:
        counts = keep(counts)
        counted = _grouped_again(counts, plan)

    start = time.monotonic()
    rows = plan.rows
    summary = summarise(
        counted, rows.originals, rows.avatars, columns.components, plan.groups, plan.quantiles, plan.at_least
    )
    if summary.originals != plan.rows.originals:
        raise InputError(
            f"originals: {plan.rows.originals:,} rows when checked, {summary.originals:,} when counted; "
            "measure a snapshot of the table"
        )
    log.info("counted: originals=%d seconds=%.1f", summary.originals, time.monotonic() - start)
    warnings = summary.warnings + suspicions.of_rows(_told(seen), columns) + rows.warnings
    return LocalCloaking(replace(summary, warnings=warnings), counts, shipped)


def _told(seen: Observation) -> Mapping[str, Any] | None:
    """Return what was observed; None where Spark dropped the word of it, for which it would wait without end."""
    told: list[Mapping[str, Any]] = []
    waiting = threading.Thread(target=lambda: told.append(seen.get), daemon=True)
    waiting.start()
    waiting.join(OBSERVED_WITHIN)
    return told[0] if told else None


def _grouped_again(counts: DataFrame, plan: Plan) -> DataFrame:
    """Give stored counts, which hold no groups, the group numbers of their originals."""
    keys = [column(name).alias(key) for name, key in zip(plan.columns.id, plan.columns.keys, strict=True)]
    counts = counts.select(*keys, "closer", "tied", "cloaking")
    if not plan.groups:
        return counts.withColumn("group", F.lit(OVERALL))
    groups = plan.originals.select(*plan.columns.keys, "group")
    return counts.join(groups, on=plan.columns.keys, how="inner")


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _groups(originals: DataFrame, group_by: str, label: str) -> dict[int, str]:
    """Number the groups that are told apart from 1, the small ones merged."""
    counted = originals.groupBy(linking.group_label(group_by).alias("label")).count()
    large = (F.col("count") >= SMALLEST_GROUP) & (F.col("label") != OTHER_GROUPS)
    known = F.when(large, F.col("label")).otherwise(OTHER_GROUPS).alias("label")
    rows = counted.groupBy(known).agg(F.sum("count").alias("count")).limit(GROUPS + 3).collect()  # never millions
    alone, merged = linking.merge_small_groups({row["label"]: row["count"] for row in rows})
    if len(alone) > GROUPS:
        raise InputError(f"{label}: column '{group_by}' has more than the {GROUPS:,} groups that are told apart")
    labels = [*alone, *([OTHER_GROUPS] if merged else [])]
    return dict(enumerate(labels, start=1))
