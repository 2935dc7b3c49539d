#!/bin/bash
# Init script of databricks_job.json: the wheel without what it depends on. Databricks Runtime 17.3 LTS and later bring
# Spark, numpy, pandas, pyarrow, jinja2 and matplotlib; as a library of the task, the wheel would have pip add another
# pyspark beside the cluster's own.
set -euo pipefail
/databricks/python/bin/pip install --no-deps /Volumes/main/cloaking/files/cloaking-0.1.0-py3-none-any.whl
