"""The part of fleet.yaml that describes who may report changes by HTTP."""

from typing import Literal

from pydantic import Field, field_validator

from fleetgauge_core.fleet.field_types import Identifier
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.security import Secret

#: The segment of a change that concerns every cluster.
WHOLE_FLEET = ("fleet", "")


class ChangeSource(FrozenModel):
    """A system that reports changes to the watch."""

    name: Identifier = Field(
        description="Name in the URL, `/changes/NAME`, in metrics and with each change; unique among the "
        "sources.",
        examples=["ci"],
    )
    form: Literal["fleetgauge", "github", "pagerduty"] = Field(
        default="fleetgauge",
        description="`fleetgauge`: a POST with JSON of its own; `github`: webhooks for deployments and their "
        "statuses; `pagerduty`: change events as for Events API v2.",
        examples=["github"],
    )
    token: Secret = Field(
        description="Reference to the bearer token, GitHub's webhook secret or PagerDuty's routing key.",
        examples=[{"file": "/run/secrets/ci-token"}],
    )
    segment: str | None = Field(
        default=None,
        description="Clusters that a change concerns if it names none, as NAME=VALUE; by default all.",
        examples=["team=checkout"],
    )

    @field_validator("segment")
    @classmethod
    def _check_segment(cls, segment: str | None) -> str | None:
        if segment is not None and not all(split_segment(segment)):
            raise ValueError("give NAME=VALUE, such as team=checkout")
        return segment

    @property
    def default_segment(self) -> tuple[str, str]:
        """Name and value of the segment that a change concerns if it names no clusters."""
        return WHOLE_FLEET if self.segment is None else split_segment(self.segment)


def split_segment(segment: str) -> tuple[str, str]:
    """Return name and value of a segment that is written as NAME=VALUE; empty if either is missing."""
    name, _, value = segment.partition("=")
    return name, value
