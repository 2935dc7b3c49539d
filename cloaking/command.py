"""The command: settings, session, measure, write, exit code; the jobs and the console script call `main`."""

import contextlib
import datetime
import logging
import platform
import sys
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cloaking import __version__
from cloaking.config import Settings, parse
from cloaking.errors import CloakingError, InputError, SettingsError
from cloaking.figures import Gate, Run, Summary
from cloaking.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloaking.measure import Plan

log = logging.getLogger("cloaking")

DONE, BUG, WRONG, NOT_MET = 0, 1, 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report and return the exit code: 0 done, 1 a bug, 2 wrong arguments or data, 3 the gate is not met."""
    start = time.monotonic()
    try:
        settings = parse(argv)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        log.setLevel(logging.INFO)
        with session(settings.conf) as spark:
            return _report(spark, settings, start)
    except CloakingError as error:
        for problem in error.problems:
            print(f"local-cloaking: {problem}", file=sys.stderr)
        return WRONG
    except Exception:
        traceback.print_exc()
        return BUG


def _report(spark: "SparkSession", settings: Settings, start: float) -> int:
    """Measure, and write counts, page, history and report.json in this order; the last means that the run is whole."""
    from cloaking import history, report, tables
    from cloaking.measure import measure

    laps = {"session": time.monotonic()}
    if settings.counts is not None:
        inputs = [ref for ref in (settings.originals, settings.avatars, settings.link) if ref is not None]
        tables.check_new(spark, settings.counts, settings.overwrite, inputs)
    with tables.reading("originals or avatars"):
        plan = _plan(spark, settings)
    laps["checks"] = time.monotonic()
    for notice in plan.rows.warnings:
        log.warning("%s: %s", notice.code, notice.message)
    if settings.dry_run:
        print(_describe(settings, plan))
        return DONE

    assert settings.output is not None
    with contextlib.ExitStack() as undo:

        def keep(counts: "DataFrame") -> "DataFrame":
            assert settings.counts is not None
            stored = tables.write(counts, settings.counts, settings.overwrite)
            undo.callback(lambda: log.error("%s", tables.remove(spark, str(settings.counts))))
            return stored

        with tables.reading("originals or avatars"):
            summary = measure(plan, keep if settings.counts is not None else None).summary
        laps["count"] = time.monotonic()
        for notice in summary.warnings[: len(summary.warnings) - len(plan.rows.warnings)]:
            log.warning("%s: %s", notice.code, notice.message)
        run = _run(spark, settings, plan, summary, start, laps)
        past = history.past(spark, settings.history, run.name) if settings.history is not None else ()
        try:
            tables.write_text(settings.output, "report.html", report.to_html(run, past))
        except SettingsError as error:
            log.warning("report.html is not written: %s", error)
            tables.remove_text(settings.output, "report.html")
        if settings.history is not None:
            history.record(spark, settings.history, run)
        laps["write"] = time.monotonic()
        run = replace(run, seconds=_seconds(start, laps))
        path = tables.write_text(settings.output, "report.json", report.to_json(run))
        undo.pop_all()
    log.info("%s", _closing_line(run, path))
    return NOT_MET if run.verdict == "fail" else DONE


def _plan(spark: "SparkSession", settings: Settings) -> "Plan":
    """Read, link and check the tables."""
    from cloaking import tables
    from cloaking.linking import AVATAR_ID, ORIGINAL_ID
    from cloaking.measure import Options, prepare

    key = settings.id
    made_from = settings.made_from or key
    where = (settings.where, settings.where_avatars or settings.where)
    text = ([*key, settings.group_by or ""], [*key, *made_from])
    refs = [settings.originals, settings.avatars]
    frames: list[DataFrame] = []
    problems: list[str] = []
    for role, ref, condition, names in zip(("originals", "avatars"), refs, where, text, strict=True):
        try:
            frames.append(tables.read(spark, ref, role, where=condition, text=names, by_position=settings.by_position))
        except InputError as error:
            problems += error.problems
    link = None
    if settings.link is not None:
        try:
            link = tables.read(spark, settings.link, "link", text=(ORIGINAL_ID, AVATAR_ID))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)

    originals, avatars = frames
    csv = [tables.is_csv(ref) and not settings.by_position for ref in refs]
    if link is None:
        originals, avatars = tables.match_key_types(originals, key, csv[0], avatars, made_from, csv[1])
    else:
        link_csv = tables.is_csv(str(settings.link))
        originals, link = tables.match_key_types(originals, key, csv[0], link, (ORIGINAL_ID,), link_csv)
        avatars, link = tables.match_key_types(avatars, key, csv[1], link, (AVATAR_ID,), link_csv)
    options = Options(
        id=key,
        made_from=made_from,
        components=settings.components,
        ncp=settings.ncp,
        group_by=settings.group_by,
        tie_tolerance=settings.tie_tolerance,
        strategy=settings.strategy,
        broadcast_limit=settings.broadcast_limit,
        cell_rows=settings.cell_rows,
        tasks=settings.tasks,
    )
    labels = (f"originals '{refs[0]}'", f"avatars '{refs[1]}'", f"link '{settings.link}'")
    return prepare(originals, avatars, options, link=link, labels=labels)


def _run(
    spark: "SparkSession",
    settings: Settings,
    plan: "Plan",
    summary: Summary,
    start: float,
    laps: Mapping[str, float],
) -> Run:
    now = datetime.datetime.now(datetime.UTC)
    return Run(
        run_id=uuid.uuid4().hex,
        name=settings.name or settings.originals,
        run_at=now.isoformat(timespec="seconds"),
        run_date=settings.run_date or now.date().isoformat(),
        summary=summary,
        gates=_gates(settings, summary),
        inputs=((settings.originals, summary.originals), (settings.avatars, summary.avatars)),
        link_kind=_link_kind(settings),
        link_columns=plan.columns.made_from,
        parameters=_parameters(settings) | {"tasks": plan.spread.tasks},
        versions=_versions(spark),
        strategy=plan.spread.strategy,
        seconds=_seconds(start, laps),
    )


def _seconds(start: float, laps: Mapping[str, float]) -> dict[str, float]:
    """Return how long each stage took, from the moments at which they ended, and the total so far."""
    ends = [start, *laps.values()]
    lengths = {lap: end - before for lap, before, end in zip(laps, ends, ends[1:], strict=False)}
    return {lap: round(seconds, 3) for lap, seconds in (lengths | {"total": time.monotonic() - start}).items()}


def _gates(settings: Settings, summary: Summary) -> tuple[Gate, ...]:
    rules = {"local_cloaking": settings.min_local_cloaking, "hidden_rate": settings.min_hidden_rate}
    return tuple(
        Gate(metric, threshold, getattr(summary, metric))
        for metric, threshold in rules.items()
        if threshold is not None
    )


def _link_kind(settings: Settings) -> str:
    if settings.link is not None:
        return "link table"
    if settings.by_position:
        return "position"
    return "key" if settings.made_from is None else "made from"


def _parameters(settings: Settings) -> dict[str, Any]:
    """Return what was set, without Spark's settings, which may hold passwords."""
    return {name: value for name, value in asdict(settings).items() if value is not None and name != "conf"}


