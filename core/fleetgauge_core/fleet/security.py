"""How a client shows a cluster who it is, and knows the cluster. Secrets are named here, never written."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from fleetgauge_core.fleet.frozen import Frozen

#: When a file last changed, and which it is; None where there is none.
Stamp = tuple[int, int] | None

URL = r"^https?://"


class SecretError(ValueError):
    """A secret cannot be read; where it should be and why, in one line without it."""


def _beside_the_fleet_file(path: Path, info: ValidationInfo) -> Path:
    return info.context["folder"] / path if info.context else path


#: Relative to the fleet file, if it is read from one.
BesideTheFleetFile = Annotated[Path, AfterValidator(_beside_the_fleet_file)]


class Secret(Frozen):
    """Where a secret is: in a variable of the environment, or in a file, which may change while we run."""

    env: str | None = Field(
        default=None, description="The variable that holds it.", examples=["ORDERS_PASSWORD"]
    )
    file: BesideTheFleetFile | None = Field(
        default=None,
        description="The file that holds it, relative to this one; a line break at its end is left out.",
        examples=["/run/secrets/orders-password"],
    )

    @model_validator(mode="before")
    @classmethod
    def _is_a_reference(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("wanted: {env: NAME} or {file: PATH}, never the secret itself")
        return value

    @model_validator(mode="after")
    def _is_in_one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("wanted: one of env and file")
        return self

    def read(self) -> str:
        """As it is now. Raises SecretError."""
        if self.file is None:
            return self._from_environment(self.env or "")
        try:
            text = self.file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise SecretError(f"the secret in {self.file} cannot be read: {reason}") from error
        if not text:
            raise SecretError(f"the secret in {self.file} is empty")
        return text

    @staticmethod
    def _from_environment(name: str) -> str:
        if not os.environ.get(name):
            raise SecretError(f"the environment variable {name} is not set: it should hold a secret")
        return os.environ[name]


class Tls(Frozen):
    """How the connection is encrypted; `{}` trusts the authorities that this machine trusts."""

    ca: BesideTheFleetFile | None = Field(
        default=None,
        description="A PEM file of the authorities that are trusted, instead of this machine's.",
        examples=["tls/authorities.pem"],
    )
    certificate: BesideTheFleetFile | None = Field(
        default=None,
        description="A PEM file of our own certificate and those up to its authority (mTLS).",
        examples=["tls/fleetgauge.pem"],
    )
    key: BesideTheFleetFile | None = Field(
        default=None, description="A PEM file of its private key (PKCS #8).", examples=["tls/fleetgauge.key"]
    )
    key_password: Secret | None = Field(default=None, description="What the key is encrypted with.")

    @model_validator(mode="after")
    def _certificate_and_key_go_together(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key go together: give both or none")
        if self.key_password and self.key is None:
            raise ValueError("key_password is of no use without key")
        return self

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (self.key_password,) if self.key_password else ()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for file in (self.ca, self.certificate, self.key) if file)


class Sasl(Frozen):
    """A name and a password."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        description="How the password is shown; PLAIN hands it over.", examples=["SCRAM-SHA-512"]
    )
    username: str = Field(min_length=1, description="Who we are.", examples=["fleetgauge"])
    password: Secret = Field(description="Where the password is.")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (self.password,)


class OAuth(Frozen):
    """Tokens of an OAuth 2.0 server, by client credentials (RFC 6749, section 4.4): OAUTHBEARER."""

    token_url: str = Field(
        pattern=URL,
        description="Where tokens are asked for.",
        examples=["https://login.example/oauth2/token"],
    )
    client_id: str = Field(min_length=1, description="Who we are.", examples=["fleetgauge"])
    client_secret: Secret = Field(description="Where the client's secret is.")
    scope: str | None = Field(default=None, description="What the token is for.", examples=["kafka"])

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (self.client_secret,)


class Security(Frozen):
    """What a listener asks for; without any of it: neither encryption nor a name."""

    tls: Tls | None = Field(default=None, description="Encryption. Without it there is none.")
    sasl: Sasl | None = Field(default=None, description="Who we are, by a name and a password.")
    oauth: OAuth | None = Field(default=None, description="Who we are, by tokens; instead of `sasl`.")

    @model_validator(mode="after")
    def _shows_one_identity(self) -> Self:
        if self.sasl and self.oauth:
            raise ValueError("wanted: one of sasl and oauth")
        return self

    @property
    def protocol(self) -> str:
        """Kafka's name of it."""
        return f"{'SASL_' if self.sasl or self.oauth else ''}{'SSL' if self.tls else 'PLAINTEXT'}"

    @property
    def files(self) -> Iterator[Path]:
        """Every file that it is read from."""
        for part in (self.tls, self.sasl, self.oauth):
            for secret in part.secrets if part else ():
                if secret.file:
                    yield secret.file
        yield from self.tls.files if self.tls else ()


#: Of a listener that asks for nothing.
OPEN = Security()


@dataclass(frozen=True, slots=True)
class Access:
    """Where a cluster is found, and what it asks of a client."""

    bootstrap: str
    security: Security = OPEN

    def stamps(self) -> tuple[Stamp, ...]:
        """Others once a secret or a certificate has been replaced."""
        return tuple(stamp(file) for file in self.security.files)


def stamp(file: Path) -> Stamp:
    """Another for another content, as far as a file's time of change can tell."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
