"""Two projected tables -> Local Cloaking report and exit code: `spark-submit jobs/local_cloaking.py --help`."""

import sys

from cloaking.command import main

if __name__ == "__main__":
    # Databricks and Airflow take even sys.exit(0) for a failure.
    if code := main():
        sys.exit(code)
