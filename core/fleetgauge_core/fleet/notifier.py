"""The part of fleet.yaml that describes a receiver of notifications."""

from typing import Literal, Self

from pydantic import Field, model_validator

from fleetgauge_core.fleet.field_types import URL_PATTERN
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.security import Secret

_PAGERDUTY_URL = "https://events.pagerduty.com"


class Notifier(FrozenModel):
    """A receiver of notifications."""

    kind: Literal["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"] = Field(
        description="`webhook`: a POST with JSON for each finding; `slack`: a message by an incoming webhook "
        "of Slack or a compatible service; `pagerduty`: an incident by Events API v2; `alertmanager`: an "
        "alert by API v2; `heartbeat`: a POST every minute to a service that pages when it stops.",
        examples=["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"],
    )
    url: str | None = Field(
        default=None,
        pattern=URL_PATTERN,
        description="URL of the POST, or base URL of Alertmanager; for PagerDuty, its public API by default.",
        examples=["https://hooks.example/sre", "http://alertmanager:9093"],
    )
    url_from: Secret | None = Field(
        default=None,
        description="Reference to a URL that is itself a secret, such as Slack's; instead of `url`.",
    )
    routing_key: Secret | None = Field(
        default=None, description="Reference to the integration key of a PagerDuty service."
    )
    burn_in: bool = Field(
        default=False,
        description="Trial mode: findings that would page have severity burn-in instead, which pages nobody.",
        examples=[True],
    )

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if self.url and self.url_from:
            raise ValueError("give either url or url_from, not both")
        if self.kind != "pagerduty" and not (self.url or self.url_from):
            raise ValueError("give url, or url_from with {env: NAME} or {file: PATH}")
        if (self.kind == "pagerduty") != (self.routing_key is not None):
            raise ValueError("routing_key is required for kind pagerduty and not allowed for other kinds")
        return self

    def read_url(self) -> str:
        """Return the URL, read from ``url_from`` if that is given.

        Raises: SecretError if the secret cannot be read.
        """
        return self.url_from.read() if self.url_from else self.url or _PAGERDUTY_URL
