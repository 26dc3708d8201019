"""What suites share: one fleet of real brokers for the whole run, and a real browser."""

import os
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from fleetgauge_local.fleet import LocalFleet
from tests import s3 as s3_server
from tests.chromium import CHROMIUM, launched

# kafka-python reads its schemas in a deprecated way as it is imported; only there it is no error.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka  # noqa: F401

# A busy machine is no reason for a property to fail.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

_OF_SPARK = "tests/spark/"
_OF_BROKERS = "tests/kafka/"
_FIRST = (_OF_SPARK, _OF_BROKERS, "tests/browser/", "tests/end_to_end/")
_NICE = 15


def pytest_configure() -> None:
    """Yield to whoever works at the machine.

    The demo's stream yields by as much again, but no process by more than 19: beside the suite's own
    Spark it gets 15 parts to 36, where it had 36 to 1,024 and its tables stayed empty.
    """
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for the whole suite, as two cores carry; a part of it is run where it was asked for."""
    return 2 if config.args == config.getini("testpaths") else 0


class _ModuleByModule(LoadScopeScheduling):
    """A worker takes a module whole, or all that share a session of Spark or the brokers: there is one each.

    A session's first batches cost several times what the same batches cost once its JVM is warm.

    xdist's own groups are a suffix of a test's id, which this pytest no longer lets it add: with them a
    second worker would start a second fleet.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = next((one for one in (_OF_SPARK, _OF_BROKERS) if nodeid.startswith(one)), None)
        return shared or nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _ModuleByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark first, which takes longest; a demo, whose stream yields to all, when that is mostly over."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    return next((turn for turn, one in enumerate(_FIRST) if item.nodeid.startswith(one)), len(_FIRST))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with its module: Playwright keeps an event loop running, which other tests must not find."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = launched(playwright)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def s3() -> Iterator[s3_server.S3]:
    """An object store without buckets."""
    if not s3_server.SERVER.exists():
        pytest.skip(f"{s3_server.SERVER} is missing: make .venv/.tools")
    with s3_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def local_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Clusters orders and payments of three brokers and telemetry of one. Break nothing in it."""
    with LocalFleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def breakable_fleet(local_fleet: LocalFleet) -> Iterator[LocalFleet]:
    """The same fleet for a test that breaks brokers; they are healed when it ends."""
    yield local_fleet
    for cluster in local_fleet.status().clusters:
        for broker in cluster.brokers:
            if broker.state in ("hung", "dead") or broker.delay_ms or broker.blackhole:
                local_fleet.fault("heal", cluster.cluster, broker.broker)
    local_fleet.wait_ready()
