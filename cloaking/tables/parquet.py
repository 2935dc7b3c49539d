"""Read Parquet files, also those with column types for which Spark refuses the whole file."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from cloaking.columns import column
from cloaking.errors import InputError
from cloaking.names import UNREAD

_REFUSED = re.compile(r"Illegal Parquet type: (.*?)\.?(?: SQLSTATE|$)|UNSUPPORTED_TIME_TYPE", re.MULTILINE)
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_S3 = re.compile(r"^s3[an]:")


@dataclass(frozen=True)
class _Kind:
    """A type that Spark does not read: its name in messages, and the type to declare in its place.

    Without `decoded_from` its columns are declared as a type that can be neither a component nor a key.
    """

    called: str
    decoded_from: T.DataType | None = None


_UUID = _Kind("UUID", T.BinaryType())
_HALF = _Kind("float of 16 bits", T.BinaryType())
_NANOS = _Kind("timestamp in nanoseconds (Spark reads microseconds)")
_TIME = _Kind("time of day")


def read(spark: SparkSession, path: str, label: str) -> DataFrame:
    """Read Parquet files, also with types that Spark refuses.

    UUIDs are read as text, 16-bit floats as float. Columns of timestamps in nanoseconds and of times of day are kept
    without readable values, so that code that uses such a column can refuse it by name.

    Args:
        spark: the session to read with.
        path: a file, a folder or a pattern.
        label: the table's name in messages.

    Raises:
        InputError: a column has one of these types, and only Spark can open the files, so that it cannot be named.
    """
    # With this setting Spark would read nanoseconds as numbers without an error.
    if str(spark.conf.get(_NANOS_AS_LONG, "false")) != "true":
        try:
            table = spark.read.parquet(path)
            _ = table.schema  # Spark Connect reports errors only here
            return table
        except AnalysisException as error:
            if _REFUSED.search(str(error)) is None:
                raise
            refused = str(error)
    else:
        refused = ""
    schema = _footer(spark, path)
    if schema is None:
        found = _REFUSED.search(refused)
        kind = (found and found[1]) or "TIME"
        raise InputError(f"{label}: a column is {kind}, which Spark does not read; write it as another type")
    kinds = {name: kind for name, of in zip(schema.names, schema.types, strict=True) if (kind := _kind(of))}
    table = spark.read.schema(_declared(schema, kinds)).parquet(path)
    return table.select(*(_decoded(name, kinds.get(name)) for name in table.columns))


def _footer(spark: SparkSession, path: str) -> pa.Schema | None:
    """Return the schema in the first file's footer; None if only Spark can open the store."""
    files = spark.read.format("binaryFile").load(path).inputFiles()
    for file in sorted(files)[:1]:
        try:
            store, place = fs.FileSystem.from_uri(_S3.sub("s3:", unquote(file)))
            with store.open_input_file(place) as stream:
                return pq.ParquetFile(stream).schema.to_arrow_schema()
        except (OSError, pa.ArrowException):
            return None
    return None


def _kind(of: pa.DataType) -> _Kind | None:
    if pa.types.is_timestamp(of) and of.unit == "ns":
        return _NANOS
    if pa.types.is_time(of):
        return _TIME
    if pa.types.is_float16(of):
        return _HALF
    return _UUID if str(of) == "extension<arrow.uuid>" else None


def _declared(schema: pa.Schema, kinds: dict[str, _Kind]) -> T.StructType:
    """Return the schema to read with, which has only types that Spark reads."""
    plain = pa.schema(
        [pa.field(f.name, pa.null() if f.name in kinds else _UNSIGNED.get(f.type, f.type)) for f in schema]
    )
    found = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    return T.StructType([_field(kinds[f.name], f.name) if f.name in kinds else f for f in found])


def _field(kind: _Kind, name: str) -> T.StructField:
    if kind.decoded_from is not None:
        return T.StructField(name, kind.decoded_from)
    return T.StructField(name, T.DayTimeIntervalType(), metadata={UNREAD: kind.called})


def _decoded(name: str, kind: _Kind | None) -> Column:
    if kind is _UUID:
        return F.regexp_replace(F.lower(F.hex(column(name))), "^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-").alias(name)
    if kind is _HALF:
        return _from_half(column(name)).alias(name)
    return column(name)


def _from_half(value: Column) -> Column:
    """Decode two little-endian bytes as IEEE 754 binary16."""
    digits = F.hex(value)
    bits = F.conv(F.concat(F.substring(digits, 3, 2), F.substring(digits, 1, 2)), 16, 10).cast("int")
    sign = F.when(bits >= 0x8000, -1.0).otherwise(1.0)
    exponent, fraction = F.shiftright(bits, 10).bitwiseAND(0x1F), bits.bitwiseAND(0x3FF)
    endless = F.when(fraction == 0, sign * float("inf")).otherwise(float("nan"))
    small = sign * fraction * 2.0**-24
    usual = sign * (1 + fraction / 1024) * F.pow(F.lit(2.0), exponent - 15)
    return F.when(exponent == 31, endless).when(exponent == 0, small).otherwise(usual).cast("float")
