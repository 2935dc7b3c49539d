"""What a terminal and a cron job show: this program's lines, and none of Java's around ordinary outcomes."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloaking.command.settings import parse
from cloaking.errors import SettingsError

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
ORIGINALS, AVATARS = (f"parquet:{DATA / f'wine_{side}.parquet'}" for side in ("originals", "avatars"))
COMMAND = [sys.executable, str(ROOT / "jobs" / "local_cloaking.py")]
QUIET = [word for one in ("spark.ui.enabled=false", "spark.master=local[2]") for word in ("--conf", one)]
SETTINGS = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "LOG4J_CONFIGURATION_FILE", "JAVA_TOOL_OPTIONS")


def environment(**more):
    """This process's environment without what says how Spark logs."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS} | {
        "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", **more
    }  # fmt: skip


def run(folder, *argv, env=None, **options):
    command = [*COMMAND, *argv, "--output", str(folder / "report")]
    return subprocess.run(
        command, cwd=folder, env=env or environment(), capture_output=True, text=True, timeout=300, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("ref", ["parquet:/nosuch/x.parquet", "csv:/nosuch/x", "orc:/nosuch/x", "nosuch.table"])
def test_a_table_that_is_not_there_is_one_line_a_table(tmp_path, ref):
    done = run(tmp_path, "--originals", ref, "--avatars", ref, *QUIET)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert all(line.startswith("local-cloaking: ") and ref in line for line in lines)


@pytest.mark.slow
def test_a_first_run_with_a_history_shows_no_line_of_javas_on_a_terminal(tmp_path):
    master, slave = pty.openpty()
    said = []

    def read():
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            said.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    argv = ["--originals", ORIGINALS, "--avatars", AVATARS, "--history", f"parquet:{tmp_path}/history", *QUIET]
    argv += ["--conf", "spark.ui.showConsoleProgress=false", "--output", str(tmp_path / "report")]
    done = subprocess.run([*COMMAND, *argv], env=environment(TERM="xterm"), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    reader.join()
    text = b"".join(said).decode()
    assert done.returncode == 0, text
    lines = [line for line in text.splitlines() if line.strip()]
    assert all(" INFO " in line or " WARNING " in line for line in lines), text
    assert not any(word in text for word in ("org.apache", "\tat ", "incubator", "log4j", "Picked up")), text


@pytest.mark.slow
def test_an_interrupt_is_one_line(tmp_path):
    argv = [*COMMAND, "--originals", ORIGINALS, "--avatars", AVATARS, "--output", str(tmp_path / "report"), *QUIET]
    with subprocess.Popen(
        argv, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as job:  # fmt: skip
        lines = []
        for line in job.stderr:
            lines.append(line)
            if "checked:" in line:
                os.killpg(job.pid, signal.SIGINT)  # as a terminal does, Java included
        code = job.wait(timeout=120)
    assert code == 130, lines
    assert [line for line in lines if " INFO " not in line] == ["local-cloaking: stopped by SIGINT before the end\n"]


@pytest.mark.slow
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {}], ids=["C", "POSIX", "none"])
def test_a_bare_environment_keeps_a_history_of_any_name(tmp_path, locale):
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HADOOP_CONF_DIR") if name in os.environ}
    argv = ["--originals", ORIGINALS, "--avatars", AVATARS, "--name", "santé – 健康", "--history", "parquet:history"]
    for _ in range(2):
        done = run(tmp_path, *argv, *QUIET, "--run-date", "2026-11-01", env=kept | locale, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (report["local_cloaking"], report["name"]) == (4.5, "santé – 健康")
    assert len(list((tmp_path / "history").rglob("*.parquet"))) == 1


def problems(*argv):
    with pytest.raises(SettingsError) as caught:
        parse([*argv, "--output", "out"])
    return caught.value.problems


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("data/a.parquet", "did you mean parquet:data/a.parquet?"),
        ("./patients.csv", "did you mean csv:./patients.csv?"),
        ("/lake/patients", "did you mean parquet:/lake/patients?"),
        ("s3://bucket/patients", "did you mean parquet:s3://bucket/patients?"),
        ("xlsx:patients.xlsx", "Spark has no format 'xlsx'; export the sheet as CSV"),
        ("parqet:patients", "Spark has no format 'parqet'; did you mean parquet:?"),
        ("tsv:patients", "write the table as parquet:, orc: or csv:"),
    ],
)
def test_what_is_surely_no_reference_is_one_line_before_spark_starts(ref, hint):
    for option, other in (("--originals", "--avatars"), ("--avatars", "--originals")):
        [line] = problems(option, ref, other, "gold.patients")
        assert hint in line


@pytest.mark.parametrize("ref", ["gold.patients", "cat.`a/b`.t", "delta.`/lake/t`", "jdbc:staff", "excel:x", "avro:x"])
def test_what_may_be_a_reference_is_left_to_spark(ref):
    if not ref.startswith("jdbc:"):
        assert parse(["--originals", ref, "--avatars", ref, "--output", "out"]).originals == ref


@pytest.mark.parametrize(
    ("typed", "meant"), [("--orignals", "--originals"), ("--min-localcloaking", "--min-local-cloaking")]
)
def test_a_misspelt_option_is_met_with_the_nearest_one(typed, meant):
    [line] = problems(typed, "x")
    assert line.endswith(f"did you mean {meant}?")


def test_the_log_settings_for_spark_submit_are_those_of_the_package():
    inside = ROOT / "cloaking" / "command" / "log4j2.properties"
    assert (ROOT / "conf" / "log4j2.properties").read_bytes() == inside.read_bytes()
