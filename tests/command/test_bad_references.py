"""Bad references and conditions: SQL where a table is expected, passwords, databases, conditions, groups."""

import pytest
from bad_input import Refused, assert_refused, originals, parameters

DATABASE = "url = 'jdbc:postgresql://127.0.0.1:1/x'\ntable = 't'\n"
FROM_DATABASE = "--config {}/c.toml --originals jdbc:staff"

BAD_REFERENCES = {
    **{
        f"a reference like {ref}": Refused(arguments=f"--originals '{ref}'", problems=["originals | cannot be read"])
        for ref in (
            "t; DROP TABLE victim",
            "(select 1)",
            "(select * from victim)",
            "`victim`; drop table victim",
            "victim where 1=1",
            "`",
            "a..b",
            "a.b.c.d",
            "nosuch",
            "parquet:",
            "range(10)",
            "C:\\o.parquet",
        )
    },
    "counts that are SQL": Refused(
        arguments="--counts 't; DROP TABLE victim'", problems=["counts 't; DROP TABLE victim' | is not a table name"]
    ),
    "history that is SQL": Refused(arguments="--history '(select 1)'", problems=["history '(select 1)'"]),
    "counts with a comment": Refused(arguments="--counts 'new -- x'", problems=["counts 'new -- x'"]),
    "counts in backticks that do not match": Refused(
        arguments="--counts '`t'", problems=["counts '`t' | is not a table name"]
    ),
    **{
        f"a password in {option}": Refused(
            arguments=f"{option} 'parquet:s3://key:hunter7391@bucket/x'",
            problems=[f"{option} | password | credentials provider"],
        )
        for option in ("--originals", "--avatars", "--link", "--counts", "--history", "--output")
    },
    "a signature in an address": Refused(
        arguments="--originals 'parquet:https://a/b?sig=hunter7391'", problems=["--originals | password or a key"]
    ),
    "jdbc without a file": Refused(arguments="--originals jdbc:staff", problems=["jdbc:NAME | [jdbc.NAME] | --config"]),
    "jdbc without its block": Refused(
        files={"c.toml": f"[jdbc.other]\n{DATABASE}"},
        arguments=FROM_DATABASE,
        problems=["c.toml | [jdbc.staff] | other"],
    ),
    "jdbc without table and url": Refused(
        files={"c.toml": "[jdbc.staff]\nuser = 'u'\n"},
        arguments=FROM_DATABASE,
        problems=["jdbc.staff | url is missing", "jdbc.staff | table is missing"],
    ),
    "a password in a jdbc address": Refused(
        files={"c.toml": f"[jdbc.staff]\n{DATABASE}".replace("//", "//u:hunter7391@")},
        arguments=FROM_DATABASE,
        problems=["jdbc.staff | url | password_env"],
    ),
    "a password in the file": Refused(
        files={"c.toml": f"[jdbc.staff]\n{DATABASE}password = 'hunter7391'\n"},
        arguments=FROM_DATABASE,
        problems=["jdbc.staff | 'password' | password_env"],
    ),
    "jdbc without a driver": Refused(
        files={"c.toml": f"[jdbc.staff]\n{DATABASE}driver = 'org.nosuch.Driver'\n"},
        arguments=FROM_DATABASE,
        problems=["originals 'jdbc:staff' | JDBC driver org.nosuch.Driver | spark.jars"],
    ),
    "jdbc with a variable that is not set": Refused(
        files={"c.toml": f"[jdbc.staff]\n{DATABASE}password_env = 'CLOAKING_NO_SUCH'\n"},
        arguments=FROM_DATABASE,
        problems=["jdbc:staff' | CLOAKING_NO_SUCH | not set"],
    ),
    "jdbc with a password file that is not there": Refused(
        files={"c.toml": f"[jdbc.staff]\n{DATABASE}password_file = '/no/such'\n"},
        arguments=FROM_DATABASE,
        problems=["jdbc:staff' | /no/such | cannot be read"],
    ),
    "counts into a database": Refused(arguments="--counts jdbc:staff", problems=["counts 'jdbc:staff' | parquet:"]),
}

BAD_CONDITIONS = {
    "a condition that does not parse": Refused(
        arguments="--where 'id >'",
        problems=["originals | o.parquet' | id > | PARSE", "avatars | a.parquet' | id > | PARSE"],
    ),
    "a condition on no column": Refused(
        arguments="--where 'ward = 1'",
        problems=["o.parquet' | ward = 1 | UNRESOLVED_COLUMN", "a.parquet' | ward = 1 | UNRESOLVED_COLUMN"],
    ),
    "a condition that is no condition": Refused(
        arguments="--where-avatars x", problems=['a.parquet\' | "x" | FILTER_NOT_BOOLEAN']
    ),
    "a condition with a statement": Refused(
        arguments="--where '1=1; drop table victim'", problems=["o.parquet' | PARSE", "a.parquet' | PARSE"]
    ),
    "a condition of an aggregate": Refused(
        arguments="--where-avatars 'count(x) > 1'", problems=["a.parquet' | count(x)"]
    ),
    "a condition that keeps no row": Refused(
        arguments="--where 'id < 0'", problems=["o.parquet' | no rows | --where", "a.parquet' | no rows | --where"]
    ),
    "a condition that keeps no avatar": Refused(
        arguments="--where-avatars 'id < 0'", problems=["a.parquet' | no rows | --where"]
    ),
    "a condition on the avatars only": Refused(
        arguments="--where-avatars 'x < 739175'", problems=["a.parquet' | 2 of 4 originals have no avatar"]
    ),
    "a condition of several lines": Refused(
        files={"c.toml": "where = '''\nid > 1\nand and'''\n"},
        arguments="--config {}/c.toml",
        problems=["o.parquet' | UNRESOLVED", "a.parquet' | UNRESOLVED"],
    ),
    "a condition that casts text": Refused(
        files={"o.parquet": originals(ward=["7391x"] * 4)},
        arguments="--where 'int(ward) = 1' --where-avatars 'x > 0'",
        problems=["originals | o.parquet' | cannot be read | CAST"],
    ),
    "--group-by a missing column": Refused(
        arguments="--group-by ward", problems=["o.parquet' | 'ward' | missing | --group-by"]
    ),
    "--group-by a column of another case": Refused(
        files={"o.parquet": originals(Ward=["a"] * 4)},
        arguments="--group-by ward",
        problems=["o.parquet' | 'ward' | missing | 'Ward'"],
    ),
    "a gate on a group that is not there": Refused(
        files={
            "o.parquet": originals(ward=["a"] * 4),
            "c.toml": "group_by = 'ward'\n" + "gates = [{ metric = 'hidden_rate', at_least = 1, group = 'b' }]",
        },
        arguments="--config {}/c.toml",
        problems=["gates | 'b' | 'ward' | (other)"],
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_REFERENCES))
def test_bad_references_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)


@pytest.mark.parametrize("case", parameters(BAD_CONDITIONS))
def test_bad_conditions_and_groups_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
