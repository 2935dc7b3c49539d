"""The command that projects: raw tables in, projected tables, model.json and an exit code out; for jobs/project.py."""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloaking.addresses import published
from cloaking.project_config import Settings, parse
from cloaking.running import DONE, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("cloaking")


def main(argv: Sequence[str] | None = None) -> int:
    """Project once and return the exit code: 0 done, the others as in `running.run`."""
    return run("project", lambda: parse(argv), _project)


def _project(spark: "SparkSession", settings: Settings, begun: float) -> int:
    """Read, fit or load, check, write: originals, avatars, model.json, which appear together."""
    from cloaking import files, places, projection, replacing, stores, tables
    from cloaking.raw import spaces

    read = [ref for ref in (settings.originals, settings.avatars) if ref is not None]
    named = {"projected originals": settings.projected_originals, "projected avatars": settings.projected_avatars}
    written = {role: ref for role, ref in named.items() if ref is not None}
    places.check_apart(spark, written, read, settings.output)
    for role, wanted in written.items():
        stores.check_new(spark, wanted, role, settings.overwrite)
    if settings.output is not None:
        files.check(settings.output)
    with tables.reading("originals or avatars"), replacing.together() as results:
        originals, avatars, model = spaces(spark, settings)
        places.check_files(spark, written, [table for table in (originals, avatars) if table is not None])
        keys = ((*settings.id, *settings.keep), settings.made_from or settings.id)
        for table, keep, (role, ref) in zip((originals, avatars), keys, named.items(), strict=True):
            if table is None or ref is None:
                continue
            start = time.monotonic()
            coordinates = projection.transform(table, model, keep=keep, unseen=settings.unseen)
            stores.write(coordinates, ref, role, settings.overwrite, results)
            log.info("projected: %s seconds=%.1f", role.removeprefix("projected "), time.monotonic() - start)
        found = [published(ref) for ref in written.values()]
        if settings.output is not None:
            put = files.into(settings.output, results)
            found.append(put("model.json", model.to_json()))
    for place in found:
        log.info("written: %s", place)
    log.info("done: seconds=%.1f", time.monotonic() - begun)
    return DONE
