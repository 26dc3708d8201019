"""The part of fleet.yaml that describes a receiver of notifications."""

import json
import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from fleetgauge_core.fleet.field_types import URL_PATTERN, Identifier
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.security import (
    CaFile,
    CertificateFile,
    KeyFile,
    KeyPassword,
    Secret,
    TextOrSecret,
    Tls,
)

_ADDRESS_KEYS = frozenset({"kind", "url", "url_from", "routing_key"})
_LOGIN_KEYS = frozenset({"basic_auth", "bearer", "headers"})
_PAGERDUTY_URL = "https://events.pagerduty.com"
#: The value of ``proxy`` that ignores the environment's proxy.
NO_PROXY = "none"
_AUTHORITY = re.compile(r"https?://([^/?#\\]*)")
#: RFC 9110, section 5.6.2.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that describe the connection or the body, which are not the fleet file's to decide.
_OWN_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "expect",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class BasicAuth(FrozenModel):
    """A login by HTTP Basic authentication (RFC 7617)."""

    username: str = Field(min_length=1, description="User name.", examples=["fleetgauge"])
    password: Secret = Field(description="Reference to the password.")

    @field_validator("username")
    @classmethod
    def _check_username(cls, username: str) -> str:
        if ":" in username or not is_one_line(username):
            raise ValueError("a user name has no colon and no line break")
        return username


class Notifier(FrozenModel):
    """A receiver of notifications."""

    kind: Literal["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"] = Field(
        description="`webhook`: a POST with JSON for each finding; `slack`: a message by an incoming webhook "
        "of Slack or a compatible service; `pagerduty`: an incident by Events API v2; `alertmanager`: an "
        "alert by API v2; `heartbeat`: a POST every minute to a service that pages when it stops.",
        examples=["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"],
    )
    name: Identifier | None = Field(
        default=None,
        description="Name in logs, metrics, `fleetgauge notify test` and `ops/actions`, unique among the "
        "notifiers; by default kind and host.",
        examples=["oncall"],
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
    proxy: TextOrSecret | None = Field(
        default=None,
        description="URL of an HTTP proxy, or a reference to it if it has a login; `none` for no proxy. By "
        "default HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment.",
        examples=["http://proxy.example:3128"],
    )
    basic_auth: BasicAuth | None = Field(
        default=None, description="Login by user name and password, sent with every request."
    )
    bearer: Secret | None = Field(
        default=None, description="Reference to a bearer token, sent with every request (RFC 6750)."
    )
    headers: dict[str, TextOrSecret] = Field(
        default_factory=dict,
        description="Further headers of every request by name; a secret value is a reference.",
        examples=[{"X-Scope-OrgID": "sre", "X-Api-Key": {"env": "RECEIVER_KEY"}}],
    )
    ca: CaFile = None
    certificate: CertificateFile = None
    key: KeyFile = None
    key_password: KeyPassword = None
    burn_in: bool = Field(
        default=False,
        description="Trial mode: findings that would page have severity burn-in instead, which pages nobody.",
        examples=[True],
    )

    @field_validator("url")
    @classmethod
    def _check_url_has_no_login(cls, url: str | None) -> str | None:
        if url and _has_login(url):
            raise ValueError(
                "a login does not belong in a URL: give basic_auth: {username: NAME, password: {file: PATH}}"
            )
        return url

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, proxy: str | Secret | None) -> str | Secret | None:
        if not isinstance(proxy, str) or proxy == NO_PROXY:
            return proxy
        if not re.match(URL_PATTERN, proxy):
            raise ValueError(f"give http://HOST:PORT, https://HOST:PORT or {NO_PROXY}")
        if _has_login(proxy):
            raise ValueError("a login does not belong in the fleet file: give {env: NAME} or {file: PATH}")
        return proxy

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str | Secret]) -> dict[str, str | Secret]:
        names = [name.lower() for name in headers]
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a header name")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"{name} cannot be set, because it is derived from the request")
            if name.lower() == "proxy-authorization":
                raise ValueError(f"{name} cannot be set: give the login in the URL that proxy refers to")
            if names.count(name.lower()) > 1:
                raise ValueError(f"{name} is given twice")
            if name.lower() == "authorization" and isinstance(value, str):
                raise ValueError(f"{name}: give {{env: NAME}} or {{file: PATH}}, never the secret itself")
            if isinstance(value, str) and not is_one_line(value):
                raise ValueError(f"{name}: the value has a line break or a control character")
        return headers

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if self.url and self.url_from:
            raise ValueError("give either url or url_from, not both")
        if self.kind != "pagerduty" and not (self.url or self.url_from):
            raise ValueError("give url, or url_from with {env: NAME} or {file: PATH}")
        if (self.kind == "pagerduty") != (self.routing_key is not None):
            raise ValueError("routing_key is required for kind pagerduty and not allowed for other kinds")
        return self

    @model_validator(mode="after")
    def _check_login_and_certificate(self) -> Self:
        if len(self.logins) > 1:
            raise ValueError(f"give only one of {' and '.join(self.logins)}")
        # Raises for a certificate without its key.
        _ = self.tls
        return self

    @property
    def logins(self) -> tuple[str, ...]:
        """The keys that give a login to the receiver."""
        authorization = any(name.lower() == "authorization" for name in self.headers)
        given = {
            "basic_auth": self.basic_auth is not None,
            "bearer": self.bearer is not None,
            "the header Authorization": authorization,
        }
        return tuple(name for name, is_given in given.items() if is_given)

    @property
    def identity(self) -> str:
        """What says to whom a POST goes, as JSON, which refers to secrets but does not contain them.

        Logins and headers are a part of it, because services with a single URL for all teams tell them apart
        by these. It stays the same if a notifier gets a name, a proxy or certificates.
        """
        address = self.model_dump_json(include=set(_ADDRESS_KEYS))
        logins = self.model_dump(mode="json", include=set(_LOGIN_KEYS), exclude_none=True)
        given = {key: value for key, value in logins.items() if value}
        return address + (json.dumps(given, sort_keys=True) if given else "")

    @property
    def tls(self) -> Tls:
        """TLS settings of connections to the receiver."""
        return Tls(ca=self.ca, certificate=self.certificate, key=self.key, key_password=self.key_password)

    def read_url(self) -> str:
        """Return the URL, read from ``url_from`` if that is given.

        Raises: SecretError if the secret cannot be read.
        """
        return self.url_from.read().strip() if self.url_from else self.url or _PAGERDUTY_URL


def is_one_line(text: str) -> bool:
    """Return whether text may be part of an HTTP header: neither line break nor control character."""
    return not re.search(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]", text)


def _has_login(url: str) -> bool:
    authority = _AUTHORITY.match(url)
    return authority is not None and "@" in authority[1]
