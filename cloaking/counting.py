"""Linked originals + avatars -> closer, tied and cloaking per original: the kernel spread over Spark's tasks.

Either the avatars' index is built once on the driver and shipped as a file, which the workers of a machine map into
memory together (broadcast), or space is cut into cells and each task counts within one (partition). Both give the
same counts, bit for bit.
"""

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
from pyspark import SparkContext, SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking import partition
from cloaking.batches import ROWS, Batches, collected, joined, matrix, schema, with_columns
from cloaking.errors import InputError, OutputError
from cloaking.kernel import AvatarIndex
from cloaking.linking import Columns
from cloaking.options import BROADCAST_LIMIT, CELL_ROWS

log = logging.getLogger(__name__)

FEWEST_ROWS_PER_TASK = 20_000  # below this, starting a task costs more than counting its rows
# What a task holds of its originals: the more of them, the nearer are those that reach a leaf together. At ten million
# rows of 5 components, two million at a time cost 7 s of a core per million, 250,000 at a time 17 s. They take some
# 0.6 GiB, whatever the number of components.
COORDINATES_TOGETHER = 10_000_000


@dataclass(frozen=True)
class Spread:
    """How the counting is spread: the strategy (never auto), the tasks, and the most avatars of a cell."""

    strategy: str
    tasks: int
    cell_rows: int


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


def spread(
    spark: SparkSession,
    originals: int,
    avatars: int,
    ncp: int,
    *,
    strategy: str = "auto",
    broadcast_limit: int = BROADCAST_LIMIT,
    cell_rows: int = CELL_ROWS,
    tasks: int | None = None,
) -> Spread:
    """Decide how to count: auto broadcasts avatars of up to `broadcast_limit` MiB, and cuts more of them into cells.

    The number of tasks, unless given, follows the originals and, where they can be asked, the cores.
    """
    if strategy == "auto":
        strategy = "broadcast" if avatars * ncp * 8 <= broadcast_limit * 2**20 else "partition"
    if tasks is None:
        context = _context(spark)
        cores = context.defaultParallelism if context is not None else 1
        rounds = -(-originals // (cores * _rows_together(ncp)))
        tasks = max(1, min(cores * rounds, originals // FEWEST_ROWS_PER_TASK))
    return Spread(strategy, tasks, cell_rows)


def count(
    linked: DataFrame, avatars: DataFrame, columns: Columns, rows: int, tie_tolerance: float, how: Spread
) -> Counted:
    """Return one row per original: its key, group, closer, tied, cloaking (bigint).

    Args:
        linked: one row per original with its own avatar's coordinates, in the partitions to count in.
        avatars: all avatars' coordinates, unlinked ones too.
        columns: the columns of both.
        rows: the number of avatars that the checks saw.
        tie_tolerance: relative width of a tie.
        how: the strategy and its measures.

    Raises:
        InputError: the avatars changed since they were checked.
    """
    if how.strategy == "broadcast":
        counted = _broadcast(linked, avatars, columns, rows, tie_tolerance)
    else:
        counted = Counted(partition.count(linked, avatars, columns, rows, tie_tolerance, how.cell_rows))
    cloaking = F.col("within") - 1  # its own avatar is within, and does not hide it
    tied = cloaking - F.col("closer")
    table = counted.table.select(*columns.keys, "group", "closer", tied.alias("tied"), cloaking.alias("cloaking"))
    return Counted(table, counted.shipped)


def _broadcast(linked: DataFrame, avatars: DataFrame, columns: Columns, rows: int, tie_tolerance: float) -> Counted:
    start = time.monotonic()
    points = matrix(collected(avatars.select(*columns.own)), columns.own)
    if len(points) != rows:
        raise InputError(f"avatars: {rows:,} rows when checked, {len(points):,} when read; measure a snapshot")
    shipped = _ship(linked.sparkSession, AvatarIndex(points))
    name = shipped.name  # all that the function below refers to: it is sent to the workers
    log.info("index: avatars=%d seconds=%.1f", len(points), time.monotonic() - start)

    kept = [*columns.keys, "group"]
    originals, own = columns.originals, columns.own

    def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
        index = AvatarIndex.load(SparkFiles.get(name))
        for table in joined(batches, _rows_together(len(own))):
            closer, within = index.count(matrix(table, originals), matrix(table, own), tie_tolerance)
            yield from with_columns(table.select(kept), closer=closer, within=within)

    table = linked.mapInArrow(counted, schema(linked, kept, closer=T.LongType(), within=T.LongType()))
    return Counted(table, shipped)


def _rows_together(ncp: int) -> int:
    """Return how many originals are counted at a time."""
    return max(ROWS, COORDINATES_TOGETHER // ncp)


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
    context = _context(spark)
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


def _context(spark: SparkSession) -> SparkContext | None:
    """Return the SparkContext, None under Spark Connect, which has none."""
    session: object = spark  # under Connect it is another class
    return session.sparkContext if isinstance(session, SparkSession) else None
