"""The command: settings, session, logging, measure, write, exit code; the jobs and the console script call `main`."""

import contextlib
import datetime
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloaking import __version__
from cloaking.config import Settings, parse
from cloaking.errors import CloakingError, InputError, SettingsError
from cloaking.figures import Gate, Run, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloaking.measure import Plan

log = logging.getLogger("cloaking")

DONE, BUG, WRONG, NOT_MET = 0, 1, 2, 3

OLDEST_JAVA = 17
MOST_MEMORY = 8  # GiB for Spark on a machine of one's own; half of the machine's where that is less
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # Spark runs one task per core already


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report and return the exit code: 0 done, 1 a bug, 2 wrong arguments or data, 3 the gate is not met."""
    start = time.monotonic()
    try:
        settings = parse(argv)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        log.setLevel(logging.INFO)
        with _session(settings) as spark:
            return _report(spark, settings, start)
    except CloakingError as error:
        for problem in error.problems:
            print(f"local-cloaking: {problem}", file=sys.stderr)
        return WRONG
    except Exception:
        traceback.print_exc()
        return BUG


def _report(spark: "SparkSession", settings: Settings, start: float) -> int:
    """Measure and write, in the order counts, report.json; the report's presence means that the run is whole."""
    from cloaking import report, tables
    from cloaking.measure import measure

    laps = {"session": time.monotonic()}
    if settings.counts is not None:
        tables.check_new(spark, settings.counts, settings.overwrite)
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

        summary = measure(plan, keep if settings.counts is not None else None).summary
        laps["count"] = time.monotonic()
        for notice in summary.warnings[: len(summary.warnings) - len(plan.rows.warnings)]:
            log.warning("%s: %s", notice.code, notice.message)
        laps["write"] = time.monotonic()
        run = _run(spark, settings, plan, summary, start, laps)
        path = tables.write_text(settings.output, "report.json", report.to_json(run))
        undo.pop_all()
    log.info("%s", _closing_line(run, path))
    return NOT_MET if run.verdict == "fail" else DONE


def _plan(spark: "SparkSession", settings: Settings) -> "Plan":
    """Read, link and check the tables."""
    from cloaking import tables
    from cloaking.linking import AVATAR_ID, ORIGINAL_ID
    from cloaking.measure import prepare

    key = settings.id
    made_from = settings.made_from or key
    where = (settings.where, settings.where_avatars or settings.where)
    text = ([*key, settings.group_by or ""], [*key, *made_from])
    refs = [settings.originals, settings.avatars]
    frames, problems = [], []
    for role, ref, condition, names in zip(("originals", "avatars"), refs, where, text, strict=True):
        try:
            frames.append(
                tables.read(spark, ref, role, where=condition, text=names, by_position=settings.by_position)
            )
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
        originals, avatars = tables.match_key_types([(originals, key, csv[0]), (avatars, made_from, csv[1])])
    else:
        link_csv = tables.is_csv(str(settings.link))
        originals, link = tables.match_key_types([(originals, key, csv[0]), (link, (ORIGINAL_ID,), link_csv)])
        avatars, link = tables.match_key_types([(avatars, key, csv[1]), (link, (AVATAR_ID,), link_csv)])
    return prepare(
        originals,
        avatars,
        id=key,
        made_from=made_from,
        link=link,
        components=settings.components,
        ncp=settings.ncp,
        group_by=settings.group_by,
        tie_tolerance=settings.tie_tolerance,
        tasks=settings.tasks,
        labels=(f"originals '{refs[0]}'", f"avatars '{refs[1]}'", f"link '{settings.link}'"),
    )


def _run(
    spark: "SparkSession",
    settings: Settings,
    plan: "Plan",
    summary: Summary,
    start: float,
    laps: Mapping[str, float],
) -> Run:
    from cloaking.counting import STRATEGY

    now = datetime.datetime.now(datetime.UTC)
    ends = {"start": start, **laps}
    seconds = {lap: ends[lap] - before for lap, before in zip(laps, ends.values(), strict=False)}
    seconds["total"] = time.monotonic() - start
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
        parameters=_parameters(settings) | {"tasks": plan.tasks},
        versions=_versions(spark),
        strategy=STRATEGY,
        seconds={lap: round(value, 3) for lap, value in seconds.items()},
    )


def _gates(settings: Settings, summary: Summary) -> tuple[Gate, ...]:
    rules = {"local_cloaking": settings.min_local_cloaking, "hidden_rate": settings.min_hidden_rate}
    return tuple(
        Gate(metric, threshold, getattr(summary, metric)) for metric, threshold in rules.items() if threshold is not None
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
    from cloaking.counting import STRATEGY

    lines = {
        "originals": f"{settings.originals} ({plan.rows.originals:,} rows)",
        "avatars": f"{settings.avatars} ({plan.rows.avatars:,} rows)",
        "link": f"{_link_kind(settings)} ({', '.join(plan.columns.made_from)})",
        "components": f"{len(plan.columns.components)}: {', '.join(plan.columns.components)}",
        "groups": ", ".join(plan.groups.values()) or "none",
        "strategy": f"{STRATEGY}, {plan.tasks} task(s)",
        "counts": settings.counts or "not written",
        "report": settings.output or "not written",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())


def _closing_line(run: Run, path: str) -> str:
    summary = run.summary
    return (
        f"local_cloaking={summary.local_cloaking:g} hidden_rate={summary.hidden_rate:.2f} "
        f"originals={summary.originals} avatars={summary.avatars} ncp={summary.ncp} "
        f"verdict={run.verdict.replace(' ', '_')} seconds={run.seconds['total']:.1f} report={path}"
    )


@contextlib.contextmanager
def _session(settings: Settings) -> Iterator["SparkSession"]:
    """Give the running Spark session, or start one and stop it at the end."""
    given = dict(setting.split("=", 1) for setting in settings.conf)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    remote = "SPARK_REMOTE" in os.environ or "spark.remote" in given
    if not submitted and not remote:
        _find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the workers take another python3 from the PATH
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    configured = submitted or remote or "SPARK_CONF_DIR" in os.environ or "PYSPARK_SUBMIT_ARGS" in os.environ
    defaults = {} if configured else _own_machine()
    if not remote:
        defaults |= {f"spark.executorEnv.{name}": "1" for name in ONE_THREAD}
    defaults["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    builder = SparkSession.builder.appName("local-cloaking")
    for key, value in (defaults | given).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _own_machine() -> dict[str, str]:
    """Return the settings for a machine of one's own: all cores, half of the memory, a progress bar on a terminal."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": f"{min(memory // 2, MOST_MEMORY * 1024)}m",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }


def _find_java() -> None:
    """Look for Java before Spark does, whose own message is a page long."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    fix = f"install Java {OLDEST_JAVA} or newer and set JAVA_HOME, or put java on the PATH"
    if java is None:
        raise SettingsError(f"Spark needs Java, and there is none; {fix}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        raise SettingsError(f"Spark needs Java, and {java} does not run; {fix}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found and int(found[1]) < OLDEST_JAVA:
        raise SettingsError(f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is {found[1]}; {fix}")
