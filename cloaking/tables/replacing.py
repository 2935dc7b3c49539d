"""Replace earlier results by new ones together: all of them, or none if anything fails."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cloaking.errors import OutputError

log = logging.getLogger(__name__)


class MoveRefusedError(Exception):
    """The store cannot rename what it holds."""


class Store(Protocol):
    """A place that holds results under unique names."""

    def exists(self, name: str) -> bool:
        """Return whether there is a result of this name."""

    def move(self, name: str, to: str) -> None:
        """Rename a result to a name that is not in use.

        Raises:
            MoveRefusedError: the store cannot.
        """

    def copy(self, name: str, to: str) -> None:
        """Copy a result to another name and overwrite what is there."""

    def remove(self, name: str) -> str | None:
        """Remove a result; return a phrase for the log that says what could not be removed, or None."""


@dataclass
class Result:
    """A result that is written under a temporary name and moved to its place when all results are written.

    If the store cannot move the earlier result away, it is overwritten after all other results are in place.
    """

    store: Store
    label: str  # its name in messages
    writing: Callable[[str], contextlib.AbstractContextManager[None]]  # turns the store's errors into OutputError
    place: str
    temporary: str
    earlier: str  # the name under which the earlier result is kept meanwhile
    folder: str | None = None  # holds the two names above and is removed with them
    overwrite: bool = True
    reported: bool = False  # whether to log what happened to it if a later step fails
    written: bool = False  # completely, under its temporary name; until then nothing is moved to its place
    _aside: bool = field(default=False, init=False)  # there was an earlier result, and moving it away has begun
    _taken: bool = field(default=False, init=False)  # there was none, and moving this one to its place has begun
    _last: bool = field(default=False, init=False)  # the earlier result cannot be moved and is overwritten last

    def set_aside(self) -> None:
        """Move the earlier result, if there is one, out of its place.

        Raises:
            OutputError: it exists and may not be replaced, or the store fails.
        """
        with self.writing(self.label):
            if not self.store.exists(self.place):
                return
            if not self.overwrite:
                raise OutputError(f"{self.label}: exists already, created by another process; it is unchanged")
            self._aside = True
            try:
                self.store.move(self.place, self.earlier)
            except MoveRefusedError as refused:
                self._aside, self._last = False, True
                log.warning("%s: cannot be moved (%s); it is overwritten after all other results", self.label, refused)

    def take_place(self) -> None:
        """Move the result to its place, if it was written.

        Raises:
            OutputError: the store fails, or it moved the earlier result but cannot move this one.
        """
        if not self.written or self._last:
            return
        with self.writing(self.label):
            self._taken = not self._aside
            try:
                self.store.move(self.temporary, self.place)
            except MoveRefusedError as refused:
                if self._aside:
                    raise OutputError(f"{self.label}: the store cannot move it ({refused})") from refused
                log.warning("%s: is written twice, since the store cannot move it (%s)", self.label, refused)
                self.store.copy(self.temporary, self.place)

    def put_back(self) -> None:
        """Remove the result and put the earlier one back, however far the replacement got; failures are logged.

        If a signal interrupts it, it can be called again: while `earlier` exists, `place` holds the new result.
        """
        store = self.store
        try:
            waits = self._aside and store.exists(self.earlier)
            remains = None
            if (waits or self._taken) and store.exists(self.place):
                if store.exists(self.temporary):
                    remains = store.remove(self.place)
                else:
                    store.move(self.place, self.temporary)  # fast, unlike removing it
            if waits:
                store.move(self.earlier, self.place)
            self._taken = False
            left = self.folder or self.temporary
            if store.exists(left):
                remains = store.remove(left) or remains
            if self.reported and self.written:
                before = "; the earlier one is unchanged" if store.exists(self.place) else ""
                log.error("%s: %s, since a later step failed%s", self.label, remains or "removed again", before)
        except Exception as error:  # the store itself may be what failed, and that failure is raised already
            found = type(error).__name__
            earlier = self.earlier if self._aside else self.place
            places = f"this run's is at {self.temporary}, the earlier one is at {earlier}"
            log.error("%s: cannot be put back (%s); %s", self.label, found, places)

    def clear(self) -> None:
        """Remove the earlier result, or overwrite it if it could not be moved; all other results are in place.

        Raises:
            OutputError: it cannot be overwritten.
        """
        if self._last:
            copied = f"{self.label}: all else is written, and this run's rows are at {self.temporary}, but its place"
            with self.writing(copied):
                self.store.copy(self.temporary, self.place) if self.written else self.store.remove(self.place)
        for name in (self.earlier, self.temporary) if self.folder is None else (self.folder,):
            try:
                remains = self.store.remove(name) if self.store.exists(name) else None
            except Exception as error:  # the run's results are complete all the same
                remains = f"not removed ({type(error).__name__})"
            if remains is not None:
                log.warning("%s: %s is %s; remove it", self.label, name, remains)


@dataclass(frozen=True)
class Together:
    """Results that are replaced together, and further callbacks in case this fails."""

    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    results: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Register a result, before any of it is written."""
        self.results.append(result)

    def end(self, succeeded: bool) -> None:
        """Remove the earlier results, or put them back, in reverse order; a second call continues the first."""
        while self.results:
            try:
                self.results[-1].clear() if succeeded else self.results[-1].put_back()
            except Exception:
                self.results.pop()
                raise
            self.results.pop()
        if not succeeded:
            self.undo.close()


@contextlib.contextmanager
def together() -> Iterator[Together]:
    """Collect results written under temporary names, and move all to their places when the block ends without error.

    First the earlier results are moved away in reverse order, then the new ones are moved in, in order: where the last
    result is present, all others are of the same run. The earlier results are removed once the last new one is in its
    place; until then any failure, or a signal, puts them back.

    Raises:
        OutputError: a result cannot be written.
    """
    found, succeeded = Together(), False
    try:
        try:
            yield found
            for result in reversed(found.results):
                result.set_aside()
            for result in found.results:
                result.take_place()
            succeeded = True
        finally:
            found.end(succeeded)
    finally:
        found.end(succeeded)  # finishes if a signal interrupted the first call; no second signal comes
