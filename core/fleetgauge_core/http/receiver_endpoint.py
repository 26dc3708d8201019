"""The receiver of a notifier as an HTTP endpoint: from the settings of the fleet file to a request.

Secrets, certificates and the environment are read for each request, so that a renewed one needs no restart.
Files such as .netrc or pip's and curl's settings are never read.
"""

import base64
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin

from urllib3.exceptions import LocationValueError
from urllib3.util import Url, parse_url

from fleetgauge_core.fleet import (
    NO_PROXY,
    Notifier,
    Secret,
    SecretError,
    Tls,
    explain_tls_error,
    is_one_line,
    load_tls_context,
)
from fleetgauge_core.http.exchange import HttpFailureError, HttpProxy, HttpRequest, HttpResponse, exchange
from fleetgauge_core.http.proxy_choice import choose_proxy

_DEFAULT_PORTS = {"http": 80, "https": 443}
#: Redirects that repeat the POST with the same body.
_MOVED = (307, 308)


@dataclass(frozen=True, slots=True)
class ReceiverEndpoint:
    """Sends requests to the receiver of a notifier."""

    notifier: Notifier
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def post(self, path: str, body: object) -> HttpResponse:
        """POST a body as JSON to the notifier's URL and ``path``.

        A redirect is followed within the same host only: another one may lead to a login page, where 200 does
        not mean that the body was accepted.

        Raises: SecretError if a secret cannot be read, HttpFailureError if there is no response.
        """
        content = encode_body(body)
        url, login = self._read_url()
        headers = {"Content-Type": "application/json", **self._read_headers(login)}
        address = _append_path(url, path)
        response = exchange(self._build_request("POST", address, headers, content))
        if response.status not in _MOVED or not response.location:
            return response
        target = redirect_target(address.url, response.location)
        if target is None:
            return response
        return exchange(self._build_request("POST", _parse_url(target), headers, content))

    def get(self, path: str) -> HttpResponse:
        """GET a path below the notifier's URL, with its login. Raises: SecretError, HttpFailureError."""
        url, login = self._read_url()
        return exchange(self._build_request("GET", _append_path(url, path), self._read_headers(login), None))

    def probe(self) -> HttpResponse:
        """Request the root of the receiver's host by HEAD, without path and login, which notifies nobody.

        All secrets are read as for a notification. Raises: SecretError, HttpFailureError.
        """
        return exchange(self._build_probe())

    def check_settings(self) -> None:
        """Read all secrets and certificates as for a request, which is not sent.

        Raises: SecretError, HttpFailureError for one that cannot be used.
        """
        self._build_probe()

    def _build_probe(self) -> HttpRequest:
        url, login = self._read_url()
        self._read_headers(login)
        if self.notifier.routing_key:
            self.notifier.routing_key.read()
        return self._build_request("HEAD", url._replace(path="/", query=None, fragment=None), {}, None)

    def _build_request(
        self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None
    ) -> HttpRequest:
        proxy = self._choose_proxy(url)
        tls = self._load_tls() if url.scheme == "https" else None
        return HttpRequest(method, url.url, headers, body, proxy, tls)

    def _read_url(self) -> tuple[Url, str | None]:
        """Return the URL without its login, and the login as a value of Authorization."""
        url = _parse_url(self.notifier.read_url())
        login = _encode_login(url.auth) if url.auth else None
        if login and self.notifier.logins:
            raise HttpFailureError(f"the URL has a login, but {self.notifier.logins[0]} is given too")
        return url._replace(auth=None), login

    def _read_headers(self, login: str | None) -> dict[str, str]:
        notifier = self.notifier
        headers = {
            name: _encode(value if isinstance(value, str) else _read_line(value))
            for name, value in notifier.headers.items()
        }
        if notifier.basic_auth:
            login = _basic(notifier.basic_auth.username, _read_line(notifier.basic_auth.password))
        elif notifier.bearer:
            login = f"Bearer {_encode(_read_line(notifier.bearer))}"
        return {**headers, **({"Authorization": login} if login else {})}

    def _choose_proxy(self, url: Url) -> HttpProxy | None:
        setting = self.notifier.proxy
        if isinstance(setting, Secret):
            setting = _read_line(setting)
        if setting is None:
            scheme = url.scheme or ""
            port = url.port or _DEFAULT_PORTS[scheme]
            setting = choose_proxy(scheme, (url.host or "").strip("[]"), port, self.environment)
        if setting is None or setting == NO_PROXY:
            return None
        return self._parse_proxy(setting)

    def _parse_proxy(self, setting: str) -> HttpProxy:
        try:
            url = parse_url(setting)
        except LocationValueError:
            url = Url()
        if url.scheme not in _DEFAULT_PORTS or not url.host:
            raise HttpFailureError("proxy: its URL is not http://HOST:PORT or https://HOST:PORT")
        tls = self._load_proxy_tls() if url.scheme == "https" else None
        authorization = _encode_login(url.auth) if url.auth else None
        return HttpProxy(
            url._replace(auth=None, path=None, query=None, fragment=None).url, authorization, tls
        )

    def _load_tls(self) -> ssl.SSLContext:
        return _load_context(self.notifier.tls)

    def _load_proxy_tls(self) -> ssl.SSLContext:
        """Return a context that also trusts the authorities of the system, of which the proxy may be."""
        context = _load_context(Tls(ca=self.notifier.ca))
        context.load_default_certs()
        return context


def encode_body(body: object) -> bytes:
    """Return a body as compact JSON in UTF-8."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def redirect_target(url: str, location: str) -> str | None:
    """Return the redirect's URL; None if it is invalid, or not safe to send secrets to."""
    try:
        target = urljoin(url, location)
        before, after = parse_url(url), parse_url(target)
    except ValueError:
        return None
    if after.host != before.host:
        return None
    # Another port of the host may be another user's service.
    is_same = (after.scheme, _port(after)) == (before.scheme, _port(before))
    is_upgrade = [(url.scheme, _port(url)) for url in (before, after)] == [("http", 80), ("https", 443)]
    return after._replace(auth=None).url if is_same or is_upgrade else None


def _port(url: Url) -> int | None:
    return url.port or _DEFAULT_PORTS.get(url.scheme or "")


def _parse_url(text: str) -> Url:
    try:
        url = parse_url(text)
    except LocationValueError:
        raise HttpFailureError("the URL is invalid") from None
    if url.scheme not in _DEFAULT_PORTS or not url.host:
        raise HttpFailureError("the URL is not http://HOST... or https://HOST...")
    return url


def _append_path(url: Url, path: str) -> Url:
    return url._replace(path=(url.path or "").rstrip("/") + path) if path else url


def _load_context(tls: Tls) -> ssl.SSLContext:
    try:
        return load_tls_context(tls)
    except OSError as error:
        raise HttpFailureError(f"TLS cannot be set up: {explain_tls_error(tls, error)}") from None


def _encode_login(userinfo: str) -> str:
    """Return the login of a URL, which is percent-encoded, as a value of Authorization."""
    username, _, password = userinfo.partition(":")
    return _basic(unquote(username), unquote(password))


def _basic(username: str, password: str) -> str:
    """Return a value of Authorization (RFC 7617, with UTF-8)."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


def _read_line(secret: Secret) -> str:
    """Return a secret that goes into a header. Raises: SecretError."""
    text = secret.read()
    if not is_one_line(text):
        raise SecretError(
            f"the secret in {secret.file or secret.env} must be one line without control characters"
        )
    return text


def _encode(text: str) -> str:
    """Return text as clients want it that write headers in Latin-1, so that UTF-8 is sent."""
    return text.encode().decode("latin-1")
