"""The command that projects: raw tables in, projected tables, model.json and an exit code out; for jobs/project.py."""

import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloaking.errors import CloakingError, InputError
from cloaking.project_config import Settings, parse
from cloaking.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloaking.figures import Notice
    from cloaking.model import Model

log = logging.getLogger("cloaking")

DONE, BUG, WRONG = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Project once and return the exit code: 0 done, 1 a bug, 2 wrong arguments or data."""
    start = time.monotonic()
    try:
        settings = parse(argv)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        log.setLevel(logging.INFO)
        with session(settings.conf) as spark:
            _project(spark, settings)
        log.info("done: seconds=%.1f", time.monotonic() - start)
        return DONE
    except CloakingError as error:
        for problem in error.problems:
            print(f"project: {problem}", file=sys.stderr)
        return WRONG
    except Exception:
        traceback.print_exc()
        return BUG


def _project(spark: "SparkSession", settings: Settings) -> None:
    """Read, fit or load, check, write: originals, avatars, model.json; a failure removes what was written."""
    from cloaking import projection, tables

    for ref in filter(None, (settings.projected_originals, settings.projected_avatars)):
        tables.check_new(spark, ref, settings.overwrite)
    with tables.reading("originals or avatars"), contextlib.ExitStack() as undo:
        originals, avatars, model = _spaces(spark, settings)
        keys = ((*settings.id, *settings.keep), settings.made_from or settings.id)
        results = (settings.projected_originals, settings.projected_avatars)
        for table, keep, result in zip((originals, avatars), keys, results, strict=True):
            if table is None or result is None:
                continue
            start = time.monotonic()
            coordinates = projection.transform(table, model, keep=keep, unseen=settings.unseen)
            tables.write(coordinates, result, settings.overwrite)
            undo.callback(_undo, spark, result)
            log.info("written: %s seconds=%.1f", result, time.monotonic() - start)
        if settings.output is not None:
            log.info("written: %s", tables.write_text(settings.output, "model.json", model.to_json()))
        undo.pop_all()


def _spaces(spark: "SparkSession", settings: Settings) -> "tuple[DataFrame | None, DataFrame | None, Model]":
    """Return the tables, read and checked, and the model, loaded or fitted on the originals.

    Of CSV files keys, categories and columns that are not used stay text.
    """
    from cloaking import projection, tables
    from cloaking.model import Model

    model = None if settings.model is None else Model.from_json(_read(settings.model), f"--model {settings.model}")
    where = (settings.where, settings.where_avatars or settings.where)
    keys = (settings.id, settings.made_from or settings.id)

    def read(role: str, ref: str, where: str | None, text: Sequence[str]) -> "DataFrame":
        return tables.read(spark, ref, role, where=where, text=text, by_position=settings.by_position)

    originals: DataFrame | None = None
    avatars: DataFrame | None = None
    if settings.originals is not None:
        used = (*settings.categorical, *settings.drop) if model is None else _as_text(model)
        originals = read("originals", settings.originals, where[0], (*keys[0], *settings.keep, *used))
        label = f"originals '{settings.originals}'"
        if model is None:
            assert settings.ncp is not None
            model = projection.fit(
                originals,
                settings.ncp,
                method=settings.method,
                continuous=settings.continuous,
                categorical=settings.categorical,
                drop=settings.drop,
                keys=(*settings.id, *settings.keep),
                missing_continuous=settings.missing_continuous,
                missing_categorical=settings.missing_categorical,
                label=label,
            )
            _warn(model.warnings)
        else:
            _warn(projection.check(originals, model, unseen=settings.unseen, label=label))
    assert model is not None
    if settings.avatars is not None:
        avatars = read("avatars", settings.avatars, where[1], (*keys[1], *settings.drop, *_as_text(model)))
        _warn(projection.check(avatars, model, unseen=settings.unseen, label=f"avatars '{settings.avatars}'"))
    if originals is not None and avatars is not None and not settings.by_position:
        csv = [tables.is_csv(str(ref)) for ref in (settings.originals, settings.avatars)]
        originals, avatars = tables.match_key_types(originals, keys[0], csv[0], avatars, keys[1], csv[1])
    return originals, avatars, model


def _as_text(model: "Model") -> tuple[str, ...]:
    """Return the columns that stay text in CSV files: categories, and those that the model does not use."""
    return (*(each.name for each in model.categorical), *model.constant)


def _warn(notices: "tuple[Notice, ...]") -> None:
    for notice in notices:
        log.warning("%s: %s", notice.code, notice.message)


def _undo(spark: "SparkSession", ref: str) -> None:
    from cloaking import tables

    log.error("%s", tables.remove(spark, ref))


def _read(path: str) -> str:
    """Return the text of a local file, or of an address that pyarrow opens.

    Raises:
        InputError: there is no such file, or it is not text.
    """
    from pyarrow import ArrowException, fs

    try:
        store, name = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
        with store.open_input_stream(name) as stream:
            return str(stream.read().decode())
    except (OSError, ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"--model {path}: cannot be read ({type(error).__name__})") from error
