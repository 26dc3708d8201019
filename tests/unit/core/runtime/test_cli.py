import importlib.metadata
import json
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core import __version__
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.runtime import cli, command_table
from fleetgauge_core.runtime.cli import (
    Command,
    Group,
    InputError,
    ListenAddress,
    ListenAddressParam,
    main,
    print_json,
)
from fleetgauge_core.runtime.command_table import CommandEntry


@click.command()
@click.option("--as-json", is_flag=True)
def greet(as_json: bool) -> None:
    """Say hello."""
    if as_json:
        print_json({"hello": "world"})


@click.command()
def fail() -> None:
    """Fail with wrong input."""
    raise InputError("fleet.yaml: clusters: [red]missing[/red]; " + "name one " * 40)


class ClusterError(OperationalError):
    """An error of another system."""


def _raise_operational_error() -> None:
    raise ClusterError("orders:9092: no answer within 5 s")


def _import_missing_module() -> None:
    import_module("fleetgauge_no_such_package")


not_a_command = 42

COMMANDS = {
    "greet": CommandEntry(f"{__name__}:greet", "Say hello, and nothing else."),
    "fail": CommandEntry(f"{__name__}:fail", "Fail with wrong input."),
    "absent": CommandEntry(
        "fleetgauge_no_such_package.cli:absent", "Greet.", requires=("fleetgauge_no_such_package",)
    ),
    "bad": CommandEntry(
        f"{__name__}:not_a_command", "Greet in a language.", requires=("json", "fleetgauge_other_package")
    ),
}


def _install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Provide the table of a package's commands."""
    table = {name: COMMANDS[name] for name in names}
    for module in (cli, command_table):
        monkeypatch.setattr(module, "read_command_tables", lambda: table)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, *COMMANDS)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.usefixtures("commands")
def test_a_subcommand_is_found_by_its_entry_in_a_table() -> None:
    result = _run("greet", "--as-json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"hello": "world"}
    assert result.stderr == ""


def test_a_command_of_another_distribution_is_found_by_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _install(monkeypatch)
    points = EntryPoints([EntryPoint("greet", f"{__name__}:greet", command_table.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(importlib.metadata, "entry_points", points.select)
    assert json.loads(_run("greet", "--as-json").stdout) == {"hello": "world"}
    assert _run("no-such-command").exit_code == 2


@pytest.mark.usefixtures("commands")
def test_wrong_input_is_one_line_on_stderr_and_exit_2() -> None:
    result = _run("fail")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("fleetgauge: fleet.yaml: clusters: [red]missing[/red]; name one")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("arguments", [["absent"], ["absent", "--json", "somewhere", "-x", "1"]])
def test_a_command_without_its_extra_names_the_package_to_install(arguments: list[str]) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "fleetgauge_no_such_package" in result.stderr
    assert "pip install 'fleetgauge[all]'" in result.stderr


@pytest.mark.usefixtures("commands")
def test_an_entry_that_is_not_a_command_raises_type_error() -> None:
    assert isinstance(_run("bad").exception, TypeError)


@pytest.mark.usefixtures("commands")
def test_calling_one_command_does_not_import_another(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(cli, "_load", lambda name, entry: loaded.append(name) or greet)
    assert _run("greet").exit_code == 0
    assert loaded == ["greet"]


def test_an_unknown_command_is_wrong_usage() -> None:
    result = _run("no-such-command")
    assert result.exit_code == 2
    assert "no-such-command" in result.stderr
    assert result.stdout == ""


def test_an_unknown_option_is_wrong_usage() -> None:
    assert _run("--no-such-option").exit_code == 2


def test_the_version_option_prints_the_package_version() -> None:
    result = _run("--version")
    assert result.exit_code == 0
    assert __version__ in result.stdout


def test_the_help_lists_commands_in_order_and_marks_unavailable_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "fail", "greet", "absent")
    result = _run("-h")
    assert result.exit_code == 0
    assert "Not available: fleetgauge_no_such_package" in result.stdout
    positions = [result.stdout.index(f"  {name} ") for name in ("absent", "fail", "greet")]
    assert positions == sorted(positions)


def test_the_help_is_that_of_the_table_and_imports_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "greet", "bad")
    monkeypatch.setattr(cli, "_load", lambda name, entry: pytest.fail(f"imported {name}"))
    result = _run("--help")
    assert "  greet  Say hello, and nothing else.\n" in result.stdout
    assert "  bad    Not available: fleetgauge_other_package is not installed.\n" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        Command("orders", callback=_raise_operational_error),
        Group("orders", callback=_raise_operational_error, invoke_without_command=True),
        Group("all", commands={"orders": click.Command("orders", callback=_raise_operational_error)}),
    ],
)
def test_an_operational_error_is_one_line_on_stderr_and_exit_2(command: click.Command) -> None:
    arguments = ["orders"] if command.name == "all" else []
    result = CliRunner().invoke(command, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "fleetgauge: orders:9092: no answer within 5 s\n"


def test_a_module_that_is_missing_when_a_command_runs_is_named_with_the_package_to_install() -> None:
    result = CliRunner().invoke(Command("orders", callback=_import_missing_module))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "orders needs fleetgauge_no_such_package" in result.stderr
    assert "pip install 'fleetgauge[all]'" in result.stderr


def test_an_error_of_the_program_is_not_hidden() -> None:
    def divide() -> float:
        return 1 / 0

    assert isinstance(CliRunner().invoke(Command("orders", callback=divide)).exception, ZeroDivisionError)


def test_a_json_result_is_one_value_and_a_newline(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1, None]})
    assert capsys.readouterr().out == '{"a": [1, null]}\n'


@given(
    st.ip_addresses().map(str) | st.sampled_from(["localhost", "agent-1.example.com", "under_score"]),
    st.integers(0, 65535),
)
def test_a_formatted_address_is_parsed_to_the_same_address(host: str, port: int) -> None:
    address = ListenAddress(host, port)
    assert ListenAddressParam().convert(str(address), None, None) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "9100", ":9100", "localhost", "localhost:", "::1:9100", "[::1]", "a:1:2", "a:65536", "a:-1"),
        *("a b:1", "http://a:1", "a:1/metrics", "a:٣", "a:1\n"),
    ],
)
def test_an_invalid_address_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not HOST:PORT such as 127\.0\.0\.1:9100"):
        ListenAddressParam().convert(text, None, None)


def test_an_invalid_listen_address_is_wrong_usage() -> None:
    result = CliRunner().invoke(
        click.Command("serve", params=[click.Option(["--listen"], type=ListenAddressParam())]),
        ["--listen", "9100"],
    )
    assert result.exit_code == 2
    assert "Invalid value for '--listen': '9100' is not HOST:PORT" in result.stderr
