"""The broadcast strategy: one index of all avatars, shipped as a file that the workers of a machine map into memory."""

import atexit
import contextlib
import logging
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cloaking.errors import InputError, OutputError
from cloaking.kernel import AvatarIndex
from cloaking.spark.arrow import Batches, collected, joined, matrix, schema, with_columns
from cloaking.spark.plan import Plan, context_of, rows_together

log = logging.getLogger(__name__)


class Shipped:
    """The file of an index that Spark sends to its workers, freed when this object is gone, unless it is kept.

    Args:
        name: the file's name, by which a worker finds it.
        paths: where it lies on the driver.
    """

    def __init__(self, name: str, paths: tuple[Path, ...]) -> None:
        self.name = name
        self._free = weakref.finalize(self, _empty, paths)
        self._free.atexit = False  # the folder goes as a whole

    def keep(self) -> None:
        """Keep the file until Spark stops, for a DataFrame, and all that is derived from it, which may be run later."""
        self._free.detach()


@dataclass(frozen=True)
class Counted:
    """The counts of each original, lazy, and the file that running them needs, if there is one."""

    table: DataFrame
    shipped: Shipped | None = None


def count(plan: Plan, linked: DataFrame) -> Counted:
    """Return one row per original: its key, group, closer and within (bigint); arguments as for `count.count`."""
    columns, rows, tie_tolerance = plan.columns, plan.rows.avatars, plan.options.tie_tolerance
    start = time.monotonic()
    points = matrix(collected(plan.avatars.select(*columns.own)), columns.own)
    if len(points) != rows:
        raise InputError(f"avatars: {rows:,} rows when checked, {len(points):,} when read; measure a snapshot")
    shipped = _ship(linked.sparkSession, AvatarIndex(points))
    name = shipped.name  # all that the function below refers to: it is sent to the workers
    log.info("index: avatars=%d seconds=%.1f", len(points), time.monotonic() - start)

    kept = [*columns.keys, "group"]
    originals, own = columns.originals, columns.own

    def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
        index = AvatarIndex.load(SparkFiles.get(name))
        for table in joined(batches, rows_together(len(own))):
            closer, within = index.count(matrix(table, originals), matrix(table, own), tie_tolerance)
            yield from with_columns(table.select(kept), closer=closer, within=within)

    table = linked.mapInArrow(counted, schema(linked, kept, closer=T.LongType(), within=T.LongType()))
    return Counted(table, shipped)


def _ship(spark: SparkSession, index: AvatarIndex) -> Shipped:
    """Send the index to the workers as a file of a name of its own, so that jobs at once never meet each other's."""
    path = _folder() / f"avatars-{uuid.uuid4().hex}.npy"
    try:
        index.save(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OutputError(
            f"the driver's temporary folder {path.parent.parent}: cannot be written ({error.strerror}); the index of "
            "the avatars needs room there, name another by TMPDIR, or give --strategy partition"
        ) from error
    context = context_of(spark)
    if context is None:
        spark.addArtifact(str(path), file=True)
        path.unlink()  # the server has it now, until the session ends
        return Shipped(path.name, ())
    context.addFile(str(path))
    return Shipped(path.name, (path, Path(SparkFiles.get(path.name))))


def _empty(paths: tuple[Path, ...]) -> None:
    """Put empty files in the place of these.

    Spark announces every file to each new executor, which fails where one is missing or differs from an earlier copy.
    A file that a worker has mapped into memory lives on until that worker lets go of it.
    """
    for path in paths:
        with contextlib.suppress(OSError):  # Spark removed its copy when it stopped
            empty = path.with_name(f"{path.name}.empty")
            empty.touch(exist_ok=False)
            empty.replace(path)


@cache
def _folder() -> Path:
    """Make this process's folder for what is shipped; Spark's workers may ask for it until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="cloaking-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
