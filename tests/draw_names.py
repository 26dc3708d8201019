"""Draws names and sentences of the product, for a reader who knows Kafka and SRE but not this project.

``python -m tests.draw_names COMMIT`` prints 20 of each package as JSON, the same for the same commit. The
reader says what each means; where the answers are wrong, the language is to be improved.
"""

import ast
import json
import sys
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.plain_names import PRODUCT, parse_modules

PER_PACKAGE = 20
#: Shorter strings are keys and formats rather than sentences.
_MIN_WORDS = 5


class Candidate(NamedTuple):
    """A name with its parameters, or a sentence, and where it stands."""

    text: str
    place: str


def read_candidates(package: str) -> list[Candidate]:
    """Return all public names and all sentences of a package, sorted."""
    candidates = {
        candidate
        for path, tree in parse_modules([package]).items()
        for candidate in (*_names(path, tree), *_sentences(path, tree))
    }
    return sorted(candidates)


def draw(commit: str) -> dict[str, list[Candidate]]:
    """Return the drawn candidates by package."""
    return {
        package: Random(f"{commit} {package}").sample(read_candidates(package), PER_PACKAGE)
        for package in PRODUCT
    }


def _names(path: str, tree: ast.Module) -> Iterator[Candidate]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield Candidate(f"class {node.name}", f"{path}:{node.lineno}")
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    signature = f"{node.name}.{member.name}({_parameters(member)})"
                    yield Candidate(signature, f"{path}:{member.lineno}")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield Candidate(f"{node.name}({_parameters(node)})", f"{path}:{node.lineno}")


def _parameters(function: ast.FunctionDef) -> str:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    return ", ".join(argument.arg for argument in arguments if argument.arg != "self")


def _sentences(path: str, tree: ast.Module) -> Iterator[Candidate]:
    """Yield the first paragraph of each docstring, and each message in the code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, documented)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.strip()
            first = " ".join(text.split("\n\n")[0].split()) if node in docstrings else text
            if len(first.split()) >= _MIN_WORDS and "\n" not in first and first[0].isalpha():
                yield Candidate(first, f"{path}:{node.lineno}")


def main() -> None:
    """Print the draw of a commit."""
    drawn = draw(sys.argv[1])
    print(json.dumps({package: [*map(list, candidates)] for package, candidates in drawn.items()}, indent=1))


if __name__ == "__main__":
    main()
