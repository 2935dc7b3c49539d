"""Results that take the places of earlier ones together: all of them, or none where anything fails."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cloaking.errors import OutputError

log = logging.getLogger(__name__)


class MoveRefusedError(Exception):
    """A store that gives what it holds no other name."""


class Store(Protocol):
    """Where results are, each under a name of its own."""

    def exists(self, name: str) -> bool:
        """Tell whether there is a result of this name."""

    def move(self, name: str, to: str) -> None:
        """Give a result another name, which none has yet.

        Raises:
            MoveRefusedError: the store cannot.
        """

    def copy(self, name: str, to: str) -> None:
        """Write a result once more, over another one if there is one."""

    def remove(self, name: str) -> str | None:
        """Remove a result; return in words what stands all the same, None if nothing does."""


@dataclass
class Result:
    """A result, written beside its place, which it takes when all the others are written.

    Where the store cannot move the earlier one away, that one is written over last of all.
    """

    store: Store
    label: str  # what messages call it
    writing: Callable[[str], contextlib.AbstractContextManager[None]]  # turns the store's errors into those of users
    place: str
    temporary: str
    earlier: str  # the name under which an earlier one waits
    folder: str | None = None  # that holds both of these names and is to be removed with them
    overwrite: bool = True
    reported: bool = False  # whether a line says what became of it where a later step fails
    written: bool = False  # whole, under its temporary name; while it is not, the place stays empty
    _aside: bool = field(default=False, init=False)  # an earlier one was there, and moving it away was begun
    _taken: bool = field(default=False, init=False)  # none was there, and taking the place was begun
    _last: bool = field(default=False, init=False)  # the earlier one cannot be moved and is written over last

    def set_aside(self) -> None:
        """Give the earlier result, if there is one, the name under which it waits.

        Raises:
            OutputError: there is one that may not be replaced, or the store fails.
        """
        with self.writing(self.label):
            if not self.store.exists(self.place):
                return
            if not self.overwrite:
                raise OutputError(f"{self.label}: exists already, made by another during this run; it stays")
            self._aside = True
            try:
                self.store.move(self.place, self.earlier)
            except MoveRefusedError as refused:
                self._aside, self._last = False, True
                log.warning("%s: cannot be moved (%s); it is written over after all else", self.label, refused)

    def take_place(self) -> None:
        """Give the result its own name, if it was written.

        Raises:
            OutputError: the store fails, or moves earlier results alone.
        """
        if not self.written or self._last:
            return
        with self.writing(self.label):
            self._taken = not self._aside
            try:
                self.store.move(self.temporary, self.place)
            except MoveRefusedError as refused:
                if self._aside:
                    raise OutputError(f"{self.label}: the store does not move it ({refused})") from refused
                log.warning("%s: is written twice, since the store cannot move it (%s)", self.label, refused)
                self.store.copy(self.temporary, self.place)

    def put_back(self) -> None:
        """Remove the result and put the earlier one back, however far it came; what this cannot do is logged.

        Cut off by a signal it can be called again: an earlier one that waits says that the place holds the new one.
        """
        store = self.store
        try:
            waits = self._aside and store.exists(self.earlier)
            stands = None
            if (waits or self._taken) and store.exists(self.place):
                if store.exists(self.temporary):
                    stands = store.remove(self.place)
                else:
                    store.move(self.place, self.temporary)  # removing it takes long
            if waits:
                store.move(self.earlier, self.place)
            self._taken = False
            left = self.folder or self.temporary
            if store.exists(left):
                stands = store.remove(left) or stands
            if self.reported and self.written:
                before = "; the earlier one stands as it was" if store.exists(self.place) else ""
                log.error("%s: %s, since a later step failed%s", self.label, stands or "removed again", before)
        except Exception as error:  # the store may be what failed; the failure itself is on its way
            found = type(error).__name__
            names = f"this run's at {self.temporary}, the earlier one at {self.earlier if self._aside else self.place}"
            log.error("%s: cannot be put back (%s); what is there: %s", self.label, found, names)

    def clear(self) -> None:
        """Remove the earlier result, or write over it where it could not be moved; all else is written.

        Raises:
            OutputError: it cannot be written over.
        """
        if self._last:
            copied = f"{self.label}: all else is written, and this run's rows are at {self.temporary}, but its place"
            with self.writing(copied):
                self.store.copy(self.temporary, self.place) if self.written else self.store.remove(self.place)
        for name in (self.earlier, self.temporary) if self.folder is None else (self.folder,):
            try:
                stands = self.store.remove(name) if self.store.exists(name) else None
            except Exception as error:  # the run is whole all the same
                stands = f"not removed ({type(error).__name__})"
            if stands is not None:
                log.warning("%s: %s is %s; remove it", self.label, name, stands)


@dataclass(frozen=True)
class Together:
    """Results that appear together, and what else is to be done where they do not."""

    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    results: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Take a result, before anything of it is written."""
        self.results.append(result)

    def end(self, whole: bool) -> None:
        """Remove the earlier results or put them back, from the last to the first; called again, go on."""
        while self.results:
            try:
                self.results[-1].clear() if whole else self.results[-1].put_back()
            except Exception:
                self.results.pop()
                raise
            self.results.pop()
        if not whole:
            self.undo.close()


@contextlib.contextmanager
def together() -> Iterator[Together]:
    """Take results beside their places, and let them appear when the block ends, not at all where anything fails.

    The earlier ones are set aside first, from the last to the first, and the new ones follow in their order: the last
    one stands only beside those of its own run. What waits aside is removed when the last one is in its place; until
    then any failure, a signal too, puts it back.

    Raises:
        OutputError: a result cannot be written.
    """
    found, whole = Together(), False
    try:
        try:
            yield found
            for result in reversed(found.results):
                result.set_aside()
            for result in found.results:
                result.take_place()
            whole = True
        finally:
            found.end(whole)
    finally:
        found.end(whole)  # what is left: a signal may have cut the first off, but no second one comes
