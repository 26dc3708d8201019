"""Parses the stages of the Dockerfile: their bases and instructions."""

import json
import re
from dataclasses import dataclass, field

from tests.deployment.manifests import INFRA

DOCKERFILE = INFRA / "docker/Dockerfile"
#: The lock of each target; `spark` is `stream` with another entry point.
LOCKS = {"agent": "agent", "watch": "watch", "stream": "stream", "dash": "dash", "spark": "stream"}

_FROM = re.compile(r"FROM (\S+) AS (\S+)")


@dataclass(slots=True)
class Stage:
    """A stage; ``instructions`` has the last USER, ENTRYPOINT and so on, including those of its base."""

    base: str
    instructions: dict[str, str] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)

    def parse_arguments(self, instruction: str) -> list[str]:
        """Return the arguments of an instruction in exec form. Raises: ValueError for the shell form."""
        arguments: list[str] = json.loads(self.instructions[instruction])
        return arguments


def read_stages() -> dict[str, Stage]:
    """Return the stages of the Dockerfile by name."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", "")
    stages: dict[str, Stage] = {}
    for line in text.splitlines():
        if match := _FROM.match(line):
            base, name = match.groups()
            inherited = dict(stages[base].instructions) if base in stages else {}
            stage = stages[name] = Stage(base, inherited)
        elif line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            stage.instructions[instruction] = rest
            if instruction == "COPY":
                stage.copies.append(rest)
    return stages
