"""Measure Local Cloaking of originals and avatars: link and check the tables, count, summarise."""

import inspect
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from cloaking.columns import Side, column
from cloaking.errors import InputError, SettingsError
from cloaking.options import Options, explained
from cloaking.results import Summary
from cloaking.spark import link as links
from cloaking.spark import warnings as suspect
from cloaking.spark.broadcast import Shipped
from cloaking.spark.count import count
from cloaking.spark.plan import Plan, prepare
from cloaking.spark.tally import OVERALL, summarise

log = logging.getLogger(__name__)

OBSERVED_WITHIN = 60  # seconds after the counting; an overloaded listener bus may drop the observation


@dataclass(frozen=True)
class LocalCloaking:
    """The result: the figures in `summary`, and the counts of each original (sensitive) in `counts`."""

    summary: Summary
    _counts: DataFrame = field(repr=False)
    _shipped: Shipped | None = field(default=None, repr=False)  # its files are freed with this result

    @property
    def counts(self) -> DataFrame:
        """One row per original: its key under its own name, `closer`, `tied` and `cloaking`.

        The table is lazy: each action on it counts again, so write it before you use it twice. Once this property is
        used, the index of the avatars stays on the driver's disk until Spark stops.
        """
        if self._shipped is not None:
            self._shipped.keep()
        return self._counts

    def _repr_html_(self) -> str | None:
        """Show the figures and their histogram in a notebook, or plain text without the extra `report`."""
        from cloaking.report import to_fragment

        try:
            return to_fragment(self.summary)
        except SettingsError:
            return None


def local_cloaking(
    originals: DataFrame, avatars: DataFrame, *, link: DataFrame | None = None, **options: Any
) -> LocalCloaking:
    """Measure Local Cloaking: the median number of other avatars at least as close to an original as its own.

    Args:
        originals: one row per original: its key and its coordinates in the projected space.
        avatars: one row per avatar: the key of the original it was made from, and its coordinates.
        link: a table `original_id`, `avatar_id`, one to one, if the avatars have their own ids: in a column named
            like the key, or else in `avatar_id`.
        **options: the fields of `cloaking.options.Options`; a list of one name may be given as a string.
            {options}

    Returns:
        The figures in `.summary`, the counts of each original in `.counts`.

    Raises:
        InputError: the tables are wrong; the message has a line for each problem.
        SettingsError: an option has an invalid value.
    """
    chosen = Options.of(options)
    key = chosen.made_from or chosen.id if link is None else links.own_ids(avatars, chosen.id)
    linked_by = None if link is None else Side(link, "link", ())
    return measure(
        prepare(Side(originals, "originals", chosen.id), Side(avatars, "avatars", key), chosen, linked_by=linked_by)
    )


def _documented() -> None:
    """Add the options to the signature and docstring of `local_cloaking`, for help() and notebooks."""
    signature = inspect.signature(local_cloaking)
    kept = [one for one in signature.parameters.values() if one.kind != inspect.Parameter.VAR_KEYWORD]
    more = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(Options)
    ]
    local_cloaking.__signature__ = signature.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
    lines = explained(Options).replace("\n", "\n            ")
    local_cloaking.__doc__ = (local_cloaking.__doc__ or "").replace("{options}", lines)


_documented()


def measure(plan: Plan, keep: Callable[[DataFrame], DataFrame] | None = None) -> LocalCloaking:
    """Count and summarise the tables of a plan from `prepare`.

    `keep` may store the counts (key, closer, tied, cloaking) and return the stored table; the summary is then computed
    from it instead of counting again.
    """
    columns = plan.columns
    linked = links.link(plan.originals, plan.avatars, columns, plan.spread.tasks)
    seen = Observation()
    watched = linked.observe(seen, *suspect.observed(columns, plan.options.tie_tolerance))
    found = count(plan, watched)
    counted, shipped = found.table, found.shipped
    keys = [F.col(key).alias(name) for key, name in zip(columns.keys, columns.id, strict=True)]
    counts = counted.select(*keys, "closer", "tied", "cloaking")
    if keep is not None:
        counts = keep(counts)
        counted = _grouped_again(counts, plan)

    start = time.monotonic()
    summary = summarise(plan, counted)
    if summary.originals != plan.rows.originals:
        raise InputError(
            f"originals: {plan.rows.originals:,} rows when checked, {summary.originals:,} when counted; "
            "measure a snapshot of the table"
        )
    log.info("counted: originals=%d seconds=%.1f", summary.originals, time.monotonic() - start)
    warnings = summary.warnings + suspect.of_rows(_observed(seen), columns) + plan.rows.warnings
    return LocalCloaking(replace(summary, warnings=warnings), counts, shipped)


def _observed(seen: Observation) -> Mapping[str, Any] | None:
    """Return the observed values, or None if Spark dropped the observation, in which case `get` would never return."""
    found: list[Mapping[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(seen.get), daemon=True)
    waiting.start()
    waiting.join(OBSERVED_WITHIN)
    return found[0] if found else None


def _grouped_again(counts: DataFrame, plan: Plan) -> DataFrame:
    """Add the originals' group numbers to stored counts, which do not contain them."""
    keys = [column(name).alias(key) for name, key in zip(plan.columns.id, plan.columns.keys, strict=True)]
    counts = counts.select(*keys, "closer", "tied", "cloaking")
    if not plan.groups:
        return counts.withColumn("group", F.lit(OVERALL))
    groups = plan.originals.select(*plan.columns.keys, "group")
    return counts.join(groups, on=plan.columns.keys, how="inner")
