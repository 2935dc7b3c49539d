"""Count closer, tied and cloaking per original, by running the kernel in Spark's tasks.

Either the avatars' index is built once on the driver and sent to every machine (broadcast), or space is cut into
cells and each task counts within one (partition). Both give exactly the same counts.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cloaking.spark import broadcast, partition
from cloaking.spark.broadcast import Counted
from cloaking.spark.plan import Plan


def count(plan: Plan, linked: DataFrame) -> Counted:
    """Return one row per original: its key, group, closer, tied, cloaking (bigint).

    Args:
        plan: the tables to count and how.
        linked: one row per original with its own avatar's coordinates, in the partitions to count in.

    Raises:
        InputError: the avatars changed since they were checked.
    """
    if plan.spread.strategy == "broadcast":
        counted = broadcast.count(plan, linked)
    else:
        counted = Counted(partition.count(plan, linked))
    cloaking = F.col("within") - 1  # `within` includes the own avatar, which does not hide its original
    tied = cloaking - F.col("closer")
    kept = [*plan.columns.keys, "group", "closer"]
    return Counted(counted.table.select(*kept, tied.alias("tied"), cloaking.alias("cloaking")), counted.shipped)
