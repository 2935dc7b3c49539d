"""The command that projects: raw tables in, projected tables, model.json and an exit code out; for jobs/project.py."""

import contextlib
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloaking.project_config import Settings, parse
from cloaking.running import DONE, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("cloaking")


def main(argv: Sequence[str] | None = None) -> int:
    """Project once and return the exit code: 0 done, the others as in `running.run`."""
    return run("project", lambda: parse(argv), _project)


def _project(spark: "SparkSession", settings: Settings, begun: float) -> int:
    """Read, fit or load, check, write: originals, avatars, model.json; a failure removes what was written."""
    from cloaking import files, places, projection, stores, tables
    from cloaking.raw import spaces

    read = [ref for ref in (settings.originals, settings.avatars) if ref is not None]
    results = {"projected originals": settings.projected_originals, "projected avatars": settings.projected_avatars}
    written = {role: ref for role, ref in results.items() if ref is not None}
    places.check_apart(spark, written, read, settings.output)
    for role, ref in written.items():
        stores.check_new(spark, ref, role, settings.overwrite)
    if settings.output is not None:
        files.check(settings.output)
    with tables.reading("originals or avatars"), contextlib.ExitStack() as undo:
        originals, avatars, model = spaces(spark, settings)
        places.check_files(spark, written, [table for table in (originals, avatars) if table is not None])
        keys = ((*settings.id, *settings.keep), settings.made_from or settings.id)
        for table, keep, (role, result) in zip((originals, avatars), keys, results.items(), strict=True):
            if table is None or result is None:
                continue
            start = time.monotonic()
            coordinates = projection.transform(table, model, keep=keep, unseen=settings.unseen)
            stores.write(coordinates, result, role, settings.overwrite)
            undo.callback(_undo, spark, result, role)
            log.info("written: %s seconds=%.1f", result, time.monotonic() - start)
        if settings.output is not None:
            log.info("written: %s", files.write(settings.output, "model.json", model.to_json()))
        undo.pop_all()
    log.info("done: seconds=%.1f", time.monotonic() - begun)
    return DONE


def _undo(spark: "SparkSession", ref: str, role: str) -> None:
    from cloaking import stores

    log.error("%s", stores.remove(spark, ref, role))
