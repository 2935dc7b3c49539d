"""Bad places for counts, history and report: inputs, other tables, nowhere, a full disk."""

import contextlib
import resource
import subprocess

import pytest
from bad_input import Refused, assert_refused, link_table, originals, parameters, parquet_bytes

BAD_RESULTS = {
    "counts that exist": Refused(
        files={"n/part.parquet": originals()},
        arguments="--counts parquet:{}/n",
        problems=["counts 'parquet: | n' | exists | --overwrite"],
    ),
    "counts over the originals": Refused(
        arguments="--counts parquet:{}/o.parquet --overwrite",
        problems=["counts | o.parquet' | one of the tables to read"],
    ),
    "counts over the avatars by another way": Refused(
        files={"f/x": b""},
        arguments="--counts parquet:{}/f/../a.parquet --overwrite",
        problems=["counts | a.parquet' | one of the tables to read"],
    ),
    "counts over the link": Refused(
        files={"l.parquet": link_table()},
        arguments="--link parquet:{}/l.parquet --counts parquet:{}/l.parquet --overwrite",
        problems=["counts | l.parquet' | one of the tables to read"],
    ),
    "counts over the folder of an input": Refused(
        files={"f/o.parquet": originals()},
        arguments="--originals parquet:{}/f/o.parquet --counts parquet:{}/f --overwrite",
        problems=["counts | f' | one of the tables to read"],
    ),
    "counts within an input": Refused(
        files={"f/o.parquet": originals()},
        arguments="--originals parquet:{}/f --counts parquet:{}/f/n",
        problems=["counts | f/n' | one of the tables to read"],
    ),
    "a report within an input": Refused(
        files={"f/o.parquet": originals()},
        arguments="--originals parquet:{}/f --output {}/f",
        problems=["--output | f | one of the tables to read"],
    ),
    "counts through a file": Refused(
        files={"f": b""}, arguments="--counts parquet:{}/f/n", problems=["counts | f/n' | cannot be written"]
    ),
    "counts of a format that nobody has": Refused(
        arguments="--counts nosuch:{}/n", problems=["counts 'nosuch: | cannot be written"]
    ),
    "counts as lines of text": Refused(arguments="--counts text:{}/n", problems=["counts 'text: | cannot be written"]),
    "counts in the report's folder": Refused(
        arguments="--counts parquet:{}/report", problems=["counts | report' | --output"]
    ),
    "counts in the history": Refused(
        arguments="--counts parquet:{}/h --history parquet:{}/h", problems=["counts | h' | history"]
    ),
    "a history as CSV": Refused(arguments="--history csv:{}/h", problems=["history 'csv: | parquet:"]),
    "a history through a file": Refused(
        files={"f": b""},
        arguments="--history parquet:{}/f/h --counts parquet:{}/n",
        problems=["history | f/h' | cannot be"],
    ),
    "a history that is a file": Refused(
        files={"h": parquet_bytes(originals())},
        arguments="--history parquet:{}/h --counts parquet:{}/n",
        problems=["history | h' | is another table"],
    ),
    "a history over the originals": Refused(
        files={"f/o.parquet": originals()},
        arguments="--originals parquet:{}/f --history parquet:{}/f",
        problems=["history | f' | one of the tables to read"],
    ),
    "a history that is another table": Refused(
        files={"h/o.parquet": originals()}, arguments="--history parquet:{}/h", problems=["history | h'"]
    ),
    "a history that is another table of the catalog": Refused(
        arguments="--history victim", problems=["history 'victim'"]
    ),
    "a report through a file": Refused(
        files={"f": b""},
        arguments="--output {}/f/r --counts parquet:{}/n --history parquet:{}/h",
        problems=["--output | f/r"],
    ),
    "a report in a store that nobody has": Refused(
        arguments="--output nosuch://a/b --counts parquet:{}/n", problems=["--output nosuch://a/b"]
    ),
    "a report where the system lets nobody write": Refused(
        arguments="--output /proc/cloaking --counts parquet:{}/n", problems=["--output /proc/cloaking"]
    ),
    "a report on a full device": Refused(
        arguments="--output /dev/full/r --counts parquet:{}/n", problems=["--output /dev/full/r"]
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_RESULTS))
def test_bad_places_for_results_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)


@contextlib.contextmanager
def full_disk(folder):
    """Mount a disk of 64 KiB that is full except for a page or two."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (folder / "filling").write_bytes(b"x" * 60 * 1024)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # Spark may still hold a file of it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--output {}/disk/report", "--output"),
        ("--output {}/disk/report --counts parquet:{}/n --history parquet:{}/h", "--output"),
        ("--counts parquet:{}/disk/n", "counts"),
        ("--counts csv:{}/disk/n", "counts"),
        ("--history parquet:{}/disk/h", "history"),
    ],
)
def test_a_full_disk_is_refused_and_nothing_is_left(run_case, tmp_path, arguments, words):
    with full_disk(tmp_path / "disk"):
        assert_refused(run_case, Refused(arguments=arguments, problems=[words]))


def test_a_report_that_exceeds_the_limit_of_a_file_is_refused_and_nothing_is_left(run_case):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        assert_refused(run_case, Refused(arguments="--counts parquet:{}/n", problems=["--output"]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
