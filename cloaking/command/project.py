"""Project raw tables and write the projected tables and model.json; jobs/project.py calls `main`."""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloaking.addresses import published
from cloaking.command.project_settings import Settings, parse
from cloaking.command.run import DONE, run
from cloaking.tables.reference import Ref

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("cloaking")


def main(argv: Sequence[str] | None = None) -> int:
    """Project once and return the exit code: 0 done, others as in `run.run`."""
    return run("project", lambda: parse(argv), _project)


def _project(spark: "SparkSession", settings: Settings, begun: float) -> int:
    """Read the tables, fit or load the model, check, and write originals, avatars and model.json together."""
    from cloaking.command.inputs import Source, spaces
    from cloaking.projection.transform import transform
    from cloaking.spark_errors import reading
    from cloaking.tables import overlap, replacing, text_files, write

    read = [ref for ref in (settings.originals, settings.avatars) if ref is not None]
    named = {"projected originals": settings.projected_originals, "projected avatars": settings.projected_avatars}
    written = {role: ref for role, ref in named.items() if ref is not None}
    overlap.check_apart(spark, written, read, settings.output)
    for role, wanted in written.items():
        write.check_new(spark, wanted, role, settings.overwrite)
    if settings.output is not None:
        text_files.check(settings.output)

    def source(role: str, ref: Ref | None, key: tuple[str, ...], where: str | None) -> Source | None:
        return None if ref is None else Source(role, ref, key, where, settings.by_position, settings.jdbc)

    with reading("originals or avatars"), replacing.together() as results:
        *sides, model = spaces(
            spark,
            source("originals", settings.originals, settings.id, settings.where),
            source(
                "avatars",
                settings.avatars,
                settings.made_from or settings.id,
                settings.where_avatars or settings.where,
            ),
            settings.space,
            model_file=settings.model,
            keep=settings.keep,
        )
        overlap.check_files(spark, written, [side.table for side in sides if side is not None])
        for side, more, (role, ref) in zip(sides, (settings.keep, ()), named.items(), strict=True):
            if side is None or ref is None:
                continue
            start = time.monotonic()
            coordinates = transform(side.table, model, keep=(*side.key, *more), unseen=settings.space.unseen)
            write.write(coordinates, ref, role, settings.overwrite, results)
            log.info("projected: %s seconds=%.1f", role.removeprefix("projected "), time.monotonic() - start)
        found = [published(ref) for ref in written.values()]
        if settings.output is not None:
            put = text_files.into(settings.output, results)
            found.append(put("model.json", model.to_json()))
    for place in found:
        log.info("written: %s", place)
    log.info("done: seconds=%.1f", time.monotonic() - begun)
    return DONE
