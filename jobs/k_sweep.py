"""Originals -> how the metric answers to k, on simulated avatars: `spark-submit jobs/k_sweep.py --help`."""

import sys

from cloaking.sweep_command import main

if __name__ == "__main__":
    # Databricks and Airflow take even sys.exit(0) for a failure.
    if code := main():
        sys.exit(code)
