"""Runs a chaos demonstration by its name; each prints one JSON value and exits with 0 or 1.

make chaos ARGS="hang_brokers"
make chaos ARGS="--faults 24 --seed 1 --json"    (without a name: name_faults)
"""

import runpy
import signal
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))

_DEFAULT_NAME = "name_faults"

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("--"):
        sys.argv.insert(1, _DEFAULT_NAME)
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.stderr.write(f"name a demonstration: {', '.join(NAMES)}\n")
        sys.exit(2)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    name = sys.argv.pop(1)
    runpy.run_module(f"tests.chaos.{name}", run_name="__main__", alter_sys=True)
