"""What tests of operations share: a receiver of POSTs, and a real Alertmanager that notifies it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.alertmanager import RunningAlertmanager, find_program
from tests.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as listening:
        yield listening


@pytest.fixture
def real(tmp_path: Path, receiver: Receiver) -> RunningAlertmanager:
    return RunningAlertmanager(find_program(), tmp_path, receiver)
