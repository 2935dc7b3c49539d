"""The schedulers' examples are parsed, their arguments go through the real command line, their scripts are run."""

import ast
import datetime
import fcntl
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cloaking import __version__
from cloaking.command.settings import parse

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "scripts" / "schedulers"
RUN_DATE = "2026-11-01"
CODES = (0, 1, 2, 3)

# What the schedulers put in place of their variables, on that day.
VARIABLES = {
    "{{ ds }}": RUN_DATE,
    "{{job.parameters.run_date}}": RUN_DATE,
    "{{workflow.creationTimestamp.Y}}-{{workflow.creationTimestamp.m}}-{{workflow.creationTimestamp.d}}": RUN_DATE,
}

# Pins that Python 3.11 to 3.13 can install; a constraints file would have to be fetched.
AIRFLOW = ("apache-airflow==3.3.2", "apache-airflow-providers-apache-spark==6.3.4")


def text(name):
    return (EXAMPLES / name).read_text()


def crontab():
    """The crontab's one entry: its five fields, and its command as cron hands it to the shell."""
    [line] = [line for line in text("crontab").splitlines() if line and not re.match(r"#|\w+=", line)]
    *fields, command = line.split(maxsplit=5)
    assert not re.search(r"(?<!\\)%", command), "cron ends a command at a percent sign"
    return fields, command.replace("\\%", "%")


def databricks():
    job = json.loads(text("databricks_job.json"))
    [task] = job["tasks"]
    return job, task


def spark_application():
    return yaml.safe_load(text("spark_application.yaml"))["spec"]


def argo(template=None):
    spec = yaml.safe_load(text("argo_workflow.yaml"))["spec"]
    templates = {each["name"]: each for each in spec["workflowSpec"]["templates"]}
    return templates[template] if template else spec


def airflow_call():
    """The keywords of the DAG's spark-submit task, made of constants and of the file's named texts."""
    tree = ast.parse(text("airflow_dag.py"))
    names = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Measure"]
    names |= {"datetime": datetime}
    return {word.arg: eval(compile(ast.Expression(word.value), "dag", "eval"), names) for word in call.keywords}


def cron_arguments(tmp_path):
    code, said, told = run_crontab(tmp_path, 0)
    assert (code, said, told) == (0, "", None)
    return (tmp_path / "arguments").read_text().splitlines()


ARGUMENTS = {
    "crontab": cron_arguments,
    "airflow_dag.py": lambda _: airflow_call()["application_args"],
    "databricks_job.json": lambda _: databricks()[1]["spark_python_task"]["parameters"],
    "spark_application.yaml": lambda _: spark_application()["template"]["arguments"],
    "argo_workflow.yaml": lambda _: argo("measure")["container"]["args"],
}


def executable(path, script):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def run_shell(tmp_path, script, fakes, **variables):
    """Run a script where some commands are fakes; return its exit code and what it printed."""
    for name, fake in fakes.items():
        executable(tmp_path / "bin" / name, fake)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def run_crontab(tmp_path, code):
    """Run the crontab's line with a job that ends so; return the line's code, what it printed and what it mailed."""
    job = f"printf '%s\\n' \"$@\" >{tmp_path}/arguments; echo the log; exit {code}"
    fakes = {"local-cloaking": job, "mail": f"(printf '%s\\n' \"$@\"; cat) >{tmp_path}/mail"}
    ended, said = run_shell(tmp_path, crontab()[1], fakes, LOG=str(tmp_path / "log"))
    mail = tmp_path / "mail"
    return ended, said, mail.read_text() if mail.exists() else None


@pytest.fixture
def reports(tmp_path):
    path = tmp_path / "reports.toml"
    path.write_text(
        """
        [reports.patients]
        originals = "gold.patients"
        avatars = "gold.avatars"
        output = "/reports/patients"
        """
    )
    return str(path)


