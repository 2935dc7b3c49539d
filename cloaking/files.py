"""Texts <-> files in a local folder, or at an address that pyarrow opens (s3, gs, abfs, hdfs)."""

import contextlib
import os
import uuid
from pathlib import Path

from pyarrow import ArrowException, fs

from cloaking.errors import InputError, OutputError


def write(folder: str, name: str, text: str) -> str:
    """Write a file into a local folder or an address that pyarrow opens, under a temporary name first.

    Returns:
        Where the file stands.

    Raises:
        OutputError: the folder cannot be made or the file not written; an earlier file of that name is untouched.
    """
    try:
        store, base = _store(folder)
        target, temporary = f"{base}/{name}", f"{base}/.{name}.{uuid.uuid4().hex}"
        store.create_dir(base, recursive=True)
        try:
            with store.open_output_stream(temporary) as stream:
                stream.write(text.encode())
            store.move(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError, ArrowException):
                store.delete_file(temporary)
            raise
    except (OSError, ArrowException) as error:
        raise OutputError(f"--output {folder}: {name} cannot be written ({_reason(error)})") from error
    return f"{folder.rstrip('/')}/{name}"


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


def remove(folder: str, name: str) -> None:
    """Remove a file of an earlier run, if it is there, so that it does not stand beside newer ones."""
    store, base = _store(folder)
    with contextlib.suppress(OSError, ArrowException):
        store.delete_file(f"{base}/{name}")


def _store(folder: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a folder or an address, and the path on it."""
    if "://" in folder:
        store, base = fs.FileSystem.from_uri(folder)
        return store, base.rstrip("/")
    return fs.LocalFileSystem(), str(Path(folder).absolute())


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
