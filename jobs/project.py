"""Raw originals and avatars -> projected tables and model.json: `spark-submit jobs/project.py --help`."""

import sys

from cloaking.project_command import main

if __name__ == "__main__":
    # Databricks and Airflow take even sys.exit(0) for a failure.
    if code := main():
        sys.exit(code)