@pytest.mark.parametrize("example", ARGUMENTS)
def test_the_command_line_takes_the_arguments_of_each_example(example, tmp_path, reports):
    argv = [VARIABLES.get(word, word) for word in ARGUMENTS[example](tmp_path)]
    assert not [word for word in argv if "{{" in word]
    assert argv[argv.index("--report") + 1] == "patients"
    assert argv[argv.index("--config") + 1].endswith("/reports.toml")
    argv[argv.index("--config") + 1] = reports
    settings = parse(argv)
    assert (settings.originals, settings.output) == ("gold.patients", "/reports/patients")
    if example == "spark_application.yaml":  # the operator has no variable for the date
        assert settings.run_date is None
    elif example == "crontab":
        today = datetime.datetime.now(datetime.UTC).date()
        assert datetime.date.fromisoformat(settings.run_date) in (today, today - datetime.timedelta(days=1))
    else:
        assert settings.run_date == RUN_DATE


def test_all_examples_run_on_the_first_of_each_month_at_three():
    monthly = "0 3 1 * *"
    assert crontab()[0] == monthly.split()
    assert spark_application()["schedule"] == monthly
    assert argo()["schedules"] == [monthly]
    assert f'schedule="{monthly}"' in text("airflow_dag.py")
    # Quartz begins with seconds, and one of the two kinds of day has to be a question mark.
    assert databricks()[0]["schedule"]["quartz_cron_expression"] == "0 0 3 1 * ?"


@pytest.mark.parametrize("example", ARGUMENTS)
def test_each_example_says_what_the_exit_codes_mean(example):
    said = text(example).lower()
    meanings = ["exit code", "done, the gate is met or there is none", "a bug", "bad arguments, configuration or data"]
    for words in (*meanings, "the gate is not met", "privacy officer"):
        assert words in said, words


def test_the_examples_name_the_files_that_are_built():
    for path in filter(Path.is_file, EXAMPLES.iterdir()):
        for name in re.findall(r"cloaking-(\d+\.\d+\.\d+)(?:-py3-none-any\.whl|\.zip)", path.read_text()):
            assert name == __version__, path


@pytest.mark.parametrize("code", CODES)
def test_the_crontab_tells_the_privacy_officer_of_the_gate_alone_and_prints_what_else_went_wrong(tmp_path, code):
    _, said, told = run_crontab(tmp_path, code)
    assert (told is not None) == (code == 3)
    assert said == ("the log\n" if code in (1, 2) else "")
    if told:
        assert "privacy-officer@example.org" in told
        assert "/reports/patients/report.html" in told


def test_databricks_runs_a_file_so_that_the_exit_code_counts_and_never_retries():
    job, task = databricks()
    assert task["spark_python_task"]["python_file"].endswith("/local_cloaking.py")
    assert job["parameters"] == [{"name": "run_date", "default": "{{job.trigger.time.iso_date}}"}]
    assert task["max_retries"] == 0
    assert task["retry_on_timeout"] is False
    assert "python_wheel_task" not in task
    [cluster] = job["job_clusters"]
    assert task["job_cluster_key"] == cluster["job_cluster_key"]
    [script] = cluster["new_cluster"]["init_scripts"]
    assert (EXAMPLES / Path(script["volumes"]["destination"]).name).exists()
    assert "--no-deps" in text("databricks_install.sh")


def test_the_spark_operator_submits_again_but_never_measures_again():
    application = spark_application()["template"]
    policy = application["restartPolicy"]
    assert (policy["type"], policy["onFailureRetries"]) == ("OnFailure", 0)
    assert policy["onSubmissionFailureRetries"] > 0
    assert (application["type"], application["pythonVersion"], application["mode"]) == ("Python", "3", "cluster")
    assert application["mainApplicationFile"] == "local:///opt/cloaking/local_cloaking.py"
    [package] = application["deps"]["pyFiles"]
    assert package.startswith("local:///opt/cloaking/")
    [mounted] = application["driver"]["configMaps"]
    assert application["arguments"][1] == f"{mounted['path']}/reports.toml"
    [volume], [mount] = application["volumes"], application["driver"]["volumeMounts"]
    assert mount == {"name": volume["name"], "mountPath": "/reports"}  # else the report goes with the driver's pod


