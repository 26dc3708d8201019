"""Writes the documents that are generated from the code, or checks that they are up to date.

python -m tests.generated_docs [--check]
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from fleetgauge_core.fleet.schema import fleet_json_schema
from tests import cli_reference, configuration_reference

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_reference.reference,
    "configuration.md": configuration_reference.reference,
    "fleet.schema.json": fleet_json_schema,
}


def main(arguments: list[str]) -> int:
    texts = {DOCS / name: text() for name, text in DOCUMENTS.items()}
    if "--check" not in arguments:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stderr.write(f"{path} is out of date: run 'make format'\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
