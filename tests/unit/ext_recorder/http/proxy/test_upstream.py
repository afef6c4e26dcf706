"""Servers in lists like NO_PROXY, and the proxies of a user."""

from __future__ import annotations

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.http.proxy.upstream import Origin, ParentProxies, is_listed

SERVER = Origin("https", "api.example.com", 443)


@pytest.mark.parametrize(
    ("entry", "host", "listed"),
    [
        ("example.com", "example.com", True),
        ("example.com", "api.Example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("*", "anything", True),
        ("example.com:443", "example.com", True),
        ("example.com:80", "example.com", False),
        ("ample.com", "example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("::1", "::1", True),
        ("[::1]:443", "::1", True),
        ("[::1]:80", "::1", False),
        ("", "example.com", False),
    ],
)
def test_entries_of_a_list_of_servers(entry: str, host: str, *, listed: bool) -> None:
    assert is_listed(Origin("https", host, 443), [entry]) is listed


def test_names_in_lower_case_take_precedence() -> None:
    parent = ParentProxies({"HTTPS_PROXY": "http://one:1", "https_proxy": "http://two:2"}).of(SERVER)
    assert parent is not None
    assert parent.origin == Origin("http", "two", 2)


def test_a_proxy_has_its_login_and_forms_of_requests() -> None:
    proxies = ParentProxies({"http_proxy": "http://a:b%20c@proxy:3128", "no_proxy": "internal, .corp"})
    parent = proxies.of(Origin("http", "example.com", 80))
    assert parent is not None
    line = b"Proxy-Authorization: Basic YTpiIGM=\r\n"
    expected = b"GET http://example.com/x?y HTTP/1.1\r\n" + line + b"Host: example.com\r\n\r\n"
    request = b"GET /x?y HTTP/1.1\r\nHost: example.com\r\n\r\n"
    assert parent.absolute(request, Origin("http", "example.com", 80)) == expected
    tunnel = b"CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n" + line + b"\r\n"
    assert parent.connect_request("x:443") == tunnel
    for host in ("internal", "a.corp", "127.0.0.1", "localhost"):
        assert proxies.of(Origin("http", host, 80)) is None
    assert proxies.of(SERVER) is None


@pytest.mark.parametrize("url", ["socks5://user:secret@proxy:1080", "https://proxy", "http://proxy:x"])
def test_other_proxies_are_refused_without_their_login(url: str) -> None:
    with pytest.raises(UsageError, match=r"only http://HOST:PORT is supported") as caught:
        ParentProxies({"ALL_PROXY": url}).check()
    assert "secret" not in str(caught.value)
