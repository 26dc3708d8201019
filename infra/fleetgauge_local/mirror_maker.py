"""MirrorMaker's jars and command line. The jars are fetched only for topologies with mirrors."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetgauge_local.distribution import JVM
from fleetgauge_pipelines.io.jars import fetch_jars

MIRROR_LOCK = Path(__file__).with_name("mirror-jars.lock.toml")
_LOGGING = Path(__file__).with_name("mirror-log4j2.properties")


@dataclass(frozen=True)
class MirrorMaker:
    """The Java executable and class path of a MirrorMaker process."""

    java: Path
    class_path: tuple[Path, ...]

    def command(self, properties: Path, log: Path, target: str) -> tuple[str, ...]:
        """Return the command line that runs the replication flows of mm2.properties into ``target``."""
        options = (*JVM, f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dfleetgauge.log={log}")
        classes = ("-cp", ":".join(map(str, self.class_path)))
        main = ("org.apache.kafka.connect.mirror.MirrorMaker", str(properties), "--clusters", target)
        return (str(self.java), *options, *classes, *main)


def prepare_mirror_maker(java: Path, cache: Path, progress: Callable[[str], None]) -> MirrorMaker:
    """Return MirrorMaker with its jars, fetched if the cache lacks them.

    Raises: SetupError when a jar cannot be fetched.
    """
    return MirrorMaker(java, fetch_jars(MIRROR_LOCK, cache, progress))
