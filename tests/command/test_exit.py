"""The process's exit code is the command's, whatever happens when the interpreter is taken down."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from cloaking.command import session
from cloaking.command.run import end

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
TABLES = [
    "--originals", f"parquet:{DATA / 'wine_originals.parquet'}", "--avatars", f"parquet:{DATA / 'wine_avatars.parquet'}"
]  # fmt: skip
FAILING = ["--min-local-cloaking", "5"]  # of 4.5
WAYS = {
    "console script": [Path(sys.executable).with_name("local-cloaking")],
    "python": [sys.executable, ROOT / "jobs" / "local_cloaking.py"],
    "spark-submit": [
        Path(pyspark.__file__).parent / "bin" / "spark-submit",
        "--master", "local[2]", "--conf", "spark.ui.enabled=false", ROOT / "jobs" / "local_cloaking.py",
    ],
}  # fmt: skip
# Run by the driver's Python before anything else: aborts when modules are taken down, after all exit handlers.
ABORTS = """
import atexit, os, sys

class Aborting:
    def __del__(self, abort=os.abort):
        abort()

if any("local" in word and "cloaking" in word for word in sys.orig_argv[1:]):
    held = Aborting()
    atexit.register(print, "exit handlers ran", file=sys.stderr)
"""


def ran(way, folder, *argv):
    (folder / "sitecustomize.py").write_text(ABORTS)
    paths = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYSPARK_PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    env = os.environ | paths | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [*WAYS[way], *TABLES, *argv, "--output", folder / "report"]
    return subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(("argv", "code"), [([], 0), (FAILING, 3), (["--id", "nosuch"], 2)])
@pytest.mark.parametrize("way", WAYS)
def test_the_verdict_outlives_an_abort_at_the_interpreters_end(way, argv, code, tmp_path):
    done = ran(way, tmp_path, *argv)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "exit handlers ran" in said
    assert ("verdict=" in said) == (code != 2)


def test_the_abort_of_these_tests_does_change_a_code(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(ABORTS)
    command = [sys.executable, "-c", "import sys; sys.exit(3)", "local_cloaking.py"]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True).returncode != 3


INSIDE = {
    "runpy": "import runpy; runpy.run_path({job!r}, run_name='__main__')",
    "exec": "exec(compile(open({job!r}).read(), {job!r}, 'exec'), {{'__name__': '__main__'}})",
}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("how", INSIDE)
def test_a_job_run_inside_another_program_does_not_end_it(how, code, tmp_path):
    job = tmp_path / "job.py"
    job.write_text(f"from cloaking.command.run import end\nif __name__ == '__main__':\n    end({code})\n")
    program = f"try:\n    {INSIDE[how].format(job=str(job))}\nexcept SystemExit as e:\n    print('raised', e.code)\n"
    program += "print('lives on')\n"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.splitlines() == ([f"raised {code}"] if code else []) + ["lives on"]
    assert done.returncode == 0


def test_this_very_interpreter_lives_on():
    end(0)
    with pytest.raises(SystemExit) as raised:
        end(3)
    assert raised.value.code == 3


GIB = 2**30


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/pod/job\n", {"pod/job/memory.max": "max", "pod/memory.max": str(GIB // 2)}, GIB // 2),
        ("0::/pod/job\n", {"pod/job/memory.max": str(GIB // 4), "pod/memory.max": str(GIB // 2)}, GIB // 4),
        ("0::/\n", {"memory.max": str(GIB // 2)}, GIB // 2),
        ("4:cpu,memory:/pod\n", {"memory/pod/memory.limit_in_bytes": str(GIB // 2)}, GIB // 2),
        ("4:memory:/hidden\n", {"memory/memory.limit_in_bytes": str(GIB // 2)}, GIB // 2),
        ("0::/pod\n", {"pod/memory.max": str(2**62)}, None),
        ("", {}, None),
    ],
)
def test_a_containers_limit_is_the_memory_that_there_is(tmp_path, groups, files, expected):
    for name, text in files.items():
        path = tmp_path / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(groups)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert session.memory_limit(tmp_path) == (expected or machine)


def test_where_there_are_no_control_groups_the_machine_counts(tmp_path):
    assert session.memory_limit(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
