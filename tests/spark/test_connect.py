"""The Python interface and the job give the same counts on Spark Connect, where there is no SparkContext."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyspark
import pytest

pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(int(pyspark.__version__.partition(".")[0]) < 4, reason="a local Connect session needs Spark 4"),
]

DATA = Path(__file__).parents[1] / "data"
SESSION = """
import sys
from pyspark.sql import SparkSession
from cloaking import local_cloaking

spark = SparkSession.builder.remote("local[2]").getOrCreate()
read = spark.read.parquet
originals, avatars = (read(f"{sys.argv[1]}/wine_{side}.parquet") for side in ("originals", "avatars"))
"""
MEASURE = """
for strategy in ("broadcast", "partition"):
    for again in range(2):  # a file that was sent once cannot be sent again
        result = local_cloaking(originals, avatars, ncp=5, strategy=strategy, cell_rows=20, group_by="cultivar")
    assert result.summary.originals == 178 and result.summary.avatars == 178
    result.counts.toPandas().to_csv(sys.argv[2] + "/" + strategy + ".csv", index=False)
"""


def run(code, *arguments, folder=None):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=folder
    )


def test_both_strategies_give_the_counts_of_the_oracle(tmp_path):
    done = run(SESSION + MEASURE, DATA, tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]
    expected = pd.read_csv(DATA / "wine_counts.csv").sort_values("id", ignore_index=True)
    for strategy in ("broadcast", "partition"):
        found = pd.read_csv(tmp_path / f"{strategy}.csv").sort_values("id", ignore_index=True)
        pd.testing.assert_frame_equal(found[list(expected)], expected)


def test_counts_and_history_are_written_and_missing_tables_told_one_by_one(tmp_path):
    code = """
import sys
from pyspark.sql import SparkSession
from cloaking.command.local_cloaking import main
spark = SparkSession.builder.remote("local[2]").getOrCreate()
folder, data = sys.argv[1:]
tables = [f"--{side}=parquet:{data}/wine_{side}.parquet" for side in ("originals", "avatars")]
kept = [f"--counts=csv:{folder}/counts", f"--history=parquet:{folder}/history", "--name=wine"]
codes = [main([*tables, *kept, f"--run-date=2026-0{month}-01", f"--output={folder}/report", *more])
         for month, more in ((1, []), (2, ["--overwrite"]))]
codes.append(main(["--originals=nosuch", "--avatars=parquet:/nosuch", f"--output={folder}/report"]))
from cloaking.tables import overlap
assert overlap.local(spark, folder) is overlap.local(spark, f"file:{folder}") is None  # its server may be elsewhere
print(codes, spark.read.parquet(f"{folder}/history").count())
"""
    done = run(code, tmp_path, DATA)
    assert done.stdout.splitlines()[-1] == "[0, 0, 2] 2", done.stderr[-2_000:]
    told = [line for line in done.stderr.splitlines() if line.startswith("local-cloaking:")]
    assert ["originals 'nosuch'" in told[0], "avatars 'parquet:/nosuch'" in told[1]] == [True, True]


def test_a_table_of_a_catalog_keeps_one_row_per_key(tmp_path):
    code = """
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from cloaking.tables import shared_table
spark = SparkSession.builder.remote("local[2]").getOrCreate()
schema = StructType.fromDDL("value double, name string, day date")
for value, name in ((1.0, "it's"), (2.0, "b"), (3.0, "it's")):
    row = spark.createDataFrame([(value, name)], "value double, name string").selectExpr("*", "date'2026-01-01' AS day")
    shared_table.replace(row, "kept", "history", {"name": name, "day": "2026-01-01"})
    table = shared_table.read(spark, "kept", "history", schema, ("name", "day"))
    print(sorted((row["name"], row["value"]) for row in table.collect()))
spark.sql("DROP TABLE kept")
"""
    done = run(code, folder=tmp_path)
    assert done.stdout.splitlines()[-1] == """[('b', 2.0), ("it's", 3.0)]""", done.stderr[-2_000:]


def test_the_job_runs_against_a_remote_session(tmp_path):
    code = "import sys; from cloaking.command.local_cloaking import main; sys.exit(main())"
    tables = [f"--{side}=parquet:{DATA}/wine_{side}.parquet" for side in ("originals", "avatars")]
    done = run(code, *tables, "--conf", "spark.remote=local[2]", f"--output={tmp_path}")
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads((tmp_path / "report.json").read_text())["local_cloaking"] == 4.5
