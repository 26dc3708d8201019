"""The process from which Spark forks its Python workers: it imports once what each of them needs."""

import gc
import importlib
import runpy

_NEEDED = ("evidence", "ingest_tasks", "silver_tasks", "week_tasks")

if __name__ == "__main__":
    for name in _NEEDED:
        importlib.import_module(f"fleetgauge_pipelines.jobs.{name}")
    # A worker collects garbage after every task, and what is imported never becomes any: to look through it
    # took longer than most tasks.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
