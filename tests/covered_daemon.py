"""Spark's daemon of Python workers under coverage: what a worker saw is saved after each task; later it is killed."""

import coverage
from pyspark import daemon

task = daemon.worker


def worker(*args):
    """Do one task, as the daemon asks."""
    try:
        return task(*args)
    finally:
        running = coverage.Coverage.current()
        if running is not None:
            running.save()


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
