from dataclasses import replace
from pathlib import Path

import pytest

from fleetgauge_local.doctor.judge import Check, judge
from fleetgauge_local.doctor.machine import Jars, Machine, Place, Repository
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.java import Java, Source

GIB = 2**30
CACHE, STATE = Path("/home/sre/.cache/fleetgauge"), Path("/home/sre/.local/state/fleetgauge/demo")
WELL = Machine(
    python="3.11.9",
    processors=2,
    memory_bytes=6 * GIB,
    java=Java(Path("/opt/java"), "Somebody 17.0.1", Source.PATH),
    jars=(Jars("Kafka", 0, 46), Jars("Spark", 0, 7)),
    repositories=(),
    cache=Place(CACHE, 10 * GIB, True),
    state=Place(STATE, 10 * GIB, True),
    page_port=8050,
    page_port_free=True,
)


def test_a_machine_that_has_everything_is_well_and_nothing_is_to_be_done() -> None:
    checks = judge(WELL)
    assert all(check.ok and check.mend is None for check in checks)
    assert len({check.check for check in checks}) == len(checks)


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        (
            {"memory_bytes": 2 * GIB},
            Check(
                "memory",
                False,
                "2.0 GiB available",
                "end something else or raise the limit: the demo needs 3.75 GiB",
            ),
        ),
        (
            {"state": Place(STATE, GIB // 2, True)},
            Check(
                "disk for the demo",
                False,
                f"0.5 GiB free at {STATE}",
                "free 1.0 GiB, or choose another place with --dir or XDG_STATE_HOME",
            ),
        ),
        (
            {"cache": Place(CACHE, 10 * GIB, False)},
            Check(
                "disk for the cache",
                False,
                f"{CACHE} cannot be written",
                "choose another with XDG_CACHE_HOME",
            ),
        ),
        (
            {"java": JavaError("JAVA_HOME is /x, which is Java 25; Java 17 to 21 is needed: unset it")},
            Check("java", False, "JAVA_HOME is /x, which is Java 25; Java 17 to 21 is needed", "unset it"),
        ),
        (
            {"jars": (Jars("Kafka", 3, 46),)},
            Check("Kafka's jars", None, "43 of 46 in the cache", "the next run fetches them"),
        ),
        (
            {"repositories": (Repository("central", "NameResolutionError"),)},
            Check(
                "jar repository central",
                False,
                "does not answer (NameResolutionError)",
                "check network and proxy, or name another in FLEETGAUGE_MAVEN_REPOSITORY",
            ),
        ),
        (
            {"page_port_free": False},
            Check("port 8050", None, "taken", "the demo takes another one, or the one of --port"),
        ),
        (
            {"processors": 1},
            Check("processors", None, "1", "with a single one, probes are late and minutes unmeasured"),
        ),
    ],
)
def test_what_is_missing_is_said_with_its_mend(changed: dict[str, object], check: Check) -> None:
    assert [one for one in judge(replace(WELL, **changed)) if one.mend] == [check]
