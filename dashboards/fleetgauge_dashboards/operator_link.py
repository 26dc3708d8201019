"""Serve the link that gives a browser the key of operators: /operator?key=KEY."""

from flask import Flask, Response, request

from fleetgauge_dashboards.identity import (
    LINK_ADVICE,
    Login,
    LoopbackLogin,
    RequestOrigin,
    name_operator_cookie,
)
from fleetgauge_dashboards.pages.files import text_response


def register(server: Flask, login: Login) -> None:
    """Register /operator, which sets the cookie that `LoopbackLogin` requires of operators.

    With another login the address is unknown.
    """

    def open_link() -> Response:
        if not isinstance(login, LoopbackLogin):
            return text_response("unknown address", 404)
        if denial := login.find_denial(RequestOrigin.of(request)):
            return text_response(f"no operator: {denial}", 403)
        if not login.is_key(request.args.get("key", "")):
            return text_response(f"wrong or missing key: {LINK_ADVICE}", 403)
        return _hand_over(login.key)

    server.add_url_rule("/operator", "operator", open_link)


def _hand_over(key: str) -> Response:
    """Return a redirection to the fleet page, whose address has no key, with the cookie."""
    headers = {"Location": f"{request.script_root}/", "Cache-Control": "no-store"}
    response = Response("", 303, headers, mimetype="text/plain")
    response.set_cookie(
        name_operator_cookie(request.headers),
        key,
        path=request.script_root or "/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )
    return response
