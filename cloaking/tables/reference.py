"""Parse table references and describe database connections; standard library only."""

import re
from dataclasses import dataclass

from cloaking.addresses import published
from cloaking.errors import OutputError
from cloaking.names import parts, quoted

# Spark writes these characters as %XX in the name of a partition's folder.
FOLDER_SIGN = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
_FORMAT_AND_PATH = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)


class Ref(str):
    """A parsed table reference: `catalog.schema.table`, `format:path` or, for a database, `jdbc:NAME`.

    Attributes:
        kind: the format of the files, or `jdbc`; None for a catalog's table.
        path: the path of the files, or the NAME of the database's block; None for a catalog's table.
    """

    __slots__ = ("kind", "path")
    kind: str | None
    path: str | None

    def __new__(cls, text: str) -> "Ref":
        """Parse a reference; return an already parsed one unchanged."""
        if isinstance(text, Ref):
            return text
        ref = super().__new__(cls, text)
        match = _FORMAT_AND_PATH.fullmatch(text)
        ref.kind, ref.path = match.groups() if match is not None else (None, None)
        return ref

    @property
    def is_csv(self) -> bool:
        """Whether the reference names CSV files, which carry no types."""
        return self.kind == "csv"

    def label(self, role: str) -> str:
        """Return the table's name in messages: its role and its reference."""
        return f"{role} '{published(self)}'"

    def name(self, role: str) -> str:
        """Return the name of a catalog's table with each part in backticks, which is unambiguous in SQL.

        Raises:
            OutputError: the reference is not a table name.
        """
        found = parts(self)
        if ".".join(found) != self:
            raise OutputError(f"{self.label(role)}: is not a table name; write catalog.schema.table or format:path")
        return ".".join(part if part.startswith("`") else quoted(part) for part in found)


@dataclass(frozen=True)
class Connection:
    """A database table as a block [jdbc.NAME] describes it; the password itself is read only with the table."""

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
