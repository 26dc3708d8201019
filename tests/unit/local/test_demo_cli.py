import pytest
from click.testing import CliRunner, Result

from fleetgauge_local import demo_command
from fleetgauge_local.demo import ReportProgress
from fleetgauge_local.demo_cli import demo
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.mirror_maker import MIRROR_LOCK

LOCATION = ("--dir", "/nowhere", "--port", "0")


@pytest.fixture
def parsed_options(monkeypatch: pytest.MonkeyPatch) -> list[demo_command._DemoOptions]:
    """The options that the command parsed; nothing is started."""
    options: list[demo_command._DemoOptions] = []

    def record_options(parsed: demo_command._DemoOptions, *_: object) -> bool:
        options.append(parsed)
        return True

    monkeypatch.setattr(demo_command, "_run", record_options)
    return options


def call(*arguments: str) -> Result:
    return CliRunner().invoke(demo, [*arguments, *LOCATION])


@pytest.mark.parametrize("extra_options", [(), ("--regions",)])
@pytest.mark.parametrize("kind", ["hang", "kill", "blackhole"])
def test_fault_without_for_is_a_usage_error(
    kind: str, extra_options: tuple[str, ...], parsed_options: list[demo_command._DemoOptions]
) -> None:
    result = call("--fault", kind, *extra_options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "fleetgauge: --fault needs --for, as in: fleetgauge demo --for 5m --fault hang\n"
    )
    assert not parsed_options


@pytest.mark.parametrize(
    ("arguments", "topology", "with_history"),
    [
        ((), "clusters", True),
        (("--no-history",), "clusters", False),
        (("--regions",), "regions", False),
        (("--regions", "--history"), "regions", True),
    ],
)
def test_regions_show_no_history_unless_requested(
    arguments: tuple[str, ...],
    topology: str,
    with_history: bool,
    parsed_options: list[demo_command._DemoOptions],
) -> None:
    assert call(*arguments).exit_code == 0
    (options,) = parsed_options
    assert (options.topology, options.with_history) == (TOPOLOGIES[topology], with_history)
    assert (MIRROR_LOCK in options.locks) == (topology == "regions")


def test_without_a_terminal_each_new_activity_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_: object, progress: ReportProgress, *__: object) -> bool:
        for text in ("creating topics", "running, 12 s left", "running, 11 s left"):
            progress(text)
        return True

    monkeypatch.setattr(demo_command, "_run", work)
    assert call().stderr == "creating topics\nrunning, 12 s left\n"


def test_a_failure_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise LocalFleetError("memory: 1.0 GiB available: end other programs")

    monkeypatch.setattr(demo_command, "_run", fail)
    result = call("--regions")
    assert result.exit_code == 2
    assert result.stderr.endswith("fleetgauge: memory: 1.0 GiB available: end other programs\n")
