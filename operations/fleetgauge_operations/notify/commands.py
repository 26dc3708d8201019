"""What the commands of `fleetgauge notify` do."""

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import Notifier, load_fleet
from fleetgauge_core.http import name_for_people
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_operations.notify.marked_test import NotifierAnswer, list_warnings, send_test


def send_tests(name: str | None, config: Path, as_json: bool) -> None:
    """Send a test to all notifiers or one; exit with 1 unless all accept it. Raises: InputError."""
    notifiers = _select_notifiers(config, name)
    console.print(f"sending a marked test to {', '.join(notifiers)}", markup=False, soft_wrap=True)
    for warning in list_warnings([notifier.kind for notifier in notifiers.values()]):
        console.print(warning, style="yellow", markup=False, soft_wrap=True)
    test_id = f"fleetgauge-test-{uuid.uuid4().hex[:12]}"
    answers = []
    for receiver_name, notifier in notifiers.items():
        answers.append(send_test(notifier, receiver_name, test_id, datetime.now(UTC)))
        _print_answer(answers[-1])
    if as_json:
        print_json([asdict(answer) for answer in answers])
    if not all(answer.accepted for answer in answers):
        raise SystemExit(1)


def _select_notifiers(config: Path, name: str | None) -> Mapping[str, Notifier]:
    """Return the notifiers to be tested by their names for people."""
    fleet = load_fleet(config)
    notifiers = dict(zip(name_for_people(fleet.notifiers), fleet.notifiers, strict=True))
    if not notifiers:
        raise InputError(f"{config}: no notifier to test: add one under `notifiers`")
    if name is None:
        return notifiers
    if name not in notifiers:
        raise InputError(f"{config}: no notifier {name!r}; known: {', '.join(notifiers)}")
    return {name: notifiers[name]}


def _print_answer(answer: NotifierAnswer) -> None:
    style = "green" if answer.accepted else "red"
    console.print(f"{answer.name}: {answer.detail}", style=style, markup=False, soft_wrap=True)
