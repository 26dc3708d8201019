"""The proxy for a URL by the environment's variables."""

from urllib.request import proxy_bypass_environment

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.http.proxy_choice import choose_proxy, matches_no_proxy

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("environment", "scheme", "proxy"),
    [
        ({}, "https", None),
        ({"HTTPS_PROXY": PROXY}, "https", PROXY),
        ({"HTTPS_PROXY": PROXY}, "http", None),
        ({"http_proxy": PROXY}, "http", PROXY),
        ({"https_proxy": "", "HTTPS_PROXY": PROXY}, "https", None),
        ({"https_proxy": "http://lower:1", "HTTPS_PROXY": PROXY}, "https", "http://lower:1"),
        ({"HTTPS_PROXY": "proxy.example:3128"}, "https", PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "hooks.example"}, "https", None),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "", "NO_PROXY": "*"}, "https", PROXY),
    ],
)
def test_variables_are_read_as_by_other_programs(
    environment: dict[str, str], scheme: str, proxy: str | None
) -> None:
    assert choose_proxy(scheme, "hooks.example", 443, environment) == proxy


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_needs_no_proxy(host: str) -> None:
    assert choose_proxy("http", host, 9093, {"HTTP_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("host", "port", "no_proxy", "matches"),
    [
        ("hooks.example", 443, "", False),
        ("hooks.example", 443, "*", True),
        ("hooks.example", 443, "other, *", True),
        ("hooks.example", 443, "example", True),
        ("hooks.example", 443, ".example", True),
        ("hooks.example", 443, "*.example", True),
        ("Hooks.Example.", 443, " HOOKS.example ,x", True),
        ("hooks.example", 443, "oks.example", False),
        ("hooks.example", 443, "hooks.example:443", True),
        ("hooks.example", 80, "hooks.example:443", False),
        ("hooks.example", 443, "a b hooks.example", True),
        ("10.1.2.3", 443, "10.0.0.0/8", True),
        ("11.1.2.3", 443, "10.0.0.0/8", False),
        ("10.1.2.3", 443, "10.1.2.3", True),
        ("10.1.2.3", 9093, "10.1.2.3:9093", True),
        ("10.1.2.3", 443, "10.1.2.3/99, 2.3", False),
        ("fd00::5", 443, "fd00::/8", True),
        ("fd00::5", 443, "[fd00::5]", True),
        ("fd00::5", 443, "[fd00::5]:443", True),
        ("fd00::5", 80, "[fd00::5]:443", False),
        ("fd00::5", 443, "fd00:0::5", True),
        ("fd00::5", 443, "10.0.0.0/8", False),
        ("hooks.example", 443, "10.0.0.0/8,:443,.", False),
    ],
)
def test_no_proxy_lists_domains_addresses_networks_and_ports(
    host: str, port: int, no_proxy: str, matches: bool
) -> None:
    assert matches_no_proxy(host, port, no_proxy) is matches


LABELS = st.sampled_from(["a", "b", "hooks", "example"])
DOMAINS = st.lists(LABELS, min_size=1, max_size=3).map(".".join)
ENTRIES = st.builds(
    lambda dot, domain, port: f"{dot}{domain}{port}",
    st.sampled_from(["", "."]),
    DOMAINS,
    st.sampled_from(["", ":80", ":443"]),
)


@given(DOMAINS, st.sampled_from([80, 443]), st.lists(ENTRIES).map(", ".join))
def test_domains_match_as_in_the_standard_library(host: str, port: int, no_proxy: str) -> None:
    expected = bool(proxy_bypass_environment(f"{host}:{port}", {"no": no_proxy}))
    assert matches_no_proxy(host, port, no_proxy) == expected


@given(st.text(max_size=40), st.text(max_size=20))
def test_no_value_of_the_variable_is_an_error(no_proxy: str, host: str) -> None:
    assert matches_no_proxy(host, 443, no_proxy) in (True, False)
