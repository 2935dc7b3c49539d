"""Record each run as one row of a history table; reports share the table, and its key is report name and run date."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.errors import InputError
from cloaking.results import Notice, PastRun, Run, Summary
from cloaking.spark_errors import reading
from cloaking.tables import shared_table
from cloaking.tables.reference import Ref

KEY = ("name", "run_date")
_TRIES = 2  # before the last attempt: another run may be replacing the file that is about to be read
_PAUSE = 1.0  # seconds
SCHEMA = T.StructType(
    [
        T.StructField("run_id", T.StringType()),
        T.StructField("run_at", T.TimestampType()),
        T.StructField("local_cloaking", T.DoubleType()),
        T.StructField("hidden_rate", T.DoubleType()),
        T.StructField("hidden_rate_ties_hide", T.DoubleType()),
        T.StructField("hidden_rate_ties_expose", T.DoubleType()),
        T.StructField("quantiles", T.StringType()),  # JSON, like all later text columns except verdict and name
        T.StructField("originals", T.LongType()),
        T.StructField("avatars", T.LongType()),
        T.StructField("ncp", T.IntegerType()),
        T.StructField("verdict", T.StringType()),
        T.StructField("gates", T.StringType()),
        T.StructField("parameters", T.StringType()),
        T.StructField("versions", T.StringType()),
        T.StructField("name", T.StringType()),
        T.StructField("run_date", T.DateType()),
    ]
)


def record(spark: SparkSession, ref: str, run: Run) -> None:
    """Write the run's row; it replaces the row of the same name and date, if there is one.

    Raises:
        OutputError: the table cannot be written.
    """
    summary = run.summary
    row = Row(
        run_id=run.run_id,
        run_at=datetime.fromisoformat(run.run_at),
        local_cloaking=summary.local_cloaking,
        hidden_rate=summary.hidden_rate,
        hidden_rate_ties_hide=summary.hidden_rate_ties_hide,
        hidden_rate_ties_expose=summary.hidden_rate_ties_expose,
        quantiles=json.dumps({str(share): value for share, value in summary.quantiles.items()}),
        originals=summary.originals,
        avatars=summary.avatars,
        ncp=summary.ncp,
        verdict=run.verdict,
        gates=json.dumps([asdict(gate) | {"met": gate.met} for gate in run.gates]),
        parameters=json.dumps(dict(run.parameters)),
        versions=json.dumps(dict(run.versions)),
        name=run.name,
        run_date=date.fromisoformat(run.run_date),
    )
    key = {name: row[name] for name in KEY}
    shared_table.replace(spark.createDataFrame([row], SCHEMA), ref, "history", key)


def past(spark: SparkSession, ref: str, name: str) -> tuple[PastRun, ...]:
    """Return a report's runs in the table, oldest first; empty if there is no table yet.

    Raises:
        InputError: the table exists but cannot be read.
        OutputError: the format or the table cannot keep a history.
    """
    for _ in range(_TRIES):
        try:
            return _past(spark, ref, name)
        except InputError:
            time.sleep(_PAUSE)
    return _past(spark, ref, name)


def fell(past: Sequence[PastRun], summary: Summary, run_date: str, share: float | None) -> tuple[Notice, ...]:
    """Return a notice for each figure that fell by more than `share` since the last run before `run_date`.

    If the last run had another number of components, nothing is compared, and a notice says so.
    """
    before = [run for run in past if run.run_date < run_date]
    if share is None or not before:
        return ()
    last = before[-1]
    if last.ncp != summary.ncp:
        message = f"the last run, of {last.run_date}, used {last.ncp} components, this one {summary.ncp}"
        return (Notice("not_comparable", message),)
    figures = {"local_cloaking": "Local Cloaking", "hidden_rate": "the hidden rate"}
    notices = []
    for name, called in figures.items():
        then, now = getattr(last, name), getattr(summary, name)
        if now < (1 - share) * then:
            texts = next(pair for pair in _formatted(then, now) if pair[0] != pair[1])
            message = f"{called} fell from {texts[0]} on {last.run_date} to {texts[1]}, by {1 - now / then:.1%}"
            notices.append(Notice("figure_fell", message))
    return tuple(notices)


def _formatted(then: float, now: float) -> Iterator[tuple[str, str]]:
    """Yield both figures as text with one decimal, then with more, until the caller can see them differ."""
    for digits in range(1, 18):
        yield f"{then:.{digits}f}", f"{now:.{digits}f}"
    yield repr(then), repr(now)


def _past(spark: SparkSession, ref: str, name: str) -> tuple[PastRun, ...]:
    table = shared_table.read(spark, ref, "history", SCHEMA, KEY)
    if table is None:
        return ()
    kept = ("run_date", "local_cloaking", "hidden_rate", "ncp", "quantiles", "verdict")
    with reading(Ref(ref).label("history"), everything=True):
        rows = table.where(F.col("name") == name).select(*kept).collect()
    return tuple(_past_run(row) for row in sorted(rows, key=lambda row: row["run_date"]))


def _past_run(row: Row) -> PastRun:
    quantiles = json.loads(row["quantiles"])
    return PastRun(
        run_date=row["run_date"].isoformat(),
        local_cloaking=row["local_cloaking"],
        p05=quantiles["0.05"],
        p95=quantiles["0.95"],
        verdict=row["verdict"],
        hidden_rate=row["hidden_rate"],
        ncp=row["ncp"],
    )
