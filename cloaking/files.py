"""Texts <-> files in a local folder, or at an address that pyarrow opens (s3, gs, abfs, hdfs)."""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from pyarrow import ArrowException, fs

from cloaking.errors import InputError, OutputError


def check(folder: str) -> None:
    """Try that a folder takes files, or the nearest one above where it is not there; the file is removed again.

    Raises:
        OutputError: it takes none.
    """
    with _writing(folder, "the folder"):
        store, base = _store(folder)
        if isinstance(store, fs.LocalFileSystem):
            base = str(next(path for path in (Path(base), *Path(base).parents) if path.exists()))
        attempt = f"{base}/.{uuid.uuid4().hex}"
        store.open_output_stream(attempt).close()
        _delete(store, attempt)


def write(folder: str, name: str, text: str) -> str:
    """Write a file into a local folder or an address that pyarrow opens, under a temporary name first.

    Returns:
        Where the file stands.

    Raises:
        OutputError: the folder cannot be made or the file not written; an earlier file of that name is untouched.
    """
    with together(folder) as put:
        return put(name, text)


@contextlib.contextmanager
def together(folder: str) -> Iterator[Callable[[str, str | None], str]]:
    """Give a function that takes files by name and text, None for one that shall not be there; it returns their places.

    Each is written at once under a temporary name, which tells early where a store takes none. They appear when the
    block ends, and not at all where it fails. The last one says that they are whole: that of an earlier run goes before
    any other appears, so that it never stands beside newer ones.

    Raises:
        OutputError: the folder cannot be made, or a file not written; earlier files are untouched.
    """
    with _writing(folder, "the folder"):
        store, base = _store(folder)
        store.create_dir(base, recursive=True)
    temporaries: dict[str, str | None] = {}

    def put(name: str, text: str | None) -> str:
        temporaries[name] = None if text is None else f"{base}/.{name}.{uuid.uuid4().hex}"
        if text is not None:
            with _writing(folder, name), store.open_output_stream(temporaries[name]) as stream:
                stream.write(text.encode())
        return f"{folder.rstrip('/')}/{name}"

    try:
        yield put
        if len(temporaries) > 1:
            _delete(store, f"{base}/{next(reversed(temporaries))}")
        for name, temporary in temporaries.items():
            if temporary is None:
                _delete(store, f"{base}/{name}")
            else:
                with _writing(folder, name):
                    store.move(temporary, f"{base}/{name}")
    finally:
        for temporary in temporaries.values():
            if temporary is not None:
                _delete(store, temporary)  # it is not there if all went well


def read(path: str, option: str) -> str:
    """Return the text of a local file, or of an address that pyarrow opens.

    Raises:
        InputError: there is no such file, or it is not UTF-8.
    """
    folder, _, name = path.rpartition("/")
    try:
        store, base = _store(folder or ("/" if path.startswith("/") else "."))
        with store.open_input_stream(f"{base}/{name}") as stream:
            return str(stream.read().decode())
    except (OSError, ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{option} {path}: cannot be read ({_reason(error)})") from error


@contextlib.contextmanager
def _writing(folder: str, name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ArrowException) as error:
        raise OutputError(f"--output {folder}: {name} cannot be written ({_reason(error)})") from error


def _delete(store: fs.FileSystem, path: str) -> None:
    with contextlib.suppress(OSError, ArrowException):  # it may not be there
        store.delete_file(path)


def _store(folder: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a folder or an address, and the path on it."""
    if "://" in folder:
        store, base = fs.FileSystem.from_uri(folder)
        return store, base.rstrip("/")
    return fs.LocalFileSystem(), str(Path(folder).absolute())


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
