"""Access columns of Spark tables by their exact names, and hold a table with its name in messages."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.names import UNREAD, quoted


@dataclass(frozen=True)
class Side:
    """A table with its name in messages (`label`) and its key columns; CSV files have no column types."""

    table: DataFrame
    label: str
    key: tuple[str, ...]
    is_csv: bool = False

    def type_of(self, name: str) -> T.DataType:
        """Return the type of a column whose name occurs once."""
        return self.table.schema[name].dataType


def column(name: str) -> Column:
    """Return the column with exactly this name."""
    return F.col(quoted(name))


def type_of(table: DataFrame, name: str) -> str:
    """Return the name of a column's type in messages."""
    field = table.schema[name]
    return str(field.metadata.get(UNREAD) or field.dataType.simpleString())
