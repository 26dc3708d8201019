"""A lake that cannot be written: the pages say so before anybody acts, and an attempt says what to do."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dash import html

from fleetgauge_core import tables
from fleetgauge_core.lake.table_store import ReadOnlyLakeError, TableStore
from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.identity import Role, User
from fleetgauge_dashboards.links import AlertsView, ClusterView
from fleetgauge_dashboards.pages import alerts, cluster
from fleetgauge_dashboards.pages.alert_actions import record_remark
from fleetgauge_dashboards.pages.correction_form import record_correction
from fleetgauge_dashboards.pages.page import PageContext
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.alert_remarks import AlertJudgement
from tests.browser.lake import ORDERS, put
from tests.browser.lake import write as write_lake
from tests.read_only import WITHOUT_PRIVILEGES, forbid_writing, mounted_read_only
from tests.unit.dashboards.served import NOW, visible_text
from tests.unit.dashboards.test_identity import FIXED

MESSAGES = [
    *(
        f"✕ Not {done}: the lake is read-only here; {do} the alert on pages served where the stream runs."
        for done, do in (("acknowledged", "acknowledge"), ("judged", "judge"))
    ),
    "✕ Not excluded: the lake is read-only here; use fleetgauge correct add where the stream runs.",
]
FLEET = "lake: ./lake\nclusters: [{id: orders-eu, bootstrap: 'orders-eu:9092'}]\n"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    write_lake(root, NOW)
    put(root, tables.ACTIONS, [])
    put(root, tables.CORRECTIONS, [])
    return root


def list_buttons(component: object) -> Iterator[html.Button]:
    if isinstance(component, html.Button):
        yield component
    for child in component if isinstance(component, list) else [getattr(component, "children", None)]:
        if child is not None:
            yield from list_buttons(child)


def attempt(root: str) -> dict[str, Any]:
    """Return what the pages show, and the messages of every attempt to write."""
    context, user = _open(root), User("ada", Role.OPERATOR)
    shown_alerts = alerts.PAGE.fill(AlertsView(alert_id="past-0"), context, LIGHT)
    shown_cluster = cluster.PAGE.fill(ClusterView(ORDERS), context, LIGHT)
    buttons = [*list_buttons(shown_alerts["alerts-open.children"])]
    buttons += list_buttons(shown_alerts["alerts-history.children"])
    times = TimeFormat("UTC")
    return {
        "labels": [button.children for button in buttons],
        "disabled": [*(button.disabled for button in buttons), shown_cluster["correct-do.disabled"]],
        "reasons": [
            visible_text(shown_alerts["alerts-title.children"]),
            shown_cluster["correct-read-only.children"],
        ],
        "messages": [
            record_remark(context, "open-0", None, user, times),
            record_remark(context, "past-0", AlertJudgement.RIGHT, user, times),
            record_correction(context, FIXED, None, "why", user),
        ],
    }


def _open(root: str) -> PageContext:
    return PageContext(ServedFleet("fleet", root), LakeReader(root), lambda: NOW)


def _assert_read_only(shown: dict[str, Any]) -> None:
    assert shown["labels"] == ["Acknowledge", "It was right", "It was a false alarm"]
    assert shown["disabled"] == 4 * [True]
    assert all("the lake is read-only here" in reason.lower() for reason in shown["reasons"])
    assert shown["messages"] == MESSAGES


def test_a_lake_of_another_user_is_read_only_and_no_trace_is_logged(lake: Path) -> None:
    forbid_writing(lake)
    code = "import json, sys; from tests.unit.dashboards.test_read_only_lake import attempt; "
    code += "print(json.dumps(attempt(sys.argv[1])))"
    done = _run_without_privileges("-c", code, str(lake))
    assert (done.returncode, done.stderr) == (0, "")
    _assert_read_only(json.loads(done.stdout))


def test_a_command_on_a_lake_of_another_user_says_where_to_write_it(lake: Path) -> None:
    (lake.parent / "fleet.yaml").write_text(FLEET)
    forbid_writing(lake)
    arguments = ["add", "--cluster", ORDERS, "--from", "2026-03-05T11:00:00Z", "--to", "2026-03-05T11:10:00Z"]
    more = ["--reason", "why", "--config", f"{lake.parent}/fleet.yaml", "--lake", str(lake)]
    done = _run_without_privileges("-m", "fleetgauge_core", "correct", *arguments, *more)
    message = "the lake is read-only here; write it where `fleetgauge stream` runs, as its user"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"fleetgauge: {lake}/ops/corrections: {message}\n"


def _run_without_privileges(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WITHOUT_PRIVILEGES, sys.executable, *arguments], capture_output=True, text=True, timeout=120
    )


def test_a_lake_on_a_read_only_mount_is_read_only_for_root_too(lake: Path) -> None:
    with mounted_read_only(lake):
        _assert_read_only(attempt(str(lake)))
        with pytest.raises(ReadOnlyLakeError):
            TableStore(str(lake), tables.CHECKPOINTS).create()


def test_a_writable_lake_enables_the_buttons(lake: Path) -> None:
    shown = attempt(str(lake))
    assert shown["disabled"] == 4 * [False]
    assert not any("read-only" in reason for reason in shown["reasons"])
    assert [message[0] for message in shown["messages"]] == 3 * ["●"]
