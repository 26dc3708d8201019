"""The process from which Spark forks its Python workers: it imports once what each of them needs."""

import gc
import runpy

from fleetgauge_pipelines.jobs import evidence, ingest_tasks, silver_tasks, week_tasks  # noqa: F401

if __name__ == "__main__":
    # A worker collects garbage after every task, and what is imported never becomes any: to look through it
    # took longer than most tasks.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
