"""A command's frame: exit codes, signals, and what is not told."""

import logging
import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import py4j
import pytest

from cloaking.command import run
from cloaking.errors import InputError

SETTINGS = SimpleNamespace(conf=(), debug=False)


def ran(work, settings=SETTINGS):
    """Run a made-up command in the suite's session."""
    return run.run("made-up", lambda: settings, lambda spark, settings, start: work())


def log_of_py4j():
    """Log as py4j's own files do, on its loggers and on the root."""
    path = Path(py4j.__file__).with_name("java_gateway.py")
    said = "import logging\nlogging.error('on the root')\nlogging.getLogger('py4j.java_gateway').error('on its own')\n"
    exec(compile(said, path, "exec"), {})


def fail(error):
    raise error


def test_the_exit_codes_are_the_documented_ones():
    assert (run.DONE, run.BUG, run.WRONG, run.NOT_MET) == (0, 1, 2, 3)


@pytest.mark.parametrize("code", [run.DONE, run.NOT_MET])
def test_the_exit_code_is_that_of_the_work(spark, code):
    assert ran(lambda: code) == code


def test_what_the_user_can_mend_is_told_in_a_line_each(spark, capsys):
    assert ran(lambda: fail(InputError("this", "and that"))) == 2
    assert capsys.readouterr().err.splitlines() == ["made-up: this", "made-up: and that"]


def test_debug_shows_the_traceback_of_what_is_said_in_a_line(spark, capsys):
    assert ran(lambda: fail(InputError("this")), SimpleNamespace(conf=(), debug=True)) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith("made-up: this\n")


def test_a_worker_that_crashed_is_a_bug_not_a_lack_of_memory(spark, capsys):
    crashed = RuntimeError("Python worker exited unexpectedly (crashed): Fatal Python error: Segmentation fault")
    assert ran(lambda: fail(crashed)) == 1
    assert capsys.readouterr().err.startswith("Traceback")


def test_a_bug_is_told_with_its_traceback(spark, capsys):
    assert ran(lambda: fail(ZeroDivisionError("of ours"))) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith("ZeroDivisionError: of ours\n")


def test_a_spark_that_is_gone_is_told_in_one_line(spark, capsys, monkeypatch):
    ended = subprocess.Popen(["true"])
    monkeypatch.setattr(run, "gateway", lambda: SimpleNamespace(proc=ended))
    assert ran(lambda: fail(ConnectionRefusedError(111, "Connection refused"))) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("made-up: Spark's process ended before the job did") and "spark.driver.memory" in line


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), ["driver's Python", "--strategy partition"]),
        (OSError("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB"), ["a worker", "--cell-rows"]),
        (RuntimeError("Python worker exited unexpectedly (crashed)"), ["a worker", "--cell-rows", "memoryOverhead"]),
        (RuntimeError("ExecutorLostFailure (executor 1 exited unrelated to the running tasks)"), ["a worker"]),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), ["Java", "spark.executor.memory"]),
        (RuntimeError("java.io.IOException: No space left on device"), ["scratch space", "spark.local.dir"]),
    ],
)
def test_what_was_too_small_is_told_in_one_line_with_the_setting_to_change(spark, capsys, error, told):
    assert ran(lambda: fail(error)) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("made-up: ") and all(words in line for words in told)


def test_what_py4j_logs_is_not_told_for_it_comes_as_an_exception(spark, caplog):
    def work():
        log_of_py4j()
        logging.error("ours")
        return 0

    ran(work)
    assert [record.message for record in caplog.records] == ["ours"]
    log_of_py4j()
    assert [record.message for record in caplog.records] == ["ours", "on the root", "on its own"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_stops_the_command_once(spark, name, capsys):
    number = getattr(signal, name)
    before, steps = signal.getsignal(number), []

    def work():
        try:
            os.kill(os.getpid(), number)
            steps.append("not reached")
        finally:
            os.kill(os.getpid(), number)  # the second is for nothing: what cleans up is not cut off
            steps.append("cleaned up")

    assert ran(work) == 128 + number
    assert steps == ["cleaned up"]
    assert capsys.readouterr().err == f"made-up: stopped by {name} before the end\n"
    assert signal.getsignal(number) == before
