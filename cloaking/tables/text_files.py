"""Read and write text files in a local folder, or at an address that pyarrow opens (s3, gs, abfs, hdfs)."""

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
        """Return whether there is a file or a folder at this path."""
        return bool(self.store.get_file_info(name).type != fs.FileType.NotFound)

    def move(self, name: str, to: str) -> None:
        """Move a file or folder to another path.

        Raises:
            MoveRefusedError: the store cannot move files.
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
    """Check that files can be written to a folder, or to its nearest existing parent, by writing and removing one.

    Raises:
        OutputError: no file can be written.
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
        The file's path or address.

    Raises:
        OutputError: the folder or the file cannot be written; an earlier file of that name is unchanged.
    """
    with together(folder) as put:
        return put(name, text)


@contextlib.contextmanager
def together(folder: str) -> Iterator[Put]:
    """Yield the function of `into`; the files appear when the block ends, and none of them if it fails.

    Raises:
        OutputError: the folder or a file cannot be written; earlier files are unchanged.
    """
    with replacing.together() as results:
        yield into(folder, results)


def into(folder: str, results: Together) -> Put:
    """Return a function that takes a file's name and text (None removes the file) and returns the file's place.

    A file is written immediately under a temporary name, so that a store that refuses it fails early, and appears with
    the other results. If the process is killed between two moves, `.NAME.<32 digits>.earlier` is the earlier file.

    Raises:
        OutputError: the folder cannot be created; the function raises it if a file cannot be written.
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
