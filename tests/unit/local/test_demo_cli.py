import pytest
from click.testing import CliRunner, Result

from fleetgauge_local import demo_cli
from fleetgauge_local.demo import Say
from fleetgauge_local.demo_cli import demo
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.mirror_maker import MIRROR_LOCK

PLACE = ("--dir", "/nowhere", "--port", "0")


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[demo_cli._Wanted]:
    """What the command was understood to want; nothing is started."""
    found: list[demo_cli._Wanted] = []

    def note(one: demo_cli._Wanted, *_: object) -> bool:
        found.append(one)
        return True

    monkeypatch.setattr(demo_cli, "_run", note)
    monkeypatch.setattr(demo_cli.signal, "signal", lambda *_: None)
    return found


def call(*arguments: str) -> Result:
    return CliRunner().invoke(demo, [*arguments, *PLACE])


@pytest.mark.parametrize("more", [(), ("--regions",)])
@pytest.mark.parametrize("kind", ["hang", "kill", "blackhole"])
def test_a_fault_without_an_end_is_refused_in_one_line(
    kind: str, more: tuple[str, ...], wanted: list[demo_cli._Wanted]
) -> None:
    done = call("--fault", kind, *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == ("fleetgauge: --fault needs --for, as in: fleetgauge demo --for 5m --fault hang\n")
    assert not wanted


@pytest.mark.parametrize(
    ("arguments", "topology", "with_history"),
    [
        ((), "clusters", True),
        (("--no-history",), "clusters", False),
        (("--regions",), "regions", False),
        (("--regions", "--history"), "regions", True),
    ],
)
def test_regions_go_without_history_unless_it_is_asked_for(
    arguments: tuple[str, ...], topology: str, with_history: bool, wanted: list[demo_cli._Wanted]
) -> None:
    assert call(*arguments).exit_code == 0
    (one,) = wanted
    assert (one.topology, one.with_history) == (TOPOLOGIES[topology], with_history)
    assert (MIRROR_LOCK in one.locks) == (topology == "regions")


def test_without_a_terminal_each_new_thing_is_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_: object, say: Say, __: float) -> bool:
        for text in ("making topics", "running, 12 s left", "running, 11 s left"):
            say(text)
        return True

    monkeypatch.setattr(demo_cli, "_run", work)
    monkeypatch.setattr(demo_cli.signal, "signal", lambda *_: None)
    assert call().stderr == "making topics\nrunning, 12 s left\n"


def test_what_cannot_be_done_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise LocalFleetError("memory: 1.0 GiB available: end something else")

    monkeypatch.setattr(demo_cli, "_run", refuse)
    monkeypatch.setattr(demo_cli.signal, "signal", lambda *_: None)
    done = call("--regions")
    assert done.exit_code == 2
    assert done.stderr.endswith("fleetgauge: memory: 1.0 GiB available: end something else\n")
