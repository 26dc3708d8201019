"""Fixtures for all tests of operations: a receiver of notifications, and an Alertmanager that notifies it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.alertmanager import RunningAlertmanager, find_program
from tests.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook receiver that is listening."""
    with Receiver().listening() as listening_receiver:
        yield listening_receiver


@pytest.fixture
def alertmanager(tmp_path: Path, receiver: Receiver) -> RunningAlertmanager:
    """A real Alertmanager, not running yet, that sends its notifications to the receiver."""
    return RunningAlertmanager(find_program(), tmp_path, receiver)
