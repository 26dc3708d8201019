"""Checks names that no reader can guess: `python -m tests.plain_names` prints them and exits 1.

Stand-ins for what a variable holds are refused in the product, and so is a public class name with two
meanings.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("core", "probes", "pipelines", "operations", "dashboards", "infra")
#: They say nothing of what they hold: name the broker, the record, the finding.
STAND_INS = frozenset({"one", "found", "said", "told", "item", "thing"})
#: A class name that two modules may share, with the reason.
SHARED_CLASS_NAMES: dict[str, str] = {}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the path and the syntax tree of every module of the product."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def stand_ins(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable or parameter that is a stand-in.

    Fields of classes are left out: they may be keys that others read.
    """
    fields = {
        statement.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if node in fields:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in STAND_INS:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in STAND_INS:
            yield node.lineno, node.arg


def shared_class_names(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Yield a line for each public class name that several modules define."""
    paths_by_name: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paths_by_name[node.name].add(path)
    for name, paths in sorted(paths_by_name.items()):
        if len(paths) > 1 and name not in SHARED_CLASS_NAMES:
            yield f"{name} is a class in {' and '.join(sorted(paths))}: give each its own name"


def main() -> int:
    trees = dict(modules())
    lines = [
        f"{path}:{line}: {name!r} does not say what it holds"
        for path, tree in trees.items()
        for line, name in stand_ins(tree)
    ]
    lines += shared_class_names(trees)
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
