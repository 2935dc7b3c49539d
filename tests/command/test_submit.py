"""The job as it is shipped: a zip and a job file from another working directory, and the same figures three ways."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyspark
import pytest

from cloaking import local_cloaking

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
TABLES = [
    "--originals", f"parquet:{DATA / 'wine_originals.parquet'}", "--avatars", f"parquet:{DATA / 'wine_avatars.parquet'}"
]  # fmt: skip
CLOSING = "local_cloaking="
SPARK_HOME = Path(pyspark.__file__).parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package():
    """The zip that scripts/package makes."""
    done = subprocess.run([ROOT / "scripts" / "package"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.endswith(".zip"))


def environment(**more):
    """This process's environment, where the package can only come from what is shipped, with Spark's log kept quiet."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_CONF_DIR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **more}


def submitted(package, folder, *argv, master="local[2]", home=SPARK_HOME, **more):
    """Run the job from the folder with spark-submit; return the exit code and what it said."""
    shipped = ["--archives", f"{package}#environment"] if package.endswith(".tar.gz") else ["--py-files", package]
    command = [home / "bin" / "spark-submit", "--master", master, *shipped, "--conf", "spark.ui.enabled=false"]
    command += [ROOT / "jobs" / "local_cloaking.py", *argv]
    env = environment(SPARK_HOME=str(home), SPARK_CONF_DIR=str(ROOT / "conf"), **more)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def console(folder, *argv):
    """Run what the console script `local-cloaking` runs."""
    call = "import sys; from cloaking.command.local_cloaking import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", call, *argv],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def figures(folder):
    """The report without what differs from run to run."""
    report = json.loads((folder / "report.json").read_text())
    return {key: value for key, value in report.items() if key not in ("run_id", "run_at", "seconds", "parameters")}


@pytest.fixture(scope="module")
def by_command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    code, said = console(folder, *TABLES, "--conf", "spark.master=local[2]", "--output", "report")
    assert code == 0, said
    return figures(folder / "report"), said


def test_the_console_script_ends_with_the_line_that_says_the_result(by_command):
    _, said = by_command
    [line] = [line for line in said.splitlines() if CLOSING in line]
    assert "originals=178 avatars=178 ncp=5 verdict=no_gate" in line
    assert "Traceback" not in said


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_the_packaged_job_gives_the_figures_of_the_console_script(package, by_command, tmp_path, master):
    code, said = submitted(package, tmp_path, *TABLES, "--output", str(tmp_path / "report"), master=master)
    assert code == 0, said
    assert CLOSING in said
    assert figures(tmp_path / "report") == by_command[0]


def test_the_packed_environment_is_all_that_a_node_with_the_same_python_needs(by_command, tmp_path):
    done = subprocess.run([ROOT / "scripts" / "package", "--environment"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    archive = done.stdout.splitlines()[-1]
    home, unpacked = tmp_path / "spark", tmp_path / "environment"
    home.mkdir()  # the cluster unpacks the archive in Spark's home
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(SPARK_HOME / name)
    unpacked.mkdir()  # the driver of client mode finds it in its working directory
    try:
        subprocess.run(["tar", "-xzf", archive, "-C", unpacked], check=True)
        assert not list(unpacked.glob("lib/*/site-packages/pyspark"))
        code, said = submitted(
            archive, tmp_path, *TABLES, "--output", str(tmp_path / "report"),
            master="local-cluster[1,1,1024]", home=home, PYSPARK_PYTHON="./environment/bin/python",
        )  # fmt: skip
        assert code == 0, said
        assert list(home.glob("work/*/*/environment/bin/python"))
    finally:
        shutil.rmtree(home)
        shutil.rmtree(unpacked)
    found, known = figures(tmp_path / "report"), by_command[0]
    assert {**found, "versions": None} == {**known, "versions": None}
    assert (tmp_path / "report" / "report.html").exists()


def test_scripts_package_refuses_what_it_does_not_know():
    done = subprocess.run([ROOT / "scripts" / "package", "--enviroment"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--environment" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_python_interface_gives_the_figures_of_the_console_script(spark, by_command):
    originals, avatars = (spark.read.parquet(str(DATA / f"wine_{side}.parquet")) for side in ("originals", "avatars"))
    found, report = local_cloaking(originals, avatars), by_command[0]
    names = ["local_cloaking", "hidden_rate", "hidden_rate_ties_hide", "hidden_rate_ties_expose", "avatars", "ncp"]
    assert {name: getattr(found.summary, name) for name in names} == {name: report[name] for name in names}
    assert {str(p): value for p, value in found.summary.quantiles.items()} == report["cloaking"]["quantiles"]
    known = pd.read_csv(DATA / "wine_counts.csv").set_index("id").sort_index()
    counts = found.counts.toPandas().set_index("id").sort_index()
    assert counts.to_numpy().tolist() == known.to_numpy().tolist()


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["--min-local-cloaking", "1000"], 3, "verdict=fail"),
        (["--ncp", "99"], 2, "--ncp 99"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_spark_submit_passes_the_exit_code_through(package, tmp_path, argv, code, word):
    found, said = submitted(package, tmp_path, *TABLES, *argv, "--output", str(tmp_path / "report"))
    assert found == code, said
    assert word in said
    assert (tmp_path / "report" / "report.json").exists() == (code == 3)
    assert code == 3 or "Traceback" not in said


def test_the_console_script_passes_the_exit_code_through(tmp_path):
    settings = ["--conf", "spark.master=local[2]", "--output", "report"]
    assert console(tmp_path, *TABLES, *settings, "--min-hidden-rate", "100")[0] == 3
    code, said = console(tmp_path, *TABLES, *settings, "--id", "nosuch")
    assert code == 2
    assert "'nosuch'" in said
    assert "Traceback" not in said
