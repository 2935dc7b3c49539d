"""Link and check two projected tables, and plan how they are counted, without computing a distance."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloaking.columns import Side
from cloaking.errors import InputError
from cloaking.options import Options
from cloaking.results import OTHER_GROUPS, SMALLEST_GROUP
from cloaking.spark import checks, link
from cloaking.spark.arrow import ROWS

log = logging.getLogger(__name__)

GROUPS = 1_000  # the most groups with separate figures
FEWEST_ROWS_PER_TASK = 20_000  # below this, starting a task costs more than counting its rows
# Coordinates of originals that a task holds at a time: the more originals, the nearer are those that visit a leaf
# together. With ten million rows of 5 components, two million at a time took 7 core seconds per million originals,
# 250,000 at a time 17. This needs about 0.6 GiB, whatever the number of components.
COORDINATES_TOGETHER = 10_000_000


@dataclass(frozen=True)
class Spread:
    """How the counting is distributed: the strategy (never auto) and the number of tasks."""

    strategy: str
    tasks: int


@dataclass(frozen=True)
class Plan:
    """Tables that passed every check, ready to be counted."""

    originals: DataFrame = field(repr=False)
    avatars: DataFrame = field(repr=False)
    columns: link.Columns
    rows: checks.Rows
    groups: Mapping[int, str]
    options: Options
    spread: Spread


def prepare(
    originals: Side, avatars: Side, options: Options, *, linked_by: Side | None = None, partitions: Sequence[str] = ()
) -> Plan:
    """Link and check the tables as `local_cloaking` does, without computing a distance.

    Args:
        originals: the originals with their key.
        avatars: the avatars with the columns that name the original from which each was made or, with a link table,
            with the column of their own ids.
        options: the options of the measurement.
        linked_by: a link table `original_id`, `avatar_id`.
        partitions: columns of the originals that are components only if named.

    Raises:
        InputError: the tables are wrong; the message has a line for each problem.
    """
    excluded = [*originals.key, *partitions, *([options.group_by] if options.group_by is not None else [])]
    chosen, problems = link.choose_components(
        originals.table, excluded, options.components, options.ncp, originals.label
    )
    if linked_by is not None:
        wrong = checks.link_problems(linked_by, originals, avatars)
        if wrong:
            raise InputError(
                *problems, *wrong, *checks.of_components(originals, chosen), *checks.of_components(avatars, chosen)
            )
        linked = link.by_link_table(avatars.table, avatars.key[0], linked_by.table)
        avatars = replace(avatars, table=linked, key=(link.ORIGINAL_ID,))
    columns = link.Columns(originals.key, avatars.key, chosen, options.group_by)
    rows = checks.check(originals, avatars, columns, problems, null_is_unlinked=linked_by is not None)
    log.info("components: %d of the originals: %s", len(chosen), ", ".join(chosen))
    unused = [name for name in avatars.table.columns if name not in (*avatars.key, *originals.key, *chosen)]
    if unused:
        log.info("ignored: columns of the avatars: %s", ", ".join(unused))
    groups = _groups(originals, options.group_by) if options.group_by is not None else {}
    return Plan(
        originals=link.originals(originals.table, columns, {label: n for n, label in groups.items()}),
        avatars=link.avatars(avatars.table, columns),
        columns=columns,
        rows=rows,
        groups=groups,
        options=options,
        spread=spread(originals.table.sparkSession, rows.originals, rows.avatars, len(chosen), options),
    )


def spread(spark: SparkSession, originals: int, avatars: int, ncp: int, options: Options) -> Spread:
    """Choose strategy and number of tasks: auto broadcasts up to `broadcast_limit` MiB of avatars, else partitions.

    Unless given, the number of tasks depends on the number of originals and, if Spark can say it, of cores.
    """
    strategy, tasks = options.strategy, options.tasks
    if strategy == "auto":
        strategy = "broadcast" if avatars * ncp * 8 <= options.broadcast_limit * 2**20 else "partition"
    if tasks is None:
        context = context_of(spark)
        cores = context.defaultParallelism if context is not None else 1
        rounds = -(-originals // (cores * rows_together(ncp)))
        tasks = max(1, min(cores * rounds, originals // FEWEST_ROWS_PER_TASK))
    return Spread(strategy, tasks)


def rows_together(ncp: int) -> int:
    """Return the number of originals that a task counts at a time."""
    return max(ROWS, COORDINATES_TOGETHER // ncp)


def context_of(spark: SparkSession) -> SparkContext | None:
    """Return the SparkContext, or None under Spark Connect, which has none."""
    session: object = spark  # a Spark Connect session is of another class
    return session.sparkContext if isinstance(session, SparkSession) else None


def _groups(originals: Side, group_by: str) -> dict[int, str]:
    """Return the labels of the groups by their numbers, from 1, with the small groups merged."""
    counted = originals.table.groupBy(link.group_label(group_by).alias("label")).count()
    large = (F.col("count") >= SMALLEST_GROUP) & (F.col("label") != OTHER_GROUPS)
    known = F.when(large, F.col("label")).otherwise(OTHER_GROUPS).alias("label")
    rows = counted.groupBy(known).agg(F.sum("count").alias("count")).limit(GROUPS + 3).collect()  # never millions
    kept, merged = link.merge_small_groups({row["label"]: row["count"] for row in rows})
    if len(kept) > GROUPS:
        raise InputError(f"{originals.label}: column '{group_by}' has more than the {GROUPS:,} groups that get figures")
    labels = [*kept, *([OTHER_GROUPS] if merged else [])]
    return dict(enumerate(labels, start=1))
