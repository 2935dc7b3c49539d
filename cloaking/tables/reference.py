"""Parse the references of tables, and hold what opens a database's table; standard library only."""

import re
from dataclasses import dataclass

from cloaking.addresses import published
from cloaking.errors import OutputError
from cloaking.names import parts, quoted

FOLDER_SIGN = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")  # written as three bytes in a partition's folder
_FORMAT_AND_PATH = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)


class Ref(str):
    """A table's reference, parsed once: `catalog.schema.table`, `format:path` or, of a database, `jdbc:NAME`.

    Attributes:
        kind: the format of the files, or `jdbc`; None for a table of a catalog.
        path: of the files, or the NAME of the database's block; None for a table of a catalog.
    """

    __slots__ = ("kind", "path")
    kind: str | None
    path: str | None

    def __new__(cls, text: str) -> "Ref":
        """Parse a reference; one that is parsed already is returned as it is."""
        if isinstance(text, Ref):
            return text
        ref = super().__new__(cls, text)
        match = _FORMAT_AND_PATH.fullmatch(text)
        ref.kind, ref.path = match.groups() if match is not None else (None, None)
        return ref

    @property
    def is_csv(self) -> bool:
        """Whether it names CSV files, which carry no types."""
        return self.kind == "csv"

    def label(self, role: str) -> str:
        """Return what messages call the table in this role."""
        return f"{role} '{published(self)}'"

    def name(self, role: str) -> str:
        """Return the name of a catalog's table with each part in backticks, which SQL reads in one way only.

        Raises:
            OutputError: it is no name.
        """
        found = parts(self)
        if ".".join(found) != self:
            raise OutputError(f"{self.label(role)}: is no name of a table; write catalog.schema.table or format:path")
        return ".".join(part if part.startswith("`") else quoted(part) for part in found)


@dataclass(frozen=True)
class Connection:
    """A table of a database, as a block [jdbc.NAME] names it; the password itself is read where the table is."""

    url: str
    table: str
    user: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    driver: str | None = None
    partition_column: str | None = None
    lower_bound: str | None = None
    upper_bound: str | None = None
    partitions: int | None = None
    fetch_size: int = 10_000