def test_argo_retries_exit_code_1_a_lost_pod_and_one_out_of_memory_alone():
    retry = argo("measure")["retryStrategy"]
    assert (retry["limit"], retry["retryPolicy"]) == ("1", "Always")
    lost, codes = retry["expression"].split(" || ")
    assert lost == 'lastRetry.status == "Error"'
    assert codes == "asInt(lastRetry.exitCode) in [1, 137]"


def told_by_argo(tmp_path, code, curl):
    script = argo("tell")["container"]["args"][0].replace("{{inputs.parameters.code}}", str(code))
    return run_shell(tmp_path, f"sh -ec {shlex.quote(script)}", {"curl": curl}, PRIVACY_OFFICER="http://officer/")


@pytest.mark.parametrize("code", CODES[1:])
def test_argo_ends_with_the_code_of_the_job_and_tells_the_privacy_officer_at_3_alone(tmp_path, code):
    first, second = argo("report")["steps"]
    assert first[0]["continueOn"] == {"failed": True}
    assert second[0]["when"] == "{{steps.measure.exitCode}} != 0"
    ended, _ = told_by_argo(tmp_path, code, f"printf '%s\\n' \"$@\" >{tmp_path}/told")
    assert ended == code
    told = tmp_path / "told"
    assert told.exists() == (code == 3)
    if told.exists():
        assert "http://officer/" in told.read_text()


def test_argo_ends_with_the_code_of_the_gate_where_nobody_can_be_told(tmp_path):
    ended, said = told_by_argo(tmp_path, 3, "exit 22")
    assert ended == 3
    assert "could not be told" in said


def test_argo_keeps_spark_within_the_memory_of_its_container():
    container = argo("measure")["container"]
    assert "spark.driver.memory=4g" in container["args"]
    assert container["resources"]["limits"]["memory"] == "8Gi"
    assert f"spark.master=local[{container['resources']['requests']['cpu']}]" in container["args"]


def test_airflow_submits_the_packed_job_and_retries_once():
    call = airflow_call()
    assert call["application"] == "/opt/cloaking/local_cloaking.py"
    assert call["py_files"] == f"/opt/cloaking/cloaking-{__version__}.zip"
    assert call["retries"] == 1


