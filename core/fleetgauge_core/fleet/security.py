"""Security settings of connections. They refer to secrets but never contain them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.fleet.field_types import URL_PATTERN
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.runtime.home_folder import expand_home

#: Modification time in ns and inode number of a file; None if the file does not exist.
FileVersion = tuple[int, int] | None


class SecretError(OperationalError):
    """A secret cannot be read; the message is one line with its location and the reason."""


def _resolve_path(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and "\0" in value:
        # Every use of such a path raises ValueError.
        raise ValueError("a path has no NUL character")
    return info.context["folder"] / expand_home(value) if info.context and isinstance(value, str) else value


#: A path that is relative to the folder of the fleet file; a leading `~` is the home folder.
FleetFilePath = Annotated[Path, BeforeValidator(_resolve_path)]


class Secret(FrozenModel):
    """Reference to a secret in an environment variable, or in a file that may change while a process runs."""

    env: str | None = Field(
        default=None,
        description="Name of the environment variable that holds the secret.",
        examples=["ORDERS_PASSWORD"],
    )
    file: FleetFilePath | None = Field(
        default=None,
        description="File that holds the secret, relative to this file; a trailing line break is ignored.",
        examples=["/run/secrets/orders-password"],
    )

    @model_validator(mode="before")
    @classmethod
    def _check_is_reference(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("give {env: NAME} or {file: PATH}, never the secret itself")
        return value

    @model_validator(mode="after")
    def _check_has_one_location(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file")
        return self

    def read(self) -> str:
        """Return the current value of the secret.

        Raises: SecretError if it is missing, empty or not UTF-8.
        """
        if self.file is None:
            return self._require_text(self._read_environment(self.env or ""), f"variable {self.env}")
        try:
            # Some editors begin a file with a byte order mark, which is never meant as part of a secret.
            text = self.file.read_text(encoding="utf-8-sig").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise SecretError(f"the secret in {self.file} cannot be read: {reason}") from error
        return self._require_text(text, str(self.file))

    @staticmethod
    def _require_text(text: str, where: str) -> str:
        if not text.strip():
            # An empty token would match a request that gives none.
            raise SecretError(f"the secret in {where} is empty")
        return text

    @staticmethod
    def _read_environment(name: str) -> str:
        if not os.environ.get(name):
            raise SecretError(f"the environment variable {name} is not set; it must hold a secret")
        return os.environ[name]


def _check_text_or_reference(value: Any, info: ValidationInfo) -> str | Secret:
    """Return the value; errors name the key itself, not the alternatives of a union."""
    if isinstance(value, str | Secret):
        return value
    if not isinstance(value, dict):
        raise ValueError("give text, {env: NAME} or {file: PATH}")
    return Secret.model_validate(value, context=info.context)


#: Text that is no secret, or a reference to a secret.
TextOrSecret = Annotated[
    str | Secret, BeforeValidator(_check_text_or_reference, json_schema_input_type=str | Secret)
]


CaFile = Annotated[
    FleetFilePath | None,
    Field(
        description="PEM file with the trusted certificate authorities, instead of those of the system.",
        examples=["tls/authorities.pem"],
    ),
]
CertificateFile = Annotated[
    FleetFilePath | None,
    Field(
        description="PEM file with the client certificate and its intermediate certificates (mTLS).",
        examples=["tls/fleetgauge.pem"],
    ),
]
KeyFile = Annotated[
    FleetFilePath | None,
    Field(
        description="PEM file with the private key of the client certificate (PKCS #8).",
        examples=["tls/fleetgauge.key"],
    ),
]
KeyPassword = Annotated[Secret | None, Field(description="Password of the private key.")]


class Tls(FrozenModel):
    """TLS settings of a connection; `{}` trusts the certificate authorities of the system."""

    ca: CaFile = None
    certificate: CertificateFile = None
    key: KeyFile = None
    key_password: KeyPassword = None

    @model_validator(mode="after")
    def _check_certificate_and_key(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("give certificate and key together, or neither")
        if self.key_password and self.key is None:
            raise ValueError("key_password requires key")
        return self

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """References to all secrets of these settings."""
        return (self.key_password,) if self.key_password else ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are given."""
        return tuple(file for file in (self.ca, self.certificate, self.key) if file)


class Sasl(FrozenModel):
    """SASL authentication with a user name and a password."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        description="SASL mechanism; PLAIN sends the password itself.", examples=["SCRAM-SHA-512"]
    )
    username: str = Field(min_length=1, description="User name.", examples=["fleetgauge"])
    password: Secret = Field(description="Reference to the password.")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """References to all secrets of these settings."""
        return (self.password,)


class OAuth(FrozenModel):
    """SASL/OAUTHBEARER with tokens of an OAuth 2.0 server: client credentials grant, RFC 6749 section 4.4."""

    token_url: str = Field(
        pattern=URL_PATTERN,
        description="URL of the token endpoint.",
        examples=["https://login.example/oauth2/token"],
    )
    client_id: str = Field(min_length=1, description="Client id.", examples=["fleetgauge"])
    client_secret: Secret = Field(description="Reference to the client secret.")
    scope: str | None = Field(default=None, description="Scope of the tokens.", examples=["kafka"])

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """References to all secrets of these settings."""
        return (self.client_secret,)


class Security(FrozenModel):
    """Security settings of a listener; by default neither encryption nor authentication."""

    tls: Tls | None = Field(
        default=None, description="TLS settings; without them, connections are not encrypted."
    )
    sasl: Sasl | None = Field(default=None, description="Authentication with a user name and a password.")
    oauth: OAuth | None = Field(default=None, description="Authentication with tokens, instead of `sasl`.")

    @model_validator(mode="after")
    def _check_has_one_identity(self) -> Self:
        if self.sasl and self.oauth:
            raise ValueError("give either sasl or oauth, not both")
        return self

    @property
    def protocol(self) -> str:
        """Value of the Kafka client property security.protocol."""
        return f"{'SASL_' if self.sasl or self.oauth else ''}{'SSL' if self.tls else 'PLAINTEXT'}"

    @property
    def files(self) -> Iterator[Path]:
        """All files that hold secrets or certificates of these settings."""
        for settings in (self.tls, self.sasl, self.oauth):
            for secret in settings.secrets if settings else ():
                if secret.file:
                    yield secret.file
        yield from self.tls.files if self.tls else ()


#: Settings of a listener without encryption and authentication.
NO_SECURITY = Security()


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Bootstrap servers and security settings with which clients connect to a cluster."""

    bootstrap: str
    security: Security = NO_SECURITY

    def file_versions(self) -> tuple[FileVersion, ...]:
        """Return the versions of all secret and certificate files, which differ once one is replaced."""
        return tuple(read_file_version(file) for file in self.security.files)


def read_file_version(file: Path) -> FileVersion:
    """Return the version of a file, which differs once the file has been replaced or modified."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino
