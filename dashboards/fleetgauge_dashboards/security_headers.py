"""Security headers and request checks (OWASP Secure Headers Project).

The Content-Security-Policy lets a page run no scripts but the server's own. A callback's POST request must
repeat the token of a cookie in a header (OWASP, double-submit cookie), which Dash's client does by itself.
"""

import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from dash import Dash
from flask import Response, request
from werkzeug.exceptions import InternalServerError

from fleetgauge_dashboards.identity import User

#: A callback's request body is a few kB.
MAX_BODY_BYTES = 1_000_000
#: Endpoints for load balancers and Prometheus, served without a login.
_MACHINE_PATHS = ("/livez", "/readyz", "/metrics")
#: Content type of callback requests; no other request uses POST.
_JSON = "application/json"
#: The names that Dash's client uses.
TOKEN_COOKIE, TOKEN_HEADER = "_csrf_token", "X-CSRFToken"


def install(app: Dash, identify_user: Callable[[], User | None]) -> None:
    """Set security headers on every response; reject unauthenticated, cross-site and oversized requests.

    Call this after all callbacks are registered: only then are the hashes of Dash's inline scripts known.
    """
    policy = "; ".join((*_POLICY, " ".join(("script-src 'self'", *app.csp_hashes()))))
    app.server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES

    def reject() -> Response | None:
        if request.path not in _MACHINE_PATHS and identify_user() is None:
            return Response(
                "not authenticated: the reverse proxy sent no user name\n", 401, mimetype="text/plain"
            )
        if request.method != "POST":
            return None
        if not _same_site(request.headers.get("Origin"), request.host):
            return Response(
                "cross-site request rejected: open the page from this server\n", 403, mimetype="text/plain"
            )
        if request.mimetype != _JSON:
            return Response(f"unsupported content type: send {_JSON}\n", 415, mimetype="text/plain")
        if not _has_token():
            return Response("CSRF token missing or wrong: reload the page\n", 403, mimetype="text/plain")
        return None

    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        if response.mimetype == "text/html" and TOKEN_COOKIE not in request.cookies:
            token = secrets.token_urlsafe(32)
            response.set_cookie(TOKEN_COOKIE, token, samesite="Strict", secure=request.is_secure)
        return response

    app.server.before_request(reject)
    app.server.after_request(add_headers)
    app.server.register_error_handler(InternalServerError, _respond_to_error)


def _has_token() -> bool:
    cookie, header = request.cookies.get(TOKEN_COOKIE, ""), request.headers.get(TOKEN_HEADER, "")
    return bool(cookie) and secrets.compare_digest(cookie.encode(), header.encode())


def _respond_to_error(_error: InternalServerError) -> Response:
    """Return a response to an unexpected exception, such as a malformed callback request; the log has it."""
    return Response("the request failed; see the server's log\n", 500, mimetype="text/plain")


#: Plotly and AG Grid write inline styles; everything else comes from this server.
_POLICY = (
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _same_site(origin: str | None, host: str) -> bool:
    """Return whether the request is not cross-site.

    Browsers send Origin with a POST; a client that sends none is no browser and has no cookie to abuse.
    """
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False
