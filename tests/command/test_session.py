"""The session: the running one, or one with Java found before Spark is asked."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloaking.command import java as java_process
from cloaking.command import session as module
from cloaking.command.local_cloaking import main
from cloaking.errors import SettingsError


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Put a java of a made-up version into JAVA_HOME."""

    def installed(script):
        path = tmp_path / "bin" / "java"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    return installed


def test_the_running_session_is_used_and_left_running(spark):
    with module.session(()) as found:
        assert found.sparkContext is spark.sparkContext
    assert spark.range(1).count() == 1


def test_so_is_one_that_another_thread_started(spark):
    found = []

    def look():
        with module.session(()) as session:
            found.append(session.sparkContext)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [spark.sparkContext]
    assert spark.range(1).count() == 1


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.20", "16"])
def test_an_older_java_is_refused_with_its_version(java, version):
    java(f"echo 'openjdk version \"{version}\" 2021-01-01' >&2")
    with pytest.raises(SettingsError, match="17"):
        java_process.find()


@pytest.mark.parametrize("version", ["17.0.9", "21", "25-ea"])
def test_java_17_and_newer_will_do(java, version):
    java(f"echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"{version}\"' >&2")
    java_process.find()


def test_a_java_that_does_not_run_is_refused(java):
    java("exit 1")
    with pytest.raises(SettingsError, match="does not run"):
        java_process.find()


def test_no_java_at_all_is_one_line_and_exit_code_2(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    argv = ["--originals", "a", "--avatars", "b", "--output", str(tmp_path / "report")]
    assert main(argv) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "Java 17" in line
    assert not (tmp_path / "report").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spark.master=nonsense", "Spark does not start with these settings"),
        ("spark.driver.memory=abc", "Spark does not start with these settings"),
        ("spark.sql.shuffle.partitions=abc", "Spark does not take the value of spark.sql.shuffle.partitions"),
    ],
)
def test_settings_that_spark_does_not_take_are_one_line(tmp_path, setting, said):
    data = Path(__file__).parents[1] / "data"
    tables = [f"--{side}=parquet:{data}/wine_{side}.parquet" for side in ("originals", "avatars")]
    tables += ["--output", str(tmp_path / "report")]
    code = "import sys; from cloaking.command.local_cloaking import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *tables, "--conf", setting], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr.splitlines()[-1]


def test_spark_of_ones_own_takes_all_cores_and_at_most_half_of_the_memory():
    settings = module._own_machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert settings["spark.master"] == "local[*]"
    megabytes = int(settings["spark.driver.memory"].removesuffix("m"))
    assert 0 < megabytes <= min(memory / 2, 8 * 1024)
