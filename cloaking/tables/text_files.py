"""Texts <-> files in a local folder, or at an address that pyarrow opens (s3, gs, abfs, hdfs)."""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import ArrowException, fs

from cloaking.addresses import published
from cloaking.errors import InputError, OutputError
from cloaking.tables import replacing
from cloaking.tables.replacing import MoveRefusedError, Result, Together

Put = Callable[[str, str | None], str]


@dataclass(frozen=True)
class Files:
    """Files and folders of one store, by their paths."""

    store: fs.FileSystem

    def exists(self, name: str) -> bool:
        """Tell whether there is a file or a folder of this path."""
        return bool(self.store.get_file_info(name).type != fs.FileType.NotFound)

    def move(self, name: str, to: str) -> None:
        """Give a file or folder another path.

        Raises:
            MoveRefusedError: the store knows no moving.
        """
        try:
            self.store.move(name, to)
        except NotImplementedError as error:
            raise MoveRefusedError(type(error).__name__) from error

    def copy(self, name: str, to: str) -> None:
        """Copy a file."""
        self.store.copy_file(name, to)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        if self.store.get_file_info(name).type == fs.FileType.Directory:
            self.store.delete_dir(name)
        else:
            self.store.delete_file(name)


def check(folder: str) -> None:
    """Try that a folder takes files and moves them, or the nearest one above where it is not there; none is left.

    Raises:
        OutputError: it takes none.
    """
    with _writing(f"--output {published(folder)}: the folder"):
        store, base = _store(folder)
        if isinstance(store, fs.LocalFileSystem):
            base = str(next(path for path in (Path(base), *Path(base).parents) if path.exists()))
        attempt = f"{base}/.{uuid.uuid4().hex}"
        store.open_output_stream(attempt).close()
        try:
            with contextlib.suppress(MoveRefusedError):
                Files(store).move(attempt, f"{attempt}.moved")
        finally:
            for path in (attempt, f"{attempt}.moved"):
                with contextlib.suppress(OSError, ArrowException):  # one of them is not there
                    store.delete_file(path)


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
def together(folder: str) -> Iterator[Put]:
    """Give the function of `into` for files that appear when the block ends, and not at all where it fails.

    Raises:
        OutputError: the folder cannot be made, or a file not written; earlier files are as they were.
    """
    with replacing.together() as results:
        yield into(folder, results)


def into(folder: str, results: Together) -> Put:
    """Return a function that takes a file's name and text (None: it shall not be there) and returns its place.

    Each is written at once under a temporary name, which tells early where a store takes none, and appears with the
    other results. Stopped for good between two moves, `.NAME.<32 digits>.earlier` is the earlier file.

    Raises:
        OutputError: the folder cannot be made; by the function, a file not written.
    """
    with _writing(f"--output {published(folder)}: the folder"):
        store, base = _store(folder)
        store.create_dir(base, recursive=True)

    def put(name: str, text: str | None) -> str:
        label, temporary = f"--output {published(folder)}: {name}", f"{base}/.{name}.{uuid.uuid4().hex}"
        result = Result(Files(store), label, _writing, f"{base}/{name}", temporary, f"{temporary}.earlier")
        results.add(result)
        if text is not None:
            with _writing(label), store.open_output_stream(temporary) as stream:
                stream.write(text.encode())
            result.written = True
        return f"{published(folder).rstrip('/')}/{name}"

    return put


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
        raise InputError(f"{option} {published(path)}: cannot be read ({_reason(error)})") from error


@contextlib.contextmanager
def _writing(label: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ArrowException) as error:
        raise OutputError(f"{label} cannot be written ({_reason(error)})") from error


def _store(folder: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a folder or an address, and the path on it."""
    if "://" in folder:
        store, base = fs.FileSystem.from_uri(folder)
        return store, base.rstrip("/")
    return fs.LocalFileSystem(), str(Path(folder).absolute())


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
