"""The process from which Spark forks its Python workers: it imports once what each of them needs."""

import gc
import importlib
import runpy
import sys
from io import BufferedReader, BufferedWriter
from zipimport import zipimporter

from pyspark import worker

_NEEDED = ("evidence", "ingest_tasks", "silver_tasks", "week_tasks")
_run_task = worker.main


def _run_next_task(infile: BufferedReader, outfile: BufferedWriter) -> None:
    """Run a task, for which PySpark first has Python read all archives on its path again.

    Spark puts its jars there, with tens of thousands of entries: that took longer than most tasks. An archive
    is read again if a module is sought in it.

    Raises: SystemExit when Spark has no further task for the worker and has closed its socket.
    """
    if not infile.peek(1):
        # PySpark would try to tell Spark of an error, and print that it cannot.
        sys.exit(1)
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    _run_task(infile, outfile)


if __name__ == "__main__":
    for name in _NEEDED:
        importlib.import_module(f"fleetgauge_pipelines.jobs.{name}")
    worker.main = _run_next_task
    # A worker collects garbage after every task, and what is imported never becomes any: to look through it
    # took longer than most tasks.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
