"""Read the database table that a block [jdbc.NAME] describes; its password is passed to Spark and nowhere else."""

import os
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cloaking.errors import InputError
from cloaking.tables.reference import Connection

# Without the class name, Java finds a driver only in the jars that it started with, not in those of spark.jars.
DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "oracle": "oracle.jdbc.OracleDriver",
}
# The first two characters of an SQLSTATE, which all databases share (ISO/IEC 9075).
_STATES = {
    "08": "no connection; look at url",
    "28": "user or password is refused",
    "3D": "there is no such database",
    "42": "no such table or column, or no right to read it",
}


def read(spark: SparkSession, connection: Connection, label: str) -> DataFrame:
    """Return the table of a connection, read in parallel partitions if its block asks for them.

    Raises:
        InputError: the password or the driver is missing, or the database refuses.
    """
    options = {
        "url": connection.url,
        "dbtable": connection.table,
        "user": connection.user,
        "password": _password(connection, label),
        "driver": connection.driver or DRIVERS.get(connection.url.split(":")[1]),
        "partitionColumn": connection.partition_column,
        "lowerBound": connection.lower_bound,
        "upperBound": connection.upper_bound,
        "numPartitions": connection.partitions,
        "fetchsize": connection.fetch_size,
    }
    given = {key: str(value) for key, value in options.items() if value is not None}
    try:
        table = spark.read.format("jdbc").options(**given).load()
        _ = table.schema  # Spark Connect reads no sooner
        return table
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"{label}: cannot be read: {_reason(error, connection, given.get('driver'))}") from error


def _password(connection: Connection, label: str) -> str | None:
    """Return the password from the environment variable or the file that the block names; None if it names neither."""
    if connection.password_env is not None:
        if connection.password_env not in os.environ:
            raise InputError(f"{label}: the environment variable {connection.password_env} (password_env) is not set")
        return os.environ[connection.password_env]
    if connection.password_file is None:
        return None
    try:
        return Path(connection.password_file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{label}: password_file {connection.password_file} cannot be read: {reason}") from None


def _reason(error: Exception, connection: Connection, driver: str | None) -> str:
    """Return the database's answer in our own words; its message may repeat what was sent to it."""
    text = str(error)
    if "ClassNotFoundException" in text or "No suitable driver" in text:
        name = driver or "for this url"
        return (
            f"there is no JDBC driver {name}; give its jar by --conf spark.jars=/path/driver.jar (before Spark starts)"
        )
    state = ""
    # The Java exception in Py4J's error or in Spark's; under Spark Connect there is none
    cause = origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None and not state:
        state = str(cause.getSQLState() or "") if hasattr(cause, "getSQLState") and _is_sql(cause) else ""
        cause = cause.getCause()
    if origin is not None and not state and connection.partition_column is not None:
        return "not in these partitions; check partition_column, lower_bound and upper_bound"
    known = _STATES.get(state[:2])
    return f"{known} (SQLSTATE {state})" if known else f"the database refused (SQLSTATE {state or 'unknown'})"


def _is_sql(cause: object) -> bool:
    kind = cause.getClass()  # type: ignore[attr-defined]
    while kind is not None and kind.getName() != "java.sql.SQLException":
        kind = kind.getSuperclass()
    return kind is not None
