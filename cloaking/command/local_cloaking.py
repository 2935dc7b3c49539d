"""Measure Local Cloaking and write the report; the job file and the console script call this module."""

import datetime
import logging
import platform
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cloaking.addresses import published
from cloaking.command.repeat import repeat_with
from cloaking.command.run import DONE, NOT_MET, end, run
from cloaking.command.settings import Settings, parse
from cloaking.errors import SettingsError
from cloaking.results import Gate, PastRun, Run, Summary
from cloaking.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloaking.command.inputs import Inputs
    from cloaking.spark.plan import Plan

log = logging.getLogger("cloaking")

_ADDRESSES = ("originals", "avatars", "link", "output", "counts", "history")
_ROW_REMAINS = "holds the row of this run, which failed afterwards; the next run of this name and date replaces it"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report and return the exit code: 0 done, 3 the gate is not met, others as in `run.run`."""
    return run("local-cloaking", lambda: parse(argv), _report)


def console() -> None:
    """Run one report and end the process with its exit code, for the console script."""
    end(main())


def _report(spark: "SparkSession", settings: Settings, start: float) -> int:
    """Measure, then write counts, page, history and last report.json, which marks the run as complete."""
    from cloaking import report
    from cloaking.measure import measure
    from cloaking.spark_errors import reading
    from cloaking.tables import history, replacing, text_files, write

    # The date is part of the history's key, so it is fixed before anything is read: a run may last past midnight.
    begun = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=time.monotonic() - start)
    laps = {"session": time.monotonic()}
    past, sources, plan = _checked(spark, settings)
    laps["checks"] = time.monotonic()
    for notice in plan.rows.warnings:
        log.warning("%s: %s", notice.code, notice.message)
    if settings.dry_run:
        print(_describe(settings, plan))
        return DONE

    assert settings.output is not None
    with replacing.together() as results:

        def keep(counts: "DataFrame") -> "DataFrame":
            assert settings.counts is not None
            return write.write(counts, settings.counts, "counts", settings.overwrite, results)

        with reading("originals or avatars"):
            summary = measure(plan, keep if settings.counts is not None else None).summary
        fell = history.fell(past, summary, _run_date(settings, begun), settings.compare_last)
        summary = replace(summary, warnings=(*fell, *summary.warnings))
        laps["count"] = time.monotonic()
        for notice in summary.warnings[: len(summary.warnings) - len(plan.rows.warnings)]:
            log.warning("%s: %s", notice.code, notice.message)
        run = _run(spark, settings, plan, sources, summary, begun, start, laps)
        put = text_files.into(settings.output, results)
        put("report.html", _page(run, past))
        if settings.history is not None:
            history.record(spark, settings.history, run)
            if any(earlier.run_date == run.run_date for earlier in past):
                log.info("history: the row of %s on %s is replaced", run.name, run.run_date)
            results.undo.callback(log.error, "history '%s': %s", published(settings.history), _ROW_REMAINS)
        laps["write"] = time.monotonic()
        run = replace(run, seconds=_seconds(start, laps))
        path = put("report.json", report.to_json(run))
    for gate in run.gates:
        _log_gate(gate)
    log.info("%s", _closing_line(run, path))
    return NOT_MET if run.verdict == "fail" else DONE


def _checked(spark: "SparkSession", settings: Settings) -> tuple[tuple[PastRun, ...], "Inputs", "Plan"]:
    """Check settings, results and tables; return the past runs, the tables and the plan of the counting."""
    from cloaking.command import inputs
    from cloaking.spark_errors import reading
    from cloaking.tables import history, overlap, text_files, write

    read = [ref for ref in (settings.originals, settings.avatars, settings.link) if ref is not None]
    kept = {"counts": settings.counts, "history": settings.history}
    results = {role: ref for role, ref in kept.items() if ref is not None}
    overlap.check_apart(spark, results, read, settings.output)
    if settings.counts is not None:
        write.check_new(spark, settings.counts, "counts", settings.overwrite)
    if settings.output is not None and not settings.dry_run:
        text_files.check(settings.output)
    past = history.past(spark, settings.history, _name(settings)) if settings.history is not None else ()
    with reading("originals or avatars"):
        sources = inputs.read(spark, settings)
    overlap.check_files(spark, results, sources.all)
    with reading("originals or avatars"):
        plan = _plan(settings, sources)
    _check_groups(settings, plan)
    return past, sources, plan


def _page(run: Run, past: Sequence[PastRun]) -> str | None:
    """Return the page as HTML; if the packages that draw it are missing, log a warning and return None."""
    from cloaking import report

    try:
        return report.to_html(run, past)
    except SettingsError as error:
        log.warning("report.html is not written: %s", error)
        return None


def _plan(settings: Settings, tables: "Inputs") -> "Plan":
    """Link and check the tables."""
    from cloaking.spark.plan import prepare

    return prepare(
        tables.originals,
        tables.avatars,
        settings.measured,
        linked_by=tables.link,
        partitions=tables.partitions,
    )


def _check_groups(settings: Settings, plan: "Plan") -> None:
    """Refuse rules on groups that do not exist, before anything is counted."""
    groups, column = list(plan.groups.values()), settings.options.group_by
    missing = sorted({rule.group for rule in settings.rules if rule.group is not None} - set(groups))
    if missing:
        raise SettingsError(
            *(
                f"gates: there is no group '{group}' in column '{column}' (groups under 100 are merged into "
                f"'(other)'); there is {', '.join(groups)}"
                for group in missing
            )
        )


def _name(settings: Settings) -> str:
    return settings.name or published(settings.originals)


def _run_date(settings: Settings, begun: datetime.datetime) -> str:
    return settings.run_date or begun.date().isoformat()


def _run(
    spark: "SparkSession",
    settings: Settings,
    plan: "Plan",
    sources: "Inputs",
    summary: Summary,
    begun: datetime.datetime,
    start: float,
    laps: Mapping[str, float],
) -> Run:
    run_date = _run_date(settings, begun)
    parameters = _parameters(settings) | {"tasks": plan.spread.tasks}
    command, command_file = repeat_with(parameters, run_date)
    return Run(
        run_id=uuid.uuid4().hex,
        name=_name(settings),
        run_at=begun.isoformat(timespec="seconds"),
        run_date=run_date,
        summary=summary,
        gates=tuple(rule.applied(summary) for rule in settings.rules),
        inputs=((published(settings.originals), summary.originals), (published(settings.avatars), summary.avatars)),
        link_kind=_link_kind(settings),
        link_columns=plan.columns.made_from,
        parameters=parameters,
        versions=_versions(spark),
        strategy=plan.spread.strategy,
        seconds=_seconds(start, laps),
        command=command,
        command_file=command_file,
        explained_variance=None if sources.model is None else sources.model.explained_variance[: summary.ncp],
    )


def _seconds(start: float, laps: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each stage, from the times at which the stages ended, and the total so far."""
    ends = [start, *laps.values()]
    lengths = {lap: end - before for lap, before, end in zip(laps, ends, ends[1:], strict=False)}
    return {lap: round(seconds, 3) for lap, seconds in (lengths | {"total": time.monotonic() - start}).items()}


