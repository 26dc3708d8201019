"""Findings at a real Alertmanager, which tells a webhook of its own."""

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetgauge_core.detection import Finding, Phase, Subject
from fleetgauge_operations.watch import alertmanager
from fleetgauge_operations.watch.alertmanager import Alert, Alertmanager
from fleetgauge_operations.watch.message_format import Manner
from tests.ports import free_port
from tests.receiver import Receiver
from tests.unit.operations.watch import tellings
from tests.unit.operations.watch.tellings import BROKER, NOON, PATH, Ear
from tests.waiting import wait_until

PATIENCE_S = 30
MANNER = Manner(None)


def now() -> datetime:
    return datetime.now(UTC)


def named(subject: Subject, phase: Phase, before: Phase = Phase.HEALTHY) -> Finding:
    return tellings.named(subject, phase, before, now())


def cleared(subject: Subject, phase: Phase) -> Finding:
    return tellings.cleared(subject, phase, now())


# What is posted --------------------------------------------------------------------


def test_labels_are_those_of_the_subject_whatever_it_is_called_now() -> None:
    down, cut_off = (Alert(BROKER, phase, NOON) for phase in (Phase.BROKER_DOWN, Phase.NETWORK_UNAVAILABLE))
    assert down.as_posted(NOON, MANNER)["labels"] == cut_off.as_posted(NOON, MANNER)["labels"]
    assert down.as_posted(NOON, MANNER)["annotations"]["kind"] == "BROKER_DOWN"
    assert cut_off.as_posted(NOON, MANNER)["annotations"]["kind"] == "NETWORK_UNAVAILABLE"


def test_a_broker_pages_and_a_path_is_a_ticket() -> None:
    assert Alert(BROKER, Phase.BROKER_DOWN, NOON).as_posted(NOON, MANNER)["labels"] == {
        "alertname": "BROKER_DOWN",
        "cluster": "orders",
        "broker": "3",
        "severity": "page",
        "fingerprint": BROKER.fingerprint,
    }
    labels = Alert(PATH, Phase.PATH, NOON).as_posted(NOON, MANNER)["labels"]
    assert (labels["vantage"], labels["towards"], labels["severity"]) == ("zone-b", "2", "ticket")
    assert "broker" not in labels


def test_what_holds_is_good_for_minutes_and_what_is_over_has_its_end() -> None:
    posted = Alert(BROKER, Phase.BROKER_DOWN, NOON).as_posted(NOON + timedelta(hours=1), MANNER)
    assert (posted["startsAt"], posted["endsAt"]) == (
        "2026-03-02T12:00:00+00:00",
        "2026-03-02T13:05:00+00:00",
    )
    over = Alert(BROKER, Phase.BROKER_DOWN, NOON, ends=NOON + timedelta(minutes=1))
    assert over.as_posted(NOON + timedelta(minutes=2), MANNER)["endsAt"] == "2026-03-02T12:01:00+00:00"
    by_a_clock_ahead = over.as_posted(NOON - timedelta(minutes=1), MANNER)
    assert by_a_clock_ahead["startsAt"] == by_a_clock_ahead["endsAt"] == "2026-03-02T11:59:00+00:00"


# A real one -------------------------------------------------------------------------


