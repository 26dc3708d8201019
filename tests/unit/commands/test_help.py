"""The help of every command is printed without the packages that the commands need when they run."""

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from fleetgauge_core.runtime.command_table import PACKAGES, CommandEntry, read_command_tables
from tests.promises.commands import commands

COMMANDS = read_command_tables()
OURS = {*PACKAGES, "fleetgauge_core"}
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
    assert find_imported_packages([[]]) == ALLOWED | OURS


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_command_and_its_subcommands_imports_no_heavy_package(name: str) -> None:
    words = [path.split()[1:] for path, _, _ in commands()]
    paths = [path for path in words if path[:1] == [name]]
    assert paths
    assert find_imported_packages(paths) - OURS == ALLOWED


def test_a_command_that_runs_imports_more() -> None:
    """Otherwise the tests above could not fail."""
    program = PROGRAM.replace('"--help"', '"--config", "/nowhere/fleet.yaml"').replace(
        "assert output", "output"
    )
    command = [sys.executable, "-c", program, '[["watch"]]']
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert {"click", "pydantic", "confluent_kafka"} <= set(json.loads(done.stdout))


@pytest.mark.parametrize(("name", "entry"), COMMANDS.items())
def test_the_help_of_the_table_is_the_command_s_own_shortened(name: str, entry: CommandEntry) -> None:
    module, _, attribute = entry.target.partition(":")
    command, listed = getattr(import_module(module), attribute), click.Command(name, help=entry.help)
    for width in range(20, 100):
        assert listed.get_short_help_str(width) == command.get_short_help_str(width)


def test_each_table_lists_the_commands_of_its_own_package() -> None:
    for package in PACKAGES:
        for entry in import_module(f"{package}.command_table").COMMANDS.values():
            assert entry.target.startswith(f"{package}.")


def test_the_entry_points_are_those_of_the_tables() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    targets = {name: entry.target for name, entry in COMMANDS.items()}
    assert project["entry-points"]["fleetgauge.commands"] == targets


def test_the_modules_that_commands_require_exist() -> None:
    required = {module for entry in COMMANDS.values() for module in entry.requires}
    assert {module for module in required if find_spec(module) is None} == set()
