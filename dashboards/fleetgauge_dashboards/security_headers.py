"""What the server sends and takes so that a page runs no script but its own (OWASP, secure headers).

Questions are asked with a token that only the server's own pages can read: a cookie's, sent back as a header
(OWASP, double-submit cookie), which Dash does by itself.
"""

import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from dash import Dash
from flask import Response, request
from werkzeug.exceptions import InternalServerError

from fleetgauge_dashboards.identity import Person

#: A callback's question is a few kB.
LONGEST_BODY = 1_000_000
#: What asks here is no person.
_OF_MACHINES = ("/livez", "/readyz", "/metrics")
#: Dash answers callbacks here; nothing else is asked by POST.
_JSON = "application/json"
#: As Dash reads and sends it.
TOKEN_COOKIE, TOKEN_HEADER = "_csrf_token", "X-CSRFToken"


def add(app: Dash, who: Callable[[], Person | None]) -> None:
    """Headers on every answer; strangers, questions of other sites and overlong ones are refused in one line.

    After all callbacks, for the scripts that start Dash are known by then.
    """
    policy = "; ".join((*_POLICY, " ".join(("script-src 'self'", *app.csp_hashes()))))
    app.server.config["MAX_CONTENT_LENGTH"] = LONGEST_BODY

    def refuse() -> Response | None:
        if request.path not in _OF_MACHINES and who() is None:
            return Response("who are you? The proxy in front has not said\n", 401, mimetype="text/plain")
        if request.method != "POST":
            return None
        if not _same_site(request.headers.get("Origin"), request.host):
            return Response("this server answers its own pages only\n", 403, mimetype="text/plain")
        if request.mimetype != _JSON:
            return Response(f"a question is sent as {_JSON}\n", 415, mimetype="text/plain")
        if not _has_token():
            said = "this question came without its page's token: load the page anew\n"
            return Response(said, 403, mimetype="text/plain")
        return None

    def guard(answer: Response) -> Response:
        answer.headers.update(_HEADERS)
        answer.headers["Content-Security-Policy"] = policy
        if answer.mimetype == "text/html" and TOKEN_COOKIE not in request.cookies:
            token = secrets.token_urlsafe(32)
            answer.set_cookie(TOKEN_COOKIE, token, samesite="Strict", secure=request.is_secure)
        return answer

    app.server.before_request(refuse)
    app.server.after_request(guard)
    app.server.register_error_handler(InternalServerError, _no_answer)


def _has_token() -> bool:
    cookie, header = request.cookies.get(TOKEN_COOKIE, ""), request.headers.get(TOKEN_HEADER, "")
    return bool(cookie) and secrets.compare_digest(cookie.encode(), header.encode())


def _no_answer(_error: InternalServerError) -> Response:
    """What nobody foresaw, a callback's malformed question among it; the log has the rest."""
    return Response(
        "this question could not be answered; the server's log says why\n", 500, mimetype="text/plain"
    )


#: Styles are written into elements by the charts and the table; nothing comes from elsewhere.
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
    """A browser tells where a POST comes from; what is no browser sends no cookie either."""
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False
