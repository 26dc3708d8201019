"""The Dockerfile as stages: where each comes from, and what it says."""

import json
import re
from dataclasses import dataclass, field

from tests.deployment.manifests import INFRA

DOCKERFILE = INFRA / "docker/Dockerfile"
#: Target to its lock; `spark` is `stream` under another entry point.
LOCKS = {"agent": "agent", "watch": "watch", "stream": "stream", "dash": "dash", "spark": "stream"}

_FROM = re.compile(r"FROM (\S+) AS (\S+)")


@dataclass(slots=True)
class Stage:
    """One stage; ``said`` holds its last USER, ENTRYPOINT and so on, its base's included."""

    base: str
    said: dict[str, str] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)

    def words(self, instruction: str) -> list[str]:
        """The exec form of an instruction. Raises ValueError for the shell's."""
        found: list[str] = json.loads(self.said[instruction])
        return found


def stages() -> dict[str, Stage]:
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", "")
    found: dict[str, Stage] = {}
    for line in text.splitlines():
        if match := _FROM.match(line):
            base, name = match.groups()
            inherited = dict(found[base].said) if base in found else {}
            stage = found[name] = Stage(base, inherited)
        elif line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            stage.said[instruction] = rest
            if instruction == "COPY":
                stage.copies.append(rest)
    return found
