"""The help of every command is printed without the packages that the commands need when they run."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

import click
import pytest

from fleetgauge_core.runtime.cli import ENTRY_POINT_GROUP, SUMMARIES_MODULE, CommandSummary
from tests.promises.commands import commands

POINTS = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
PACKAGES = {point.module.partition(".")[0] for point in POINTS.values()}
#: Installed packages that a help may import, beside our own.
ALLOWED = {"click"}
#: Prints the help of each command path, then the packages that this imported, without the standard library's.
PROGRAM = """
import contextlib, io, json, sys
standard = {*sys.stdlib_module_names, *(module.partition(".")[0] for module in sys.modules)}
from fleetgauge_core.runtime.cli import main
for path in json.loads(sys.argv[1]):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*path, "--help"], prog_name="fleetgauge")
    assert output.getvalue().startswith(" ".join(["Usage: fleetgauge", *path])), output.getvalue()
packages = {module.partition(".")[0] for module in sys.modules} - standard
print(json.dumps([package for package in packages if not package.startswith("_sysconfigdata")]))
"""


def find_imported_packages(paths: list[list[str]]) -> set[str]:
    """Return the installed packages that a process imports to print the help of commands."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(paths)]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def test_the_list_of_commands_imports_no_command() -> None:
    assert find_imported_packages([[]]) == ALLOWED | PACKAGES | {"fleetgauge_core"}


@pytest.mark.parametrize("name", sorted(POINTS))
def test_the_help_of_a_command_and_its_subcommands_imports_no_heavy_package(name: str) -> None:
    words = [path.split()[1:] for path, _, _ in commands()]
    paths = [path for path in words if path[:1] == [name]]
    assert paths
    assert find_imported_packages(paths) - PACKAGES - {"fleetgauge_core"} == ALLOWED


def test_a_command_that_runs_imports_more() -> None:
    """Otherwise the tests above could not fail."""
    program = PROGRAM.replace('"--help"', '"--config", "/nowhere/fleet.yaml"').replace(
        "assert output", "output"
    )
    command = [sys.executable, "-c", program, '[["watch"]]']
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert {"click", "pydantic", "confluent_kafka"} <= set(json.loads(done.stdout))


def summaries() -> Iterator[tuple[EntryPoint, CommandSummary]]:
    for package in sorted(PACKAGES):
        for name, summary in import_module(f"{package}.{SUMMARIES_MODULE}").SUMMARIES.items():
            assert POINTS[name].module.startswith(f"{package}.")
            yield POINTS[name], summary


def test_every_command_has_a_summary() -> None:
    assert sorted(point.name for point, _ in summaries()) == sorted(POINTS)


def test_a_summary_is_the_command_s_own_help_shortened() -> None:
    for point, summary in summaries():
        command, summarized = point.load(), click.Command(point.name, help=summary.help)
        for width in range(20, 100):
            assert summarized.get_short_help_str(width) == command.get_short_help_str(width)


def test_the_modules_that_commands_require_exist() -> None:
    required = {module for _, summary in summaries() for module in summary.requires}
    assert {module for module in required if find_spec(module) is None} == set()
