"""The job against a PostgreSQL and a Hive metastore that run for the test: the sample's figures, and no password."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
DRIVER = Path("/usr/share/java/postgresql.jar")  # where Debian's libpostgresql-jdbc-java puts it
SECRET = "planted-Secr3t"
SPARK = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.memory": "1g"}
pytestmark = pytest.mark.slow


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.2)
    return False


def environment(**more):
    return (
        os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable} | more
    )


def conf(settings):
    return [word for key, value in (SPARK | settings).items() for word in ("--conf", f"{key}={value}")]


def job(folder, *argv, settings, **variables):
    """Start the main job as its user would."""
    command = [sys.executable, str(ROOT / "jobs" / "local_cloaking.py"), *argv, *conf(settings)]
    return subprocess.Popen(
        command, cwd=folder, env=environment(**variables), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def program(text, settings):
    """Run a few lines with a Spark session."""
    builder = "".join(f".config({key!r}, {value!r})" for key, value in (SPARK | settings).items())
    code = f"from pyspark.sql import SparkSession\nspark = SparkSession.builder{builder}.getOrCreate()\n{text}"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A database of its own with the sample's tables; gives the address."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries or not DRIVER.exists():
        pytest.skip("no PostgreSQL or no JDBC driver: Debian's packages postgresql and libpostgresql-jdbc-java")
    folder, port = Path("/tmp") / f"postgres-{os.getpid()}", free_port()
    folder.mkdir()
    # It refuses to run as root.
    run = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if run:
        shutil.chown(folder, "postgres")
    password = folder / "password"
    password.write_text(SECRET)
    password.chmod(0o644)
    initdb = [*run, binaries[-1] / "initdb", "-D", folder / "data", "-U", "reporter", f"--pwfile={password}"]
    subprocess.run([*initdb, "-A", "scram-sha-256"], check=True, capture_output=True)
    start = [*run, binaries[-1] / "postgres", "-D", folder / "data", "-p", port, "-k", folder, "-h", "127.0.0.1"]
    with subprocess.Popen([str(word) for word in start], stderr=subprocess.DEVNULL) as server:
        try:
            assert answers(port)
            url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
            options = {"url": url, "user": "reporter", "password": SECRET, "driver": "org.postgresql.Driver"}
            program(
                "".join(
                    f"spark.read.parquet({str(DATA / f'wine_{side}.parquet')!r})"
                    f".write.format('jdbc').options(**{options!r}, dbtable={side!r}).save()\n"
                    for side in ("originals", "avatars")
                ),
                {"spark.jars": str(DRIVER)},
            )
            yield url
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder, ignore_errors=True)


def block(name, url, *lines):
    return "\n".join([f"[jdbc.{name}]", f'url = "{url}"', f'table = "{name}"', 'user = "reporter"', *lines, ""])


def reports(folder, url, *lines, settings=""):
    """Write a file with one report over both tables of the database."""
    text = f"""
    [reports.wine]
    originals = "jdbc:originals"
    avatars = "jdbc:avatars"
    output = "{folder}/report"
    history = "parquet:{folder}/history"
    run_date = 2026-11-01
    {settings}
    """
    (folder / "reports.toml").write_text(text + block("originals", url, *lines) + block("avatars", url, *lines))
    return ["--config", "reports.toml", "--report", "wine"]


def everything_written(folder):
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_database_is_measured_and_its_password_is_nowhere(postgres, tmp_path):
    parts = ["partition_column = 'id'", "lower_bound = 0", "upper_bound = 178", "partitions = 3"]
    argv = reports(tmp_path, postgres, 'password_env = "CLINIC"', *parts)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path), "spark.eventLog.compress": "false"}
    started = job(tmp_path, *argv, settings=log | {"spark.jars": str(DRIVER)}, CLINIC=SECRET)
    said, _ = started.communicate()
    assert started.returncode == 0, said
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert (report["local_cloaking"], report["originals"], report["name"]) == (4.5, 178, "wine")
    assert report["parameters"]["jdbc"]["originals"]["password_env"] == "CLINIC"
    assert SECRET not in said
    assert SECRET.encode() not in everything_written(tmp_path)
    assert b"SparkListenerApplicationEnd" in everything_written(tmp_path)  # the event log was there to be searched


@pytest.mark.parametrize(
    ("change", "lines", "word"),
    [
        (("^", ""), ['password_env = "NOT_SET"'], "NOT_SET"),
        (("^", ""), ['password_file = "wrong"'], "user or password is refused"),
        (("/postgres$", "/nosuch"), ['password_file = "right"'], "no such database"),
        ((r":\d+/", ":1/"), ['password_file = "right"'], "no connection"),
    ],
)
def test_what_a_database_refuses_is_one_line_and_exit_2(postgres, tmp_path, change, lines, word):
    (tmp_path / "right").write_text(SECRET + "\n")
    (tmp_path / "wrong").write_text("guessed-Secr3t")
    argv = reports(tmp_path, re.sub(*change, postgres), *lines)
    started = job(tmp_path, *argv, settings={"spark.jars": str(DRIVER)})
    said, _ = started.communicate()
    assert started.returncode == 2, said
    told = [line for line in said.splitlines() if line.startswith("local-cloaking:")]
    assert len(told) == 2  # one for each table
    assert all(word in line for line in told)
    assert "Secr3t" not in said
    assert not (tmp_path / "report").exists()


def test_a_missing_driver_is_named(postgres, tmp_path):
    started = job(tmp_path, *reports(tmp_path, postgres), settings={})
    said, _ = started.communicate()
    assert started.returncode == 2, said
    assert "org.postgresql.Driver" in said
    assert "spark.jars" in said


HIVE_SITE = """<configuration>
<property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:derby:;databaseName={0}/db;create=true</value></property>
<property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
<property><name>hive.metastore.schema.verification</name><value>false</value></property>
<property><name>hive.metastore.warehouse.dir</name><value>{0}/warehouse</value></property>
<property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""


