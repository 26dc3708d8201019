"""Hangs a broker for 3 minutes; the weekly tables must equal those of the oracle from the raw records."""

import json
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.demo import run_for, running_demo, wait_until_caught_up
from fleetgauge_local.ports import find_free_ports
from tests.chaos.hang_brokers import log_progress
from tests.oracle.evaluate_run import main as evaluate


@click.command()
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), required=True, help="Folder that keeps the lake."
)
@click.option("--hang", "seconds", default=180.0, show_default=True)
def main(folder: Path, seconds: float) -> None:
    with running_demo(
        folder, find_free_ports(1, random.Random())[0], log_progress, time.monotonic(), ShutdownFlag()
    ) as running:
        run_for(90, running, lambda _: None, "healthy")
        fault = running.local.fault("hang", "payments", 2, for_s=seconds)
        log_progress(f"{fault.at} hang payments 2 for {seconds:.0f} s")
        run_for(seconds + 100, running, lambda _: None, "hung and back")
        wait_until_caught_up(running, datetime.now(UTC), lambda _: None)
        lake, fleet_file = running.fleet.lake, running.local.fleet_file
    log_progress(f"lake {lake}; comparing with the oracle")
    print(
        json.dumps(
            {"fault": {"cluster": fault.cluster, "broker": fault.broker, "at": fault.at}, "lake": lake}
        )
    )
    sys.exit(evaluate([lake, "--fleet", str(fleet_file), "--compare"]))


if __name__ == "__main__":
    main()
