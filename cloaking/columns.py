"""Columns of Spark tables by their exact names, and the tables as messages call them."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.names import UNREAD, quoted


@dataclass(frozen=True)
class Side:
    """A table as messages call it, with the columns of its key; a CSV file's columns have no types of their own."""

    table: DataFrame
    label: str
    key: tuple[str, ...]
    is_csv: bool = False

    def type_of(self, name: str) -> T.DataType:
        """Return the type of a column that occurs once."""
        return self.table.schema[name].dataType


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def type_of(table: DataFrame, name: str) -> str:
    """Return what messages call the type of a column."""
    field = table.schema[name]
    return str(field.metadata.get(UNREAD) or field.dataType.simpleString())
