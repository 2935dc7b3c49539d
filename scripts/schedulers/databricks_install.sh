#!/bin/bash
# Install the wheel without its dependencies, as the init script of databricks_job.json. Databricks Runtime 17.3 LTS and
# later include Spark, numpy, pandas, pyarrow, jinja2 and matplotlib; if the wheel were a library of the task, pip would
# install another pyspark beside the cluster's own.
set -euo pipefail
/databricks/python/bin/pip install --no-deps /Volumes/main/cloaking/files/cloaking-0.1.0-py3-none-any.whl
