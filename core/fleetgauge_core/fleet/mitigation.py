"""Who does something about a cluster's sick brokers."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from fleetgauge_core.fleet.frozen import Frozen


def _not_a_boolean(value: object) -> object:
    """YAML 1.1 reads a bare off as false."""
    return "off" if value is False else value


def _modes(*modes: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """For an editor, which reads YAML as we do."""
    return BeforeValidator(_not_a_boolean), WithJsonSchema({"enum": [*modes, False]})


Advice = Annotated[Literal["off", "advise"], *_modes("off", "advise")]
Mode = Annotated[Literal["off", "advise", "act"], *_modes("off", "advise", "act")]


class Mitigation(Frozen):
    """Of each action: `off`, nobody does it; `advise`, a person may; `act`, `mitigate run` does it itself."""

    demote: Mode = Field(default="advise", description="Let others lead what it leads.", examples=["act"])
    restart: Mode = Field(default="advise", description="Restart it, and no more.", examples=["act"])
    quarantine_restart: Mode = Field(
        default="advise",
        description="Restart it so that it copies on, out of sync: no producer waits for it.",
        examples=["off"],
    )
    evacuate: Advice = Field(
        default="advise", description="Move its replicas away: proposed, never done.", examples=["off"]
    )
