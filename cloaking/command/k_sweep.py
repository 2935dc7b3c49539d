"""Run the k sweep and write k_sweep.html and k_sweep.json; jobs/k_sweep.py calls `main`."""

import datetime
import logging
import platform
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cloaking.addresses import published
from cloaking.command.k_sweep_settings import Settings, parse
from cloaking.command.run import DONE, NOT_MET, run
from cloaking.errors import InputError, SettingsError
from cloaking.sweep.results import Sweep, SweepRun
from cloaking.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloaking.kernel.tree import Floats

log = logging.getLogger("cloaking")

_UNPUBLISHED = ("conf", "debug")  # settings that the results leave out


def main(argv: Sequence[str] | None = None) -> int:
    """Sweep once and return the exit code: 0 done, 3 no k reaches the targets, others as in `run.run`."""
    return run("k_sweep", lambda: _settings(argv), _sweep)


def _settings(argv: Sequence[str] | None) -> Settings:
    """Return the settings of a command line, after a check that scipy is installed."""
    settings = parse(argv)
    _check_scipy()
    return settings


def _sweep(spark: "SparkSession", settings: Settings, start: float) -> int:
    """Read, simulate, measure, then write the page and last k_sweep.json, which marks the run as complete."""
    from cloaking.sweep import simulate
    from cloaking.tables import text_files

    begun = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=time.monotonic() - start)
    text_files.check(settings.output)
    started = time.monotonic()
    components, points = _read(spark, settings)
    read = time.monotonic()
    found = Sweep(simulate.sweep(points, settings.k, settings.repeats, settings.seed), settings.thresholds)
    swept = time.monotonic()
    seconds = {"session": started - start, "read": read - started, "sweep": swept - read, "total": swept - start}
    run = SweepRun(
        run_id=uuid.uuid4().hex,
        name=settings.name or published(settings.originals),
        run_at=begun.isoformat(timespec="seconds"),
        sweep=found,
        inputs=((published(settings.originals), len(points)),),
        components=components,
        repeats=settings.repeats,
        seed=settings.seed,
        method=simulate.METHOD,
        parameters=_parameters(settings),
        versions={"cloaking": __version__, "python": platform.python_version(), "spark": spark.version}
        | {name: version(name) for name in ("numpy", "scipy")},
        seconds={stage: round(length, 3) for stage, length in seconds.items()},
    )
    path = _write(settings.output, run)
    log.info("%s", _closing_line(run, path))
    return NOT_MET if found.verdict == "not reached" else DONE


def _parameters(settings: Settings) -> dict[str, Any]:
    """Return the settings that may be published, without Spark settings and parts of addresses that may be secret."""
    values = {name: value for name, value in asdict(settings).items() if value is not None and name not in _UNPUBLISHED}
    return values | {name: published(values[name]) for name in ("originals", "output")}


def _read(spark: "SparkSession", settings: Settings) -> tuple[tuple[str, ...], "Floats"]:
    """Return the components and the coordinates of the originals, `(n, ncp)`, or raise all their problems."""
    import numpy as np

    from cloaking.columns import column
    from cloaking.spark.arrow import collected, matrix
    from cloaking.spark_errors import reading
    from cloaking.sweep import simulate
    from cloaking.tables.read import partition_columns, read_table

    label = settings.originals.label("originals")
    table = read_table(spark, settings.originals, "originals", where=settings.where, text=settings.id)
    with reading(label):
        components = _components(table, settings, label, partition_columns(spark, settings.originals, table))
        rows = table.count()
        problems = [f"{label}: {problem}" for problem in simulate.refusals(rows, settings.k)]
        if problems:
            raise InputError(*problems)
        start = time.monotonic()
        plain = [column(name).cast("double").alias(f"component_{i}") for i, name in enumerate(components)]
        points: Floats = matrix(collected(table.select(*plain)), [f"component_{i}" for i in range(len(components))])
    if len(points) != rows:
        raise InputError(f"{label}: {rows:,} rows when checked, {len(points):,} when read; sweep over a snapshot")
    beyond = np.count_nonzero((np.abs(points) > simulate.LARGEST_COORDINATE).any(axis=1))
    if beyond:
        raise InputError(
            f"{label}: {beyond:,} of {rows:,} rows hold coordinates beyond {simulate.LARGEST_COORDINATE:g}, "
            "whose distances overflow; rescale them"
        )
    log.info("read: originals=%d ncp=%d seconds=%.1f", rows, len(components), time.monotonic() - start)
    return components, points


def _components(table: "DataFrame", settings: Settings, label: str, partitions: Sequence[str]) -> tuple[str, ...]:
    """Return the components to measure over.

    Unless components are named, the key must exist: if its name is wrong, a numeric key would become a component.

    Raises:
        InputError: the key or components are missing, or values are no coordinates; the message has a line for each.
    """
    from cloaking.columns import Side
    from cloaking.names import alike
    from cloaking.spark import checks, link

    missing = [name for name in settings.id if alike(name, table.columns) != [name]]
    if missing and settings.components is None:
        raise InputError(
            *(
                f"{label}: key column '{name}' is missing; name the key with --id, or the components with --components"
                for name in missing
            )
        )
    components, problems = link.choose_components(
        table, (*settings.id, *partitions), settings.components, settings.ncp, label
    )
    problems = [*problems, *checks.of_components(Side(table, label, settings.id), components)]
    if problems:
        raise InputError(*problems)
    return components


def _write(folder: str, run: SweepRun) -> str:
    """Write the page, if it can be drawn, then k_sweep.json; return the place of k_sweep.json."""
    from cloaking.sweep import page as report
    from cloaking.tables import text_files

    page = None
    try:
        page = report.to_html(run)
    except SettingsError as error:
        log.warning("k_sweep.html is not written: %s", error)
    with text_files.together(folder) as put:
        put("k_sweep.html", page)
        return put("k_sweep.json", report.to_json(run))


def _check_scipy() -> None:
    """Check for scipy before Spark is started.

    Raises:
        SettingsError: scipy is not installed.
    """
    try:
        import cloaking.sweep.simulate  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "scipy":
            raise
        raise SettingsError("the k sweep needs scipy, which is not installed: pip install 'cloaking[sweep]'") from None


def _closing_line(run: SweepRun, path: str) -> str:
    sweep = run.sweep
    return (
        f"answer={sweep.answer or 'none'} k={','.join(str(at.k) for at in sweep.results)} repeats={run.repeats} "
        f"originals={run.originals} ncp={run.ncp} verdict={sweep.verdict.replace(' ', '_')} "
        f"seconds={run.seconds['total']:.1f} report={path}"
    )
