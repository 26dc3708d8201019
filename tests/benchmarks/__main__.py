"""Runs a benchmark by name: we and a peer on the same data in the same run, as a ratio of medians.

make bench ARGS="broker_minutes --json"
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.stderr.write(f"no benchmark {unknown[0]}: there is {', '.join(NAMES)}\n")
        return 2
    results: dict[str, Any] = {}
    for name in wanted or NAMES:
        results[name] = runpy.run_module(f"tests.benchmarks.{name}")["measure"]()
    if "--json" in sys.argv:
        print(json.dumps(results))
    else:
        for name, found in results.items():
            print(f"{name}: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
