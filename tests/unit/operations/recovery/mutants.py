"""Mutants: the offset modules with one text changed."""

import sys
from itertools import count
from pathlib import Path
from types import ModuleType

from fleetgauge_operations.recovery import offsets
from tests.unit.operations.recovery.mapping_cases import OffsetModules

_PACKAGE = "fleetgauge_operations.recovery.offsets"
#: In import order.
_MODULES = ("checkpoint", "replication_runs", "watermarks", "offset_sync_store", "mapping_rule", "mapping")
_NUMBERS = count()


def build_mutant(module: str, old: str, new: str) -> OffsetModules:
    """Return the modules with a text replaced, which must occur exactly once in the given module."""
    package = f"mutant_{next(_NUMBERS)}"
    modules = {}
    for name in _MODULES:
        modules[name] = sys.modules[f"{package}.{name}"] = ModuleType(f"{package}.{name}")
        exec(_mutate_source(name, module, old, new).replace(_PACKAGE, package), modules[name].__dict__)
    return OffsetModules(modules["checkpoint"], modules["offset_sync_store"], modules["mapping"])


def _mutate_source(name: str, module: str, old: str, new: str) -> str:
    (folder,) = offsets.__path__
    text = Path(folder, f"{name}.py").read_text(encoding="utf-8")
    if name == module:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        text = text.replace(old, new)
    return text
