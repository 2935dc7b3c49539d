"""Count by broadcast: one index of all avatars is sent as a file, which all workers of a machine map into memory."""

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
    """The file of an index that Spark sends to its workers, freed when this object is deleted, unless `keep` is called.

    Args:
        name: the file's name, by which a worker finds it.
        paths: the file's copies on the driver.
    """

    def __init__(self, name: str, paths: tuple[Path, ...]) -> None:
        self.name = name
        self._free = weakref.finalize(self, _empty, paths)
        self._free.atexit = False  # at exit the whole folder is removed

    def keep(self) -> None:
        """Keep the file until Spark stops, since a DataFrame that needs it may be evaluated later."""
        self._free.detach()


@dataclass(frozen=True)
class Counted:
    """The lazy counts of each original, and the file that their evaluation needs, if there is one."""

    table: DataFrame
    shipped: Shipped | None = None


def count(plan: Plan, linked: DataFrame) -> Counted:
    """Return one row per original: its key, group, closer and within (bigint); arguments as for `count.count`."""
    columns, rows, tie_tolerance = plan.columns, plan.rows.avatars, plan.options.tie_tolerance
    start = time.monotonic()
    points = matrix(collected(plan.avatars.select(*columns.avatars)), columns.avatars)
    if len(points) != rows:
        raise InputError(f"avatars: {rows:,} rows when checked, {len(points):,} when read; measure a snapshot")
    shipped = _ship(linked.sparkSession, AvatarIndex(points))
    name = shipped.name  # the function below must refer only to this: Spark sends it to the workers
    log.info("index: avatars=%d seconds=%.1f", len(points), time.monotonic() - start)

    kept = [*columns.keys, "group"]
    originals, own = columns.originals, columns.avatars

    def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
        index = AvatarIndex.load(SparkFiles.get(name))
        for table in joined(batches, rows_together(len(own))):
            closer, within = index.count(matrix(table, originals), matrix(table, own), tie_tolerance)
            yield from with_columns(table.select(kept), closer=closer, within=within)

    table = linked.mapInArrow(counted, schema(linked, kept, closer=T.LongType(), within=T.LongType()))
    return Counted(table, shipped)


def _ship(spark: SparkSession, index: AvatarIndex) -> Shipped:
    """Send the index to the workers as a file with a unique name, so that concurrent jobs never share a file."""
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
        path.unlink()  # the server keeps a copy until the session ends
        return Shipped(path.name, ())
    context.addFile(str(path))
    return Shipped(path.name, (path, Path(SparkFiles.get(path.name))))


def _empty(paths: tuple[Path, ...]) -> None:
    """Replace files by empty ones.

    Spark announces every file to each new executor, which fails if one is missing or differs from an earlier copy.
    A file that a worker has mapped into memory exists until that worker releases it.
    """
    for path in paths:
        with contextlib.suppress(OSError):  # Spark removed its copy when it stopped
            empty = path.with_name(f"{path.name}.empty")
            empty.touch(exist_ok=False)
            empty.replace(path)


@cache
def _folder() -> Path:
    """Create this process's folder for shipped files; Spark's workers may request them until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="cloaking-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
