"""A command under spark-submit.

    spark-submit --master MASTER $(python -m fleetgauge_pipelines.jobs.submit) backfill --from ...

Run by hand, it says the words that stand there: what the driver's JVM needs, the jars by their lock, and
itself as the application.
Run by spark-submit, it is `fleetgauge`.
"""

import sys
from pathlib import Path

import click


def words() -> str:
    """The driver's setting, the jars, fetched and checked, and this file. Raises JarError."""
    from fleetgauge_pipelines.io.cache import default_cache
    from fleetgauge_pipelines.io.jars import SPARK_LOCK, ensure
    from fleetgauge_pipelines.io.session import DRIVERS_SETTING

    jars = ensure(SPARK_LOCK, default_cache(), lambda text: click.echo(text, err=True))
    setting = "=".join(DRIVERS_SETTING)
    return f"--conf {setting} --jars {','.join(map(str, jars))} {Path(__file__).resolve()}"


def _run() -> None:
    # A script's folder comes first on the path; what lies here must not pass for top-level modules.
    sys.path.pop(0)
    from fleetgauge_core.runtime.cli import main

    main(prog_name="fleetgauge")


def _say() -> None:
    from fleetgauge_pipelines.io.errors import SetupError

    try:
        click.echo(words())
    except SetupError as error:
        raise SystemExit(f"fleetgauge: {error}") from error


if __name__ == "__main__":
    from fleetgauge_pipelines.io.session import submitted

    _run() if submitted() else _say()
