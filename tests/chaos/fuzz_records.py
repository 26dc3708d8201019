"""Sends damaged records and noise through the pipeline: nothing breaks, each ends where it must.

    python -m tests.chaos.fuzz_records --records 100000 --seed 1

Bit flips, cuts, splices, trailing bytes, wrong fingerprints, wild varints, huge counts and noise
among good records, replays and conflicts, in batches. Prints one JSON value; exit 0 iff no batch
breaks or hangs, bronze, replays and quarantine together are what was sent, every row of quarantine
has a reason of the list and its bytes, no broken record is in bronze and no valid one in quarantine.
"""

import json
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import click

from fleetgauge_pipelines.io.session import open_session
from tests.chaos._streaming import say
from tests.spark.fuzz import judge, process, values

#: A batch takes seconds; one that takes this long hangs.
PATIENCE_S = 600


def fuzz(folder: Path, records: int, batches: int, seed: int) -> dict[str, Any]:
    say(f"making {records} values")
    sent = values(records, Random(seed))
    spark = open_session("fleetgauge-fuzz", say)
    started = time.monotonic()

    def watched(number: int) -> None:
        signal.alarm(PATIENCE_S)
        say(f"batch {number + 1} of {batches}")

    try:
        said = process(spark, folder / "lake", sent, batches, watched)
    except Exception as error:
        traceback.print_exc()
        return {"sent": records, "broke": f"{type(error).__name__}", "passed": False}
    finally:
        signal.alarm(0)
        spark.stop()
    seconds = round(time.monotonic() - started, 1)
    say("comparing what is in the lake with what was sent")
    found = judge(folder / "lake", sent, said)
    return {"seed": seed, **found, "seconds": seconds, "passed": not any(found["faults"].values())}


def _hangs(*_: object) -> NoReturn:
    raise TimeoutError(f"a batch took over {PATIENCE_S} s")


@click.command()
@click.option("--records", default=100_000, show_default=True, type=click.IntRange(min=100))
@click.option("--batches", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Keep the lake there.")
def main(records: int, batches: int, seed: int, folder: Path | None) -> None:
    signal.signal(signal.SIGALRM, _hangs)
    with tempfile.TemporaryDirectory(prefix="fleetgauge-fuzz-") as passing:
        report = fuzz((folder or Path(passing)).resolve(), records, batches, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
