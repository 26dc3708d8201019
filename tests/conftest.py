"""Fixtures that suites share: a browser and an object store."""

import logging
import os
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, Playwright, sync_playwright
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import s3 as s3_server
from tests.chromium import CHROMIUM, launch_chromium

# kafka-python uses a deprecated function when it is imported; elsewhere that warning stays an error.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka  # noqa: F401

# A property must not fail because the machine is busy.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
# The Kafka client warns of a busy machine, between the warnings that tests expect.
logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)

_OF_SPARK = "tests/spark/"
_OF_BROKERS = "tests/kafka/"
_FIRST = (_OF_SPARK, _OF_BROKERS, "tests/browser/", "tests/end_to_end/")
_NICE = 15


def pytest_configure() -> None:
    """Lower the priority of the tests below that of interactive programs.

    The demo's stream lowers its own priority further, up to the limit of 19. With the tests at 15, the stream
    and the suite's Spark get CPU time at 15 to 36; at normal priority it was 36 to 1,024, which left the
    stream's tables empty.
    """
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return two workers for the whole suite; a selection of tests runs in the main process."""
    return 2 if config.args == config.getini("testpaths") else 0


class _ModuleByModule(LoadScopeScheduling):
    """Assigns whole modules to workers, and all Spark tests or all broker tests to a single worker.

    The first batches of a Spark session take several times as long as later ones, when the JVM is warm.

    xdist's own groups cannot be used: they are a suffix of the test id, which this pytest version does not
    let xdist add, so a second worker would start a second fleet.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = next((folder for folder in (_OF_SPARK, _OF_BROKERS) if nodeid.startswith(folder)), None)
        return shared or nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _ModuleByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run Spark tests first, as they take longest, and the demo last, as its stream has low priority."""
    items.sort(key=_order)


def _order(test: pytest.Item) -> int:
    return next((order for order, folder in enumerate(_FIRST) if test.nodeid.startswith(folder)), len(_FIRST))


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Playwright for a module; ended after it, as its running event loop would disturb other tests."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser per module."""
    with launch_chromium(playwright) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def s3() -> Iterator[s3_server.S3]:
    """An object store without buckets."""
    if not s3_server.SERVER.exists():
        pytest.skip(f"{s3_server.SERVER} is missing: make .venv/.tools")
    with s3_server.run_server() as server:
        yield server
