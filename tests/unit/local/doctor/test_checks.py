from dataclasses import replace
from pathlib import Path

import pytest

from fleetgauge_local.doctor.checks import DoctorCheck, check_machine
from fleetgauge_local.doctor.machine import CachedJars, FolderCapacity, JarRepository, Machine
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.java import Java, JavaSource

GIB = 2**30
CACHE, STATE = Path("/home/sre/.cache/fleetgauge"), Path("/home/sre/.local/state/fleetgauge/demo")
HEALTHY = Machine(
    python="3.11.9",
    processors=2,
    memory_bytes=6 * GIB,
    java=Java(Path("/opt/java"), "Somebody 17.0.1", JavaSource.PATH),
    jars=(CachedJars("Kafka", 0, 46), CachedJars("Spark", 0, 7)),
    repositories=(),
    cache=FolderCapacity(CACHE, 10 * GIB, True),
    state=FolderCapacity(STATE, 10 * GIB, True),
    page_port=8050,
    page_port_free=True,
)


def test_a_machine_that_meets_all_requirements_has_no_failed_check_and_no_remedy() -> None:
    checks = check_machine(HEALTHY)
    assert all(check.ok and check.mend is None for check in checks)
    assert len({check.check for check in checks}) == len(checks)


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        (
            {"memory_bytes": 2 * GIB},
            DoctorCheck(
                "memory",
                False,
                "2.0 GiB available",
                "end other programs or raise the memory limit: the demo needs 3.75 GiB",
            ),
        ),
        (
            {"state": FolderCapacity(STATE, GIB // 2, True)},
            DoctorCheck(
                "disk for the demo",
                False,
                f"0.5 GiB free at {STATE}",
                "free 1.0 GiB, or choose another folder with --dir or XDG_STATE_HOME",
            ),
        ),
        (
            {"cache": FolderCapacity(CACHE, 10 * GIB, False)},
            DoctorCheck(
                "disk for the cache",
                False,
                f"{CACHE} is not writable",
                "choose another folder with XDG_CACHE_HOME",
            ),
        ),
        (
            {"java": JavaError("JAVA_HOME is /x, which is Java 25; Java 17 to 21 is needed: unset it")},
            DoctorCheck(
                "java", False, "JAVA_HOME is /x, which is Java 25; Java 17 to 21 is needed", "unset it"
            ),
        ),
        (
            {"jars": (CachedJars("Kafka", 3, 46),)},
            DoctorCheck("Kafka's jars", None, "43 of 46 in the cache", "the next run downloads them"),
        ),
        (
            {"repositories": (JarRepository("central", "NameResolutionError"),)},
            DoctorCheck(
                "jar repository central",
                False,
                "does not respond (NameResolutionError)",
                "check network and proxy, or set FLEETGAUGE_MAVEN_REPOSITORY to another repository",
            ),
        ),
        (
            {"page_port_free": False},
            DoctorCheck(
                "port 8050", None, "taken", "the demo uses another free port, or the one given with --port"
            ),
        ),
        (
            {"processors": 1},
            DoctorCheck(
                "processors",
                None,
                "1",
                "with a single processor, probes run late and some minutes are not measured",
            ),
        ),
    ],
)
def test_a_failed_check_states_the_problem_and_its_remedy(
    changed: dict[str, object], check: DoctorCheck
) -> None:
    assert [result for result in check_machine(replace(HEALTHY, **changed)) if result.mend] == [check]
