"""The code that is judged, with one thing changed in it."""

import sys
from itertools import count
from pathlib import Path
from types import ModuleType

from fleetgauge_operations.recovery import offsets
from tests.unit.operations.recovery.judging import Code

_PACKAGE = "fleetgauge_operations.recovery.offsets"
#: In the order in which they import each other.
_MODULES = ("checkpoint", "replication_runs", "watermarks", "offset_sync_store", "mapping")
_NUMBERS = count()


def mutant(module: str, old: str, new: str) -> Code:
    """``old`` is there exactly once."""
    package = f"mutant_{next(_NUMBERS)}"
    made = {}
    for name in _MODULES:
        made[name] = sys.modules[f"{package}.{name}"] = ModuleType(f"{package}.{name}")
        exec(_source(name, module, old, new).replace(_PACKAGE, package), made[name].__dict__)
    return Code(made["checkpoint"], made["offset_sync_store"], made["mapping"])


def _source(name: str, module: str, old: str, new: str) -> str:
    (folder,) = offsets.__path__
    text = Path(folder, f"{name}.py").read_text(encoding="utf-8")
    if name == module:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        text = text.replace(old, new)
    return text
