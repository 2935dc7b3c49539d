"""What is shown of an address: its place, and never a user part or a parameter, whatever they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloaking.addresses import is_refused, published

SECRET = "S3cretPlanted"

SHOWN = {
    "gold.patients": "gold.patients",
    "cat.`my schema`.t": "cat.`my schema`.t",
    "parquet:/data/a b.parquet": "parquet:/data/a b.parquet",
    "csv:data/x@2.csv": "csv:data/x@2.csv",
    "/reports/patients": "/reports/patients",
    "jdbc:staff": "jdbc:staff",
    "parquet:s3a://bucket/people": "parquet:s3a://bucket/people",
    "parquet:hdfs://name:8020/people": "parquet:hdfs://name:8020/people",
    "parquet:abfss://container@account.dfs.core.windows.net/p": "parquet:abfss://container@account.dfs.core.windows.net/p",
    f"parquet:s3a://AKIA:{SECRET}/b@bucket/people": "parquet:s3a://...@bucket/people",
    f"s3://bucket/people?sig={SECRET}": "s3://bucket/people?...",
    f"jdbc:postgresql://user:{SECRET}@host:5432/db?x={SECRET}": "jdbc:postgresql://...@host:5432/db?...",
    f"jdbc:oracle:thin:user/{SECRET}@//host:1521/service": "jdbc:oracle:thin:...@//host:1521/service",
    f"jdbc:databricks://host:443/default;PWD={SECRET}": "jdbc:databricks://host:443/default;...",
}


@pytest.mark.parametrize("address", SHOWN)
def test_what_is_shown_is_the_place(address):
    assert published(address) == SHOWN[address]


def test_a_database_that_is_a_parameter_is_shown():
    shown = published(f"jdbc:sqlserver://host:1433;databaseName=people;SecretAccessKey={SECRET}")
    assert "host:1433" in shown and "databaseName=people" in shown and SECRET not in shown


@pytest.mark.parametrize(
    "address",
    [
        f"jdbc:h2://host/db;SecretAccessKey={SECRET}",
        f"jdbc:bigquery://host:443;OAuthPvtKey={SECRET}",
        f"jdbc:snowflake://host/?privateKey={SECRET}",
        f"parquet:s3a://KEY:{SECRET}/b@bucket",
        f"s3://user:{SECRET}@bucket/x",
        f"jdbc:oracle:thin:user/{SECRET}@//host:1521/service",
    ],
)
def test_what_is_known_to_be_secret_is_refused(address):
    assert is_refused(address)


@pytest.mark.parametrize("address", [address for address in SHOWN if SECRET not in address])
def test_an_address_without_a_secret_is_not_refused(address):
    assert not is_refused(address)


SHAPES = (
    "parquet:s3a://{user}@bucket/people",
    "s3://{user}@bucket/people?{parameters}",
    "gs://bucket/people?{parameters}",
    "https://host/x;{parameters}",
    "jdbc:postgresql://{user}@host:5432/db?{parameters}",
    "jdbc:postgresql://host:5432/db?{parameters}",
    "jdbc:sqlserver://host:1433;databaseName=db;{parameters}",
    "jdbc:oracle:thin:{user}@//host:1521/service",
    "jdbc:oracle:thin:{user}@host:1521:sid",
    "jdbc:snowflake://account.example.com/?{parameters}",
    "jdbc:databricks://host:443/default;{parameters}",
    "jdbc:mysql://{user}@host/db?{parameters}",
    "jdbc:db2://host:50000/db:{parameters};",
    "jdbc:unheardof:{user}@host;{parameters}",
)
SIGNS = "abcXYZ0189:/_-.+%~!$"


@given(
    shape=st.sampled_from(SHAPES),
    before=st.text(SIGNS, max_size=6),
    after=st.text(SIGNS, max_size=6),
    key=st.text("abcdefgK_.", min_size=1, max_size=12),
)
def test_no_planted_secret_is_ever_shown(shape, before, after, key):
    address = shape.format(user=f"{before}{SECRET}{after}", parameters=f"{key}={before}{SECRET}{after}")
    shown = published(address)
    assert SECRET not in shown
    assert published(shown) == shown