def _versions(spark: "SparkSession") -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "pandas", "pyarrow")}
    return {"cloaking": __version__, "python": platform.python_version(), "spark": spark.version, **packages}


def _describe(settings: Settings, plan: "Plan") -> str:
    """Return what a run would do."""
    lines = {
        "originals": f"{settings.originals} ({plan.rows.originals:,} rows)",
        "avatars": f"{settings.avatars} ({plan.rows.avatars:,} rows)",
        "link": f"{_link_kind(settings)} ({', '.join(plan.columns.made_from)})",
        "components": f"{len(plan.columns.components)}: {', '.join(plan.columns.components)}",
        "groups": ", ".join(plan.groups.values()) or "none",
        "strategy": f"{plan.spread.strategy}, {plan.spread.tasks} task(s)",
        "counts": settings.counts or "not written",
        "report": settings.output or "not written",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())


def _closing_line(run: Run, path: str) -> str:
    summary = run.summary
    median = f"{summary.local_cloaking:.1f}".removesuffix(".0")  # a count, or the middle of two
    return (
        f"local_cloaking={median} hidden_rate={summary.hidden_rate:.2f} "
        f"originals={summary.originals} avatars={summary.avatars} ncp={summary.ncp} "
        f"verdict={run.verdict.replace(' ', '_')} seconds={run.seconds['total']:.1f} report={path}"
    )
