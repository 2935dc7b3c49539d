"""One Spark session for the whole suite, tables on disk without Spark, and the command run within that session.

pyspark and pandas are imported by the fixtures that need them, so that tests without Spark start at once.
"""

import os
import sys

# Before anything loads numpy or starts Spark: workers use this Python, and one BLAS thread each.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import contextlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from bad_input import run_case, victim  # noqa: F401 (fixtures that several test files share)

from cloaking.command.local_cloaking import main

ROOT = Path(__file__).resolve().parents[1]


class Outcome(NamedTuple):
    """The outcome of a run of the command: exit code, lines on stderr and stdout, report.json where it was written."""

    code: int
    problems: list[str]
    out: str
    report: dict | None


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    java = f"-Dderby.system.home={folder / 'derby'} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "tests",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": folder / "local",
        "spark.log.level": "OFF",  # many tests cause failures on purpose
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        settings["spark.python.daemon.module"] = "covered_daemon"
        os.environ["PYTHONPATH"] = f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def setting(spark):
    """Change a Spark SQL setting for the length of a `with` block."""

    @contextlib.contextmanager
    def changed(key, value):
        before = spark.conf.get(key)
        spark.conf.set(key, value)
        try:
            yield
        finally:
            spark.conf.set(key, before)

    return changed


@pytest.fixture(scope="session")
def lake(spark, tmp_path_factory):
    """The name of a catalog in memory whose tables replace rows by a condition, as those of Delta and Iceberg do."""
    import pyspark

    if shutil.which("javac") is None:
        pytest.skip("no Java compiler for tests/RowsCatalog.java, and Spark itself has no such catalog")
    folder = tmp_path_factory.mktemp("catalog")
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars", "*")
    command = ["javac", "-nowarn", "-cp", jars, "-d", folder / "classes", ROOT / "tests" / "RowsCatalog.java"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    spark.sql(f"ADD JAR '{shutil.make_archive(str(folder / 'catalog'), 'zip', folder / 'classes')}'")
    spark.conf.set("spark.sql.catalog.lake", "RowsCatalog")
    yield "lake"
    spark.conf.unset("spark.sql.catalog.lake")


@pytest.fixture
def parquet(tmp_path):
    """Write columns to one Parquet file and return the reference to it."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    def written(name, columns, **options):
        table = columns if isinstance(columns, pa.Table) else pa.Table.from_pandas(pd.DataFrame(columns))
        pq.write_table(table, tmp_path / f"{name}.parquet", **options)
        return f"parquet:{tmp_path / name}.parquet"

    return written


@pytest.fixture
def csv(tmp_path):
    """Write text or bytes to a CSV file and return the reference to it."""

    def written(name, content):
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return f"csv:{path}"

    return written


@pytest.fixture
def command(spark, tmp_path, capsys):
    """Run the command in the suite's session, with a report folder of the test's own unless it names one."""

    def run(*argv, output=tmp_path / "report"):
        capsys.readouterr()
        code = main([*map(str, argv), *(["--output", str(output)] if output else [])])
        said = capsys.readouterr()
        path = output / "report.json" if output else None
        report = json.loads(path.read_text()) if path and path.is_file() else None
        return Outcome(code, said.err.splitlines(), said.out, report)

    return run


@pytest.fixture(scope="session")
def reference_data():
    """The folder of real data whose counts are known."""
    folder = Path(os.environ.get("CLOAKING_REFERENCE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no reference data in {folder}; CLOAKING_REFERENCE_DATA names the folder")
    return folder
