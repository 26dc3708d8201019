"""Security headers and request checks (OWASP Secure Headers Project).

The Content-Security-Policy lets a page run no scripts but the server's own. A callback's POST request must
repeat the token of a cookie in a header (OWASP, double-submit cookie), which Dash's client does by itself.
"""

import logging
import secrets
from collections.abc import Callable

from dash import Dash
from flask import Response, request
from werkzeug.exceptions import InternalServerError, MethodNotAllowed

from fleetgauge_dashboards.identity import Login, LoopbackLogin, RequestOrigin, User, restrict_to_own_pages
from fleetgauge_dashboards.site_address import SiteAddress, parse_host
from fleetgauge_dashboards.wsgi_bridge import MAX_BODY_BYTES

#: Endpoints for load balancers and Prometheus, served without a login.
_MACHINE_PATHS = ("/livez", "/readyz", "/metrics")
#: Content type of callback requests; no other request uses POST.
_JSON = "application/json"
#: The names that Dash's client uses.
TOKEN_COOKIE, TOKEN_HEADER = "_csrf_token", "X-CSRFToken"
_log = logging.getLogger("fleetgauge.dash")


def identify_requests(login: Login, site: SiteAddress) -> Callable[[], User | None]:
    """Return a function that returns the user of the current request.

    Its first call for a proxied request without a login logs that --user-header is missing.
    """
    is_reported = False

    def identify_user() -> User | None:
        nonlocal is_reported
        origin = RequestOrigin.of(request)
        if isinstance(login, LoopbackLogin) and login.is_proxied(origin) and not is_reported:
            is_reported = True
            _log.warning(
                "a reverse proxy passes requests on, but --user-header is missing: its users only read"
            )
        user = login.identify(origin)
        return user and restrict_to_own_pages(user, origin, site)

    return identify_user


def install(app: Dash, login: Login, site: SiteAddress, identify_user: Callable[[], User | None]) -> None:
    """Set security headers on every response; reject unauthenticated, cross-site and oversized requests.

    Call this after all callbacks are registered: only then are the hashes of Dash's inline scripts known.
    """
    policy = "; ".join((*_POLICY, " ".join(("script-src 'self'", *app.csp_hashes()))))
    app.server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES

    def reject() -> Response | None:
        if (allowed := _allowed_methods()) is not None:
            return _reject_method(allowed)
        if request.path in _MACHINE_PATHS:
            return None
        if isinstance(login, LoopbackLogin) and not site.is_own_host(request.headers):
            return _reject(421, _explain_foreign_host(request.headers["Host"]))
        if identify_user() is None:
            return _reject(401, "not authenticated: the reverse proxy sent no user name")
        return _reject_post(login, site) if request.method == "POST" else None

    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        if response.mimetype == "text/html" and TOKEN_COOKIE not in request.cookies:
            token = secrets.token_urlsafe(32)
            path = request.script_root or "/"
            response.set_cookie(TOKEN_COOKIE, token, path=path, samesite="Strict", secure=request.is_secure)
        return response

    app.server.before_request(reject)
    app.server.after_request(add_headers)
    app.server.register_error_handler(InternalServerError, _respond_to_error)


def _allowed_methods() -> str | None:
    """Return the methods of the requested address if the request's is not one of them, else None.

    Flask itself would answer OPTIONS, which only cross-site requests need.
    """
    error, rule = request.routing_exception, request.url_rule
    if isinstance(error, MethodNotAllowed):
        methods = set(error.valid_methods or ())
    elif request.method == "OPTIONS" and rule is not None:
        methods = set(rule.methods or ())
    else:
        return None
    return ", ".join(sorted(methods - {"OPTIONS"}))


def _reject_method(allowed: str) -> Response:
    response = _reject(405, f"{request.method} is not allowed here: use {allowed}")
    response.headers["Allow"] = allowed
    return response


def _reject(status: int, message: str) -> Response:
    return Response(f"{message}\n", status, mimetype="text/plain")


def _explain_foreign_host(header: str) -> str:
    host = parse_host(header)
    if host is None:
        return "the Host header is malformed"
    return (
        f"{host} is not a name of this server: start fleetgauge dash with --allow-host {host} if it should be"
    )


def _reject_post(login: Login, site: SiteAddress) -> Response | None:
    """Return the response to a callback that no page of this server has sent, else None.

    A reverse proxy may show the pages under a name that it does not pass on. Such a page is recognized by its
    token alone and can only be read (`identity.restrict_to_own_pages`).
    """
    if "Origin" not in request.headers:
        return _reject(403, "no Origin header: send the address of the page, as browsers do")
    is_own = site.is_own_origin(request.headers, request.remote_addr)
    if not is_own and not login.is_proxied(RequestOrigin.of(request)):
        return _reject(403, "cross-site request rejected: open the page from this server")
    if request.mimetype != _JSON:
        return _reject(415, f"unsupported content type: send {_JSON}")
    if not _has_token():
        return _reject(403, "CSRF token missing or wrong: reload the page")
    return None


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
