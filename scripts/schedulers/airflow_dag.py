"""Run Local Cloaking on the first of each month at 03:00 by Airflow 3.3 with its Spark provider, from the DAGs folder.

exit code  meaning                                                what happens
0          done, the gate is met or there is none                 `verdict` returns the figures
1          a bug, or a failure of the machine                     `measure` is tried once more
2          bad arguments, configuration or data, nothing written  no retry; every problem is on a line of the log
3          the gate is not met, everything is written             no retry; `verdict` asks to inform the privacy officer

SparkSubmitOperator raises on any code but 0. YARN in cluster mode turns every failure into 1, so that there 2 and 3 are
tried once more too. Therefore `verdict` runs in any case and reads report.json, which is written last: if it is from
this run, the run is complete. In cluster mode, write the report to an address or a mounted folder; otherwise it stays
on the driver's node.
"""

import datetime
import json
import re

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, ObjectStoragePath, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

HOME = "/opt/cloaking"  # the zip of scripts/package and jobs/local_cloaking.py
CONFIG = "/etc/cloaking/reports.toml"
REPORT = ObjectStoragePath("file:///reports/patients/report.json")  # s3://, gs://, abfs:// with their providers


class Measure(SparkSubmitOperator):
    """Run spark-submit and do not retry exit codes 2 and 3, since the same tables give the same answer."""

    def execute(self, context):
        context["ti"].xcom_push("started", datetime.datetime.now(datetime.UTC).replace(microsecond=0).isoformat())
        try:
            return super().execute(context)
        except AirflowException as error:
            if re.search(r"(Error|exit) code is: [23]\b", str(error)):
                raise AirflowFailException(str(error)) from error
            raise


moment = datetime.datetime.fromisoformat


with DAG(
    "local_cloaking_patients",
    schedule="0 3 1 * *",
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    max_active_runs=1,  # two runs would write the same report
):
    measure = Measure(
        task_id="measure",
        name="local-cloaking",
        conn_id="spark_default",  # the master, and the deploy mode: client passes the exit code through
        application=f"{HOME}/local_cloaking.py",
        py_files=f"{HOME}/cloaking-0.1.0.zip",
        # The date is the key of the row in the history, so a repeated run replaces only its own row.
        application_args=["--config", CONFIG, "--report", "patients", "--run-date", "{{ ds }}"],
        driver_memory="4g",
        executor_memory="4g",
        executor_cores=4,
        num_executors=4,
        conf={
            "spark.driver.memoryOverhead": "2g",  # Python builds the index of the avatars there
            "spark.executor.memoryOverhead": "4g",  # Python does the counting
            "spark.yarn.maxAppAttempts": "1",  # otherwise YARN restarts the job itself, whatever the exit code
        },
        durable=False,  # otherwise YARN's cluster mode needs its resource manager's address
        retries=1,
        retry_delay=datetime.timedelta(minutes=10),
        execution_timeout=datetime.timedelta(hours=4),
    )

    @task(trigger_rule="all_done")
    def verdict(ds, ti):
        started = ti.xcom_pull(task_ids="measure", key="started")  # when its last try started
        report = json.loads(REPORT.read_text()) if started and REPORT.exists() else None
        if report is None or report["run_date"] != ds or moment(report["run_at"]) < moment(started):
            raise AirflowFailException("exit code 1 or 2, nothing was written: see the end of the log of `measure`")
        figures = f"local_cloaking={report['local_cloaking']} hidden_rate={report['hidden_rate']}"
        if report["verdict"] == "fail":
            raise AirflowFailException(f"exit code 3, the gate is not met: tell the privacy officer ({figures})")
        return figures

    measure >> verdict()
