"""The part of fleet.yaml that sets the mode of each mitigation action."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from fleetgauge_core.fleet.frozen_model import FrozenModel


def _restore_off(value: object) -> object:
    """Return "off" for False, because YAML 1.1 reads an unquoted off as false."""
    return "off" if value is False else value


def _modes(*modes: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the validation of a mode and its JSON Schema, which allows an unquoted off, too."""
    return BeforeValidator(_restore_off), WithJsonSchema({"enum": [*modes, False]})


AdvisoryMode = Annotated[Literal["off", "advise"], *_modes("off", "advise")]
ActionMode = Annotated[Literal["off", "advise", "act"], *_modes("off", "advise", "act")]


class Mitigation(FrozenModel):
    """Mode of each action: `off`, never; `advise`, by a person; `act`, also by `mitigate run` by itself."""

    demote: ActionMode = Field(
        default="advise", description="Move leadership from the broker to other replicas.", examples=["act"]
    )
    restart: ActionMode = Field(default="advise", description="Restart the broker.", examples=["act"])
    quarantine_restart: ActionMode = Field(
        default="advise",
        description="Restart the broker so that it replicates outside the ISR; producers do not wait for it.",
        examples=["off"],
    )
    evacuate: AdvisoryMode = Field(
        default="advise",
        description="Move the replicas to other brokers; proposed, but never applied.",
        examples=["off"],
    )