@pytest.fixture
def metastore(tmp_path):
    """A Thrift metastore with the sample's tables; gives its process and the settings to reach it."""
    folder, port = tmp_path / "metastore", free_port()
    folder.mkdir()
    (folder / "hive-site.xml").write_text(HIVE_SITE.format(folder))
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")
    command = [java, f"-Dderby.system.home={folder}", "-Xmx512m", "-cp", f"{folder}:{jars}/*"]
    command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", port]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=log, stderr=log)
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        "spark.hadoop.hive.metastore.failure.retries": "0",
        "spark.hadoop.hive.metastore.connect.retries": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    try:
        assert answers(port), (folder / "log").read_text()[-2000:]
        tables = "".join(
            f"spark.read.parquet({str(DATA / f'wine_{side}.parquet')!r}).write.saveAsTable('wine_{side}')\n"
            for side in ("originals", "avatars")
        )
        program(tables, settings)
        yield server, settings
    finally:
        server.kill()
        server.wait()


WINE = ["--originals", "wine_originals", "--avatars", "wine_avatars", "--output", "report", "--run-date", "2026-11-01"]


def test_tables_of_a_metastore_are_measured_written_and_kept_in_a_history(metastore, tmp_path):
    _, settings = metastore
    for _ in range(2):
        argv = [*WINE, "--counts", "wine_counts", "--overwrite", "--history", "wine_history", "--name", "wine"]
        started = job(tmp_path, *argv, settings=settings)
        said, _ = started.communicate()
        assert started.returncode == 0, said
        assert "wine_counts_" not in said  # what it is called beside its place
    assert json.loads((tmp_path / "report" / "report.json").read_text())["local_cloaking"] == 4.5
    shown = program(
        "print('rows', [spark.table(name).count() for name in ('wine_counts', 'wine_history')],"
        " sorted(table.name for table in spark.catalog.listTables()))",
        settings,
    )
    assert "rows [178, 1] ['wine_avatars', 'wine_counts', 'wine_history', 'wine_originals']" in shown


def test_two_reports_at_once_keep_both_rows_in_a_history_that_neither_found(metastore, tmp_path):
    settings = metastore[1] | {f"spark.hadoop.hive.metastore.{what}.retries": "3" for what in ("failure", "connect")}
    started = []
    for name in ("wine", "staff"):
        argv = [*WINE, "--history", "both_history", "--name", name, "--output", f"report-{name}"]
        started.append(job(tmp_path, *argv, settings=settings))
    for one in started:
        said, _ = one.communicate()
        assert one.returncode == 0, said
    shown = program("print('names', sorted(row['name'] for row in spark.table('both_history').collect()))", settings)
    assert "names ['staff', 'wine']" in shown


HIVES_OWN = """
import threading
from cloaking.tables import shared_table
from cloaking.errors import OutputError
from pyspark.sql.types import StructType
schema = StructType.fromDDL("value double, name string, day date")
def put(table, name, value, day):
    row = spark.createDataFrame([(value, name, day)], "value double, name string, day string")
    row = row.withColumn("day", row.day.cast("date"))
    shared_table.replace(row, table, "history", {"name": name, "day": day})
def runs(table, name):
    for value, day in enumerate(["2026-01-01", "2026-02-01"] * 2):
        put(table, name, float(value), day)
for kind in ("PARQUET", "ORC", "TEXTFILE"):
    table = f"own_{kind.lower()}"
    spark.sql(f"CREATE TABLE {table} (value double) PARTITIONED BY (day date, name string) STORED AS {kind}")
    threads = [threading.Thread(target=runs, args=(table, name)) for name in ("a", "it's 1/2", "c")]
    if kind == "TEXTFILE":
        threads = []
        try:
            put(table, "a", 1.0, "2026-01-01")
        except OutputError as error:
            print("refused", error)
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if threads:
        print(table, sorted(map(tuple, shared_table.read(spark, table, "history", schema, ("name", "day"))
            .selectExpr("name", "month(day)", "value").collect())))
    assert spark.conf.get("hive.exec.dynamic.partition.mode", None) is None
"""


def test_tables_in_a_format_of_hives_own_keep_the_rows_of_runs_at_once_or_are_refused(metastore):
    shown = program(HIVES_OWN, metastore[1])
    expected = [(name, month, 1.0 + month) for name in ("a", "c", "it's 1/2") for month in (1, 2)]
    assert f"own_parquet {expected}" in shown
    assert f"own_orc {expected}" in shown
    assert "refused history 'own_textfile': is a table that is not known to replace" in shown
    assert "(format: hive)" in shown


def test_a_metastore_that_goes_away_while_counting_leaves_no_report(metastore, tmp_path):
    server, settings = metastore
    started = job(tmp_path, *WINE, "--history", "wine_history", settings=settings)
    lines = []
    for line in started.stdout:
        lines.append(line)
        if " index: " in line:  # read and checked; what follows is counting and writing
            server.kill()
    started.wait()
    told = [line for line in lines if line.startswith("local-cloaking:")]
    assert started.returncode == 2, "".join(lines)
    assert len(told) == 1
    assert "history 'wine_history'" in told[0]
    assert not any((tmp_path / "report").glob("report.json"))