def _link_kind(settings: Settings) -> str:
    if settings.link is not None:
        return "link table"
    if settings.by_position:
        return "position"
    return "key" if settings.options.made_from is None else "made from"


def _parameters(settings: Settings) -> dict[str, Any]:
    """Return the settings that may be published; those of the projection only if tables were projected.

    Spark settings are left out, and addresses lose their user parts and parameters, since all may hold passwords.
    """
    values = _in_order(settings)
    values["gates"] = tuple(
        _without_none({"metric": rule.metric, "at_least": rule.threshold, "group": rule.group})
        for rule in settings.gates
    )
    values["jdbc"] = {
        name: _without_none(asdict(block)) | {"url": published(block.url)} for name, block in settings.jdbc.items()
    }
    values |= {name: published(values[name]) for name in _ADDRESSES if values[name] is not None}
    return {name: value for name, value in values.items() if value not in (None, (), {})}


def _in_order(settings: Settings) -> dict[str, Any]:
    """Return the options by their names, including those of the measurement and of the projected space."""
    left_out = {"options", "space", "conf", "debug"}
    own = {one.name: getattr(settings, one.name) for one in fields(settings) if one.name not in left_out}
    measured = {one.name: getattr(settings.options, one.name) for one in fields(settings.options)}
    projected = {one.name: getattr(settings.space, one.name) for one in fields(settings.space)}
    del measured["quantiles"], measured["at_least"], projected["method"]  # contained in gates and project
    return own | (projected if settings.project else {}) | measured


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _versions(spark: "SparkSession") -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "pandas", "pyarrow")}
    return {"cloaking": __version__, "python": platform.python_version(), "spark": spark.version, **packages}


def _describe(settings: Settings, plan: "Plan") -> str:
    """Return a text that describes what a run would do, for --dry-run."""
    lines = {
        "originals": f"{published(settings.originals)} ({plan.rows.originals:,} rows)",
        "avatars": f"{published(settings.avatars)} ({plan.rows.avatars:,} rows)",
        "link": f"{_link_kind(settings)} ({', '.join(plan.columns.made_from)})",
        "components": f"{len(plan.columns.components)}: {', '.join(plan.columns.components)}",
        "groups": ", ".join(plan.groups.values()) or "none",
        "strategy": f"{plan.spread.strategy}, {plan.spread.tasks} task(s)",
        "counts": published(settings.counts or "not written"),
        "report": published(settings.output or "not written"),
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())


def _log_gate(gate: Gate) -> None:
    metric = gate.metric if gate.group is None else f"{gate.metric} of group '{gate.group}'"
    level, verdict = (logging.INFO, "met") if gate.met else (logging.WARNING, "not met")
    log.log(level, "gate %s: %s %s %.15g, measured %.15g", verdict, metric, gate.operator, gate.threshold, gate.value)


def _closing_line(run: Run, path: str) -> str:
    summary = run.summary
    median = f"{summary.local_cloaking:.1f}".removesuffix(".0")  # an integer or half of one
    return (
        f"local_cloaking={median} hidden_rate={summary.hidden_rate:.2f} "
        f"originals={summary.originals} avatars={summary.avatars} ncp={summary.ncp} "
        f"verdict={run.verdict.replace(' ', '_')} seconds={run.seconds['total']:.1f} report={path}"
    )
