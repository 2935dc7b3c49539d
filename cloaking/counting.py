"""Linked originals + avatars -> closer, tied and cloaking per original, the kernel spread over Spark's tasks.

Broadcast: the index of all avatars is built once on the driver and shipped as a file, which the workers of a machine
map into memory together; each task counts its originals against it.
"""

import atexit
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cloaking.errors import InputError
from cloaking.kernel import AvatarIndex
from cloaking.linking import Columns

log = logging.getLogger(__name__)

ROWS_PER_TASK = 250_000  # the leaves of the index are the faster, the more originals reach them together
FEWEST_ROWS_PER_TASK = 20_000  # below this, starting a task costs more than counting its rows
STRATEGY = "broadcast"


def tasks_for(spark: SparkSession, rows: int) -> int:
    """Return how many tasks to count `rows` originals with: all cores, where they can be asked and are worth it."""
    cores = getattr(_context(spark), "defaultParallelism", 1)
    return max(1, -(-rows // ROWS_PER_TASK), min(cores, rows // FEWEST_ROWS_PER_TASK))


def count(
    linked: DataFrame, avatars: DataFrame, columns: Columns, expected_avatars: int, tie_tolerance: float
) -> DataFrame:
    """Return one row per original: its key, group, closer, tied, cloaking (bigint).

    Args:
        linked: one row per original with its own avatar's coordinates, in the partitions to count in.
        avatars: all avatars' coordinates, unlinked ones too.
        columns: the columns of both.
        expected_avatars: the number of avatars that the checks saw.
        tie_tolerance: relative width of a tie.

    Raises:
        InputError: the avatars changed since they were checked.
    """
    start = time.monotonic()
    points = avatars.select(*columns.own).toPandas().to_numpy(dtype=np.float64)
    if len(points) != expected_avatars:
        raise InputError(
            f"avatars: {expected_avatars:,} rows when checked, {len(points):,} when read; measure a snapshot"
        )
    name = _ship(linked.sparkSession, AvatarIndex(points))
    log.info("index: avatars=%d seconds=%.1f", len(points), time.monotonic() - start)

    bigints = [T.StructField(result, T.LongType(), False) for result in ("closer", "tied", "cloaking")]
    kept = [*columns.keys, "group"]
    schema = T.StructType([*(linked.schema[name] for name in kept), *bigints])
    counted = _counter(name, kept, columns.originals, columns.own, tie_tolerance)
    return linked.mapInArrow(counted, schema)


def _counter(
    name: str, kept: Sequence[str], originals: Sequence[str], own: Sequence[str], tie_tolerance: float
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that counts one partition; what is kept passes untouched, as Arrow."""

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = AvatarIndex.load(SparkFiles.get(name))
        for table in _joined(batches):
            closer, within = index.count(_matrix(table, originals), _matrix(table, own), tie_tolerance)
            cloaking = within - 1  # its own avatar is within, and does not hide it
            results = {"closer": closer, "tied": cloaking - closer, "cloaking": cloaking}
            table = table.select(list(kept))
            for result, values in results.items():
                table = table.append_column(result, pa.array(values))
            yield from table.to_batches()

    return counted


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join the small batches that Spark sends to tables of about ROWS_PER_TASK rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= ROWS_PER_TASK:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _matrix(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    return np.column_stack([table[name].to_numpy() for name in names])


def _ship(spark: SparkSession, index: AvatarIndex) -> str:
    """Send the index to the workers as a file named by its content; return the name."""
    path = _folder() / "index.npy"
    index.save(path)
    with path.open("rb") as file:
        name = f"avatars-{hashlib.file_digest(file, 'sha256').hexdigest()}.npy"
    path = path.rename(path.with_name(name))
    context = _context(spark)
    if context is None:  # Spark Connect
        spark.addArtifact(str(path), file=True)
    else:
        context.addFile(str(path))
    return name


def _folder() -> Path:
    """Make a folder for what is shipped; Spark's workers may ask for it until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="cloaking-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _context(spark: SparkSession):  # type: ignore[no-untyped-def]
    """Return the SparkContext, None under Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception:
        return None
