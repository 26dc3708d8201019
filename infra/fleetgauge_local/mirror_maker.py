"""A MirrorMaker that is ready to start. Its jars are fetched only where a topology has mirrors."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetgauge_local.distribution import JVM
from fleetgauge_pipelines.io.jars import ensure

MIRROR_LOCK = Path(__file__).with_name("mirror-jars.lock.toml")
_LOGGING = Path(__file__).with_name("mirror-log4j2.properties")


@dataclass(frozen=True)
class MirrorMaker:
    """What a mirror's command line is made of."""

    java: Path
    class_path: tuple[Path, ...]

    def command(self, properties: Path, log: Path, target: str) -> tuple[str, ...]:
        """Start the routes of its mm2.properties that lead into the target."""
        options = (*JVM, f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dfleetgauge.log={log}")
        classes = ("-cp", ":".join(map(str, self.class_path)))
        main = ("org.apache.kafka.connect.mirror.MirrorMaker", str(properties), "--clusters", target)
        return (str(self.java), *options, *classes, *main)


def prepare_mirror_maker(java: Path, cache: Path, progress: Callable[[str], None]) -> MirrorMaker:
    """Its jars, from the cache if they are there. Raises SetupError."""
    return MirrorMaker(java, ensure(MIRROR_LOCK, cache, progress))
