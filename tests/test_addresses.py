"""What is shown of an address: its place, and never a user part or a parameter, whatever they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloaking.addresses import is_refused, published, published_words
from cloaking.command import k_sweep_settings, project_settings, settings
from cloaking.errors import SettingsError

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
    f"parquet:s3a://AKIA:{SECRET}/b@bucket/people": "parquet:s3a://...",
    f"s3://bucket/people?sig={SECRET}": "s3://bucket/people?...",
    f"jdbc:postgresql://user:{SECRET}@host:5432/db?x={SECRET}": "jdbc:postgresql://...@host:5432/db?...",
    f"jdbc:oracle:thin:user/{SECRET}@//host:1521/service": "jdbc:oracle:thin:...@//host:1521/service",
    f"jdbc:databricks://host:443/default;PWD={SECRET}": "jdbc:databricks://host:443/default;...",
    f"jdbc:teradata://host/DATABASE=people,x=a@{SECRET}": "jdbc:teradata://...",
    "/data/10:30@home/counts": "/data/10:30@home/counts",
    "parquet:/data/R&D/year=2026": "parquet:/data/R&D/year=2026",
    f"parquet:/data/people; pass word = {SECRET}": "parquet:/data/people;...",
    f"parquet:hdfs:/people?a=:{SECRET},&@+": "parquet:hdfs:/people?...",
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
    "jdbc:mysql://(host=h,{parameters})/db",
    "jdbc:mysqlx://[(address=h),({parameters})]/db",
    "jdbc:teradata://host/DATABASE=db,{parameters}",
    "jdbc:oracle:thin:{user}@(DESCRIPTION=(HOST=h)({parameters}))",
    "cat.delta.`abfss://c@account.dfs.core.windows.net/p?{parameters}`",
    "parquet:s3a://bucket/x,s3a://{user}@bucket/y",
    "s3a:/{user}@bucket/x",
    "parquet:/data/people?{parameters}",
    "data/people;{parameters}",
    "hdfs:/people#{parameters}",
)
SIGNS = "abcXYZ0189:/_-.+%~!$@?#;&=,'\"{}()[]` \\*|"


@given(
    shape=st.sampled_from(SHAPES),
    before=st.text(SIGNS, max_size=6),
    after=st.text(SIGNS, max_size=6),
    key=st.text("abcdefgK_. -", min_size=1, max_size=12),
)
def test_no_planted_secret_is_ever_shown(shape, before, after, key):
    address = shape.format(user=f"{before}{SECRET}{after}", parameters=f"{key}={before}{SECRET}{after}")
    shown = published(address)
    assert SECRET not in shown
    assert published(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        f"originals 'parquet:s3a://KEY:{SECRET}@bucket/people': cannot be read",
        f"No suitable driver for jdbc:oracle:thin:user/{SECRET}@host:1521:sid",
        f"(jdbc:h2:mem:db;zz={SECRET})",
        f'url="https://host/x?zz={SECRET}"',
    ],
)
def test_addresses_within_a_text_are_cut(said):
    assert SECRET not in published_words(said)


def test_what_a_text_says_of_a_place_stays():
    said = "originals 'parquet:s3a://bucket/people': has no rows, see http://localhost:4040 and jdbc:staff"
    assert published_words(said) == said


TABLES = ["--originals", "a.b", "--avatars", "a.c", "--output", "/reports"]
MISTYPED = {
    "an address without its format": ["--originals", f"s3a://KEY:{SECRET}/b@bucket"],
    "a user part that is no known secret": ["--originals", f"s3a://{SECRET}@bucket/x"],
    "a parameter of an unknown scheme": ["--originals", f"jdbc2://host/x?zz={SECRET}"],
    "a path without its format": ["--originals", f"data/x?v=1&zz={SECRET}"],
    "an option that is misspelt": ["--orginals", f"parquet:s3a://{SECRET}@bucket/x"],
    "an option that there is not": ["--password", SECRET],
    "one with its value": [f"--password={SECRET}"],
    "one as other programs have it": [f"-p{SECRET}"],
    "a setting with a colon": [*TABLES, "--conf", f"spark.hadoop.fs.s3a.secret.key:{SECRET}"],
    "a setting's value alone": [*TABLES, "--conf", f"{SECRET}=="],
    "a switch with a value": [*TABLES, f"--debug={SECRET}"],
    "a database's url for a block": ["--originals", f"jdbc:unheardof:zz={SECRET}", *TABLES[2:]],
    "a file at an address": [*TABLES, "--config", f"s3a://{SECRET}@bucket/x.toml"],
    "a folder with one slash": [*TABLES, "--output", f"s3:/{SECRET}@bucket/x"],
}


@pytest.mark.parametrize(
    "parse", [settings.parse, project_settings.parse, k_sweep_settings.parse], ids=lambda one: one.__module__
)
@pytest.mark.parametrize("argv", MISTYPED.values(), ids=MISTYPED)
def test_no_refusal_of_a_command_line_repeats_what_may_be_secret(parse, argv):
    with pytest.raises(SettingsError) as refused:
        parse(argv)
    assert SECRET not in "\n".join(refused.value.problems)


def test_a_refusal_of_a_command_line_says_what_to_look_at():
    def said(*argv):
        with pytest.raises(SettingsError) as refused:
            settings.parse(argv)
        return "\n".join(refused.value.problems)

    assert "did you mean parquet:s3a://bucket/x?" in said("--originals", "s3a://bucket/x")
    assert said("--orginals", "a.b") == "unrecognized arguments: --orginals and 1 word more; did you mean --originals?"
    assert said("--where", "id", ">", "3") == "unrecognized arguments: 2 words without an option; see --help"
    assert "argument --debug: takes no value" in said("--debug=x")
    assert "argument --conf: KEY=VALUE is needed" in said("--conf", "spark.a")
    assert "argument --conf: a setting of Spark's has dots in its name" in said("--conf", "ncp=5")
