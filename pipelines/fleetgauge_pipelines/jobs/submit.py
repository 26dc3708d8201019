"""Run a `fleetgauge` command under spark-submit.

    spark-submit --master MASTER $(python -m fleetgauge_pipelines.jobs.submit) backfill --from ...

Run with python, this module prints the arguments of spark-submit: a setting of the driver's JVM, the jars
that the lock pins, and this file as the application. Run by spark-submit, this file is the command
`fleetgauge`.
"""

import sys
from pathlib import Path

import click


def build_spark_submit_arguments() -> str:
    """Return spark-submit's arguments, after fetching the jars and verifying their checksums.

    Raises: JarError when a jar cannot be fetched or has another checksum.
    """
    from fleetgauge_pipelines.io.cache import default_cache_folder
    from fleetgauge_pipelines.io.jars import SPARK_LOCK, fetch_jars
    from fleetgauge_pipelines.io.session import DRIVER_SETTING

    jars = fetch_jars(SPARK_LOCK, default_cache_folder(), lambda text: click.echo(text, err=True))
    setting = "=".join(DRIVER_SETTING)
    return f"--conf {setting} --jars {','.join(map(str, jars))} {Path(__file__).resolve()}"


def _run() -> None:
    # Python puts a script's folder first on the path. Modules of this folder must not be found as top-level
    # ones.
    sys.path.pop(0)
    from fleetgauge_core.runtime.entry_point import run

    run()


def _print_arguments() -> None:
    from fleetgauge_pipelines.io.errors import SetupError

    try:
        click.echo(build_spark_submit_arguments())
    except SetupError as error:
        raise SystemExit(f"fleetgauge: {error}") from error


if __name__ == "__main__":
    from fleetgauge_pipelines.io.session import is_submitted

    _run() if is_submitted() else _print_arguments()