def messages(receiver: Receiver) -> list[tuple[str, list[tuple[str, str]]]]:
    """What Alertmanager told: the status, and names and statuses of the alerts, of each message."""
    return [
        (body["status"], sorted((one["labels"]["alertname"], one["status"]) for one in body["alerts"]))
        for body in receiver.bodies
    ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as one:
        yield one


NAME = "prometheus-alertmanager"
#: Taken out of Debian's package it still looks for its templates where the package would have put them.
WITH_TEMPLATES = """
mount -t tmpfs none /usr/share && mkdir /usr/share/prometheus \\
    && cp -r "$0"/usr/share/prometheus/alertmanager /usr/share/prometheus && exec "$0/usr/bin/$@"
"""


@pytest.fixture(scope="session")
def program() -> list[str]:
    """The beginning of a command."""
    installed, unpacked = shutil.which(NAME), Path(sys.prefix, "debian")
    if installed:
        return [installed]
    own_mounts = ["unshare", "--mount"]
    may_mount = shutil.which("unshare") and not subprocess.run([*own_mounts, "true"], check=False).returncode
    if may_mount and (unpacked / "usr/bin" / NAME).exists():
        return [*own_mounts, "sh", "-c", WITH_TEMPLATES, str(unpacked), NAME]
    pytest.skip(f"{NAME} is missing: apt-get install {NAME}")


class Real:
    """Alertmanager at an address, whether it runs or not."""

    def __init__(self, program: list[str], folder: Path, receiver: Receiver) -> None:
        self._port = free_port()
        self._program = program
        self._folder = folder
        document = {
            "route": {
                "receiver": "hook",
                "group_by": ["cluster"],
                "group_wait": "1s",
                "group_interval": "1s",
                "repeat_interval": "1h",
            },
            "receivers": [
                {"name": "hook", "webhook_configs": [{"url": receiver.url, "send_resolved": True}]}
            ],
        }
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(document))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        process = subprocess.Popen(
            [
                *self._program,
                f"--config.file={self._folder / 'alertmanager.yml'}",
                f"--storage.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                "--cluster.listen-address=",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(self._is_ready, PATIENCE_S, "Alertmanager")
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def alerts(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=5) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def _is_ready(self) -> bool:
        try:
            self.alerts()
        except OSError:
            return False
        return True


@pytest.fixture
def real(program: list[str], tmp_path: Path, receiver: Receiver) -> Real:
    return Real(program, tmp_path, receiver)


@contextmanager
def telling(url: str, ear: Ear) -> Iterator[Alertmanager]:
    sink = Alertmanager(f"{url}/api/v2/alerts", MANNER, ear.telling())
    sink.start()
    yield sink
    sink.stop()


def test_it_fires_groups_and_resolves(real: Real, receiver: Receiver) -> None:
    ear = Ear(clock=now)
    with real.running(), telling(real.url, ear) as sink:
        sink.tell(named(BROKER, Phase.BROKER_DOWN, Phase.SUSPECT))
        sink.tell(named(PATH, Phase.PATH))
        both = ("firing", [("BROKER_DOWN", "firing"), ("PATH", "firing")])
        wait_until(lambda: both in messages(receiver), PATIENCE_S, "both in one message")
        sink.tell(cleared(BROKER, Phase.BROKER_DOWN))
        sink.tell(cleared(PATH, Phase.PATH))
        wait_until(lambda: messages(receiver)[-1][0] == "resolved", PATIENCE_S, "both to be resolved")
    assert (ear.taken, ear.waiting) == ([True] * 4, 0)


def test_a_watch_that_starts_again_neither_resolves_nor_doubles(real: Real, receiver: Receiver) -> None:
    ear = Ear(clock=now)
    with real.running():
        with telling(real.url, ear) as sink:
            sink.tell(named(BROKER, Phase.BROKER_DOWN))
            wait_until(lambda: bool(messages(receiver)), PATIENCE_S, "the page")
        (before,) = real.alerts()
        with telling(real.url, ear) as sink:
            sink.remind([(BROKER, Phase.BROKER_DOWN)])
            wait_until(
                lambda: real.alerts()[0]["endsAt"] > before["endsAt"], PATIENCE_S, "it to be sent again"
            )
            (after,) = real.alerts()
            assert (after["fingerprint"], after["startsAt"]) == (before["fingerprint"], before["startsAt"])
            assert messages(receiver) == [("firing", [("BROKER_DOWN", "firing")])]
            sink.tell(cleared(BROKER, Phase.BROKER_DOWN))
            wait_until(lambda: len(messages(receiver)) > 1, PATIENCE_S, "the end")
    assert messages(receiver)[1:] == [("resolved", [("BROKER_DOWN", "resolved")])]
    assert ear.taken == [True, True]


def test_an_alertmanager_that_is_away_is_told_when_it_comes(
    real: Real, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alertmanager, "_RETRY_S", 0.5)
    ear = Ear(clock=now)
    with telling(real.url, ear) as sink:
        sink.tell(named(BROKER, Phase.BROKER_DOWN))
        wait_until(lambda: "not delivered" in caplog.text, PATIENCE_S, "the failure")
        assert ear.waiting == 1
        with real.running():
            wait_until(lambda: bool(messages(receiver)), PATIENCE_S, "the page")
    assert (ear.taken, ear.waiting) == ([True], 0)
    assert messages(receiver)[0] == ("firing", [("BROKER_DOWN", "firing")])
    assert any("alertmanager: 1 alerts not delivered" in one.getMessage() for one in caplog.records)
    assert not any(
        "127.0.0.1" in one.getMessage() for one in caplog.records if one.name.startswith("fleetgauge.")
    )


def test_what_holds_is_sent_again_before_it_ends_by_itself(
    real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alertmanager, "_AGAIN_S", 0.5)
    with real.running(), telling(real.url, Ear(clock=now)) as sink:
        sink.tell(named(BROKER, Phase.BROKER_DOWN))
        wait_until(lambda: bool(real.alerts()), PATIENCE_S, "the alert")
        first = real.alerts()[0]["endsAt"]
        wait_until(lambda: real.alerts()[0]["endsAt"] > first, PATIENCE_S, "it to be sent again")
        assert len(real.alerts()) == 1