# Runs in an environment with Airflow: the DAG as the scheduler reads it, then each exit code by a fake spark-submit.
IN_AIRFLOW = """
import datetime, json, os, pathlib, sys, types
from unittest import mock

from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import ObjectStoragePath
from airflow.sdk.exceptions import AirflowException, AirflowFailException

example, run_date = sys.argv[1:]
found = {}
bag = DagBag(example)
assert not bag.import_errors, bag.import_errors
[dag] = bag.dags.values()
found["tasks"] = {name: sorted(task.downstream_task_ids) for name, task in dag.task_dict.items()}
found["schedule"] = dag.schedule
measure, verdict = dag.get_task("measure"), dag.get_task("verdict")
found["rule"] = str(getattr(verdict.trigger_rule, "value", verdict.trigger_rule))
measure.render_template_fields({"ds": run_date})
found["arguments"] = measure.application_args
here = pathlib.Path.cwd()
spark_submit = here / "bin" / "spark-submit"
spark_submit.parent.mkdir()
kept = {}
ti = types.SimpleNamespace(xcom_push=kept.__setitem__, xcom_pull=lambda task_ids, key: kept.get(key))
found["raised"] = {}

def raised(case):
    measure._hook = None
    try:
        measure.execute({"ds": run_date, "ti": ti})
        found["raised"][case] = None
    except AirflowFailException:
        found["raised"][case] = "final"
    except AirflowException:
        found["raised"][case] = "again"

def submits(code):
    spark_submit.write_text(f"#!/bin/sh\\nprintf '%s\\\\n' \\"$@\\" >{here}/submitted\\nexit {code}\\n")
    spark_submit.chmod(0o755)

for code in range(4):
    submits(code)
    raised(code)
found["submitted"] = (here / "submitted").read_text().splitlines()
found["started"] = kept["started"]

os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps(
    dict(conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"})
)
submits(1)
raised("YARN, cluster")
found["to YARN"] = (here / "submitted").read_text().splitlines()
# Kubernetes in cluster mode: spark-submit itself ends with 0, and the hook finds the driver's code in its log.
with mock.patch.object(SparkSubmitHook, "submit") as submit:
    for code in (1, 2, 3):
        submit.side_effect = AirflowException(
            f"Cannot execute: spark-submit. Error code is: 0. Kubernetes spark exit code is: {code}"
        )
        raised(f"Kubernetes, cluster: {code}")

read = verdict.python_callable
kept["started"] = "2026-11-01T03:00:00+00:00"
found["verdicts"] = {}
for case, date, minute, said in [
    ("no report", None, None, None),
    ("of another date", "2026-10-01", 5, "pass"),
    ("of an earlier try", "2026-11-01", -5, "pass"),
    ("met", "2026-11-01", 5, "pass"),
    ("not met", "2026-11-01", 5, "fail"),
]:
    file = here / "report.json"
    if date:
        started = datetime.datetime(2026, 11, 1, 3, tzinfo=datetime.UTC)
        run_at = (started + datetime.timedelta(minutes=minute)).isoformat()
        file.write_text(json.dumps(
            dict(run_date=date, run_at=run_at, verdict=said, local_cloaking=11.0, hidden_rate=92.9)
        ))
    with mock.patch.dict(read.__globals__, REPORT=ObjectStoragePath(f"file://{file}")):
        try:
            found["verdicts"][case] = read(run_date, ti)
        except AirflowFailException as error:
            found["verdicts"][case] = f"failed: {error}"
pathlib.Path("found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def airflow_python():
    """The Python of an environment with the pinned Airflow, made once; skipped where the packages cannot be had."""
    folder = ROOT / ".venv-airflow"
    python, done = folder / "env" / "bin" / "python", folder / "installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != " ".join(AIRFLOW):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "env"], check=True, capture_output=True)
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *AIRFLOW]
            ended = subprocess.run(install, capture_output=True, text=True)
            if ended.returncode:
                [*_, reason] = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")] or ["no reason"]
                pytest.skip(f"{' '.join(AIRFLOW)} cannot be installed: {reason}")
            done.write_text(" ".join(AIRFLOW))
    return python


@pytest.mark.slow
def test_airflow_itself_reads_the_dag_and_knows_the_exit_codes(airflow_python, tmp_path):
    environment = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": "spark://127.0.0.1:7077?deploy-mode=client",
    }
    script = tmp_path / "in_airflow.py"
    script.write_text(IN_AIRFLOW)
    command = [airflow_python, script, EXAMPLES / "airflow_dag.py", RUN_DATE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    arguments = ["--config", "/etc/cloaking/reports.toml", "--report", "patients", "--run-date", RUN_DATE]
    assert found["tasks"] == {"measure": ["verdict"], "verdict": []}
    assert (found["schedule"], found["rule"]) == ("0 3 1 * *", "all_done")
    assert found["arguments"] == arguments
    assert found["submitted"][-7:] == ["/opt/cloaking/local_cloaking.py", *arguments]
    kubernetes = {f"Kubernetes, cluster: {code}": "again" if code == 1 else "final" for code in (1, 2, 3)}
    one_by_one = {"0": None, "1": "again", "2": "final", "3": "final"}
    assert found["raised"] == one_by_one | {"YARN, cluster": "again"} | kubernetes
    assert found["to YARN"][:2] == ["--master", "yarn"]
    assert found["to YARN"][-9:-7] == ["--deploy-mode", "cluster"]
    assert datetime.datetime.fromisoformat(found["started"]).tzinfo is not None
    verdicts = found["verdicts"]
    assert verdicts["met"] == "local_cloaking=11.0 hidden_rate=92.9"
    assert "privacy officer" in verdicts["not met"]
    for case in ("no report", "of another date", "of an earlier try"):
        assert "nothing was written" in verdicts[case], case
