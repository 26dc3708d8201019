"""Checks names that do not say what they stand for: `python -m tests.plain_names` prints them and exits 1.

Variables with a stand-in name are errors in the product and in the tests. Public classes that share a name
are errors in the product only: test doubles may have the name of the class that they replace.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("core", "probes", "pipelines", "operations", "dashboards", "infra")
TESTS = ("tests",)
#: Names that say nothing about the value: name the broker, the record, the finding.
STAND_INS = frozenset({"one", "found", "said", "told", "item", "thing"})
#: A class name that two modules may share, with the reason.
SHARED_CLASS_NAMES: dict[str, str] = {}


def parse_modules(folders: Sequence[str]) -> dict[str, ast.Module]:
    """Return the syntax tree of every module in the folders by its path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def find_stand_ins(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every variable or parameter with a stand-in name.

    Fields of classes are not checked, as they may be keys of JSON.
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


def find_shared_class_names(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Yield a message for each public class name that several modules define."""
    paths_by_name: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paths_by_name[node.name].add(path)
    for name, paths in sorted(paths_by_name.items()):
        if len(paths) > 1 and name not in SHARED_CLASS_NAMES:
            yield f"{name} is a class in {' and '.join(sorted(paths))}: give each its own name"


def main() -> int:
    product = parse_modules(PRODUCT)
    lines = [
        f"{path}:{line}: {name!r} does not say what it holds"
        for path, tree in {**product, **parse_modules(TESTS)}.items()
        for line, name in find_stand_ins(tree)
    ]
    lines += find_shared_class_names(product)
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
