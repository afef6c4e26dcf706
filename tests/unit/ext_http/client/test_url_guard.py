"""Which servers may be asked: hosts out of variables and redirects, metadata addresses, names with other addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.client.errors import Refused
from ext_http.client.url import Guard, host_is_literal, origin_of
from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_http import Extension

METADATA = [
    "169.254.169.254",
    "[fd00:ec2::254]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "2852039166",
    "0xA9FEA9FE",
    "169.254.43518",
    "metadata.google.internal",
    "Metadata.Google.Internal.",
    "100.100.100.200",
    "169.254.170.2",
]


@pytest.mark.parametrize("host", METADATA)
def test_addresses_at_which_clouds_hand_out_credentials_are_not_asked(host: str, http: Extension) -> None:
    result = http.failed("request", url=f"http://{host}/latest/meta-data/", timeout="5s")
    assert "clouds serve credentials" in result.error
    assert '"allowHosts"' in result.error


@pytest.mark.parametrize("host", ["0251.0376.0251.0376", "\N{FULLWIDTH DIGIT ONE}69.254.169.254"])
def test_spellings_that_are_no_host_are_refused(host: str, http: Extension) -> None:
    assert "expected a URL" in http.refused("request", url=f"http://{host}/")


def test_a_name_that_has_such_an_address_is_not_asked_either(http: Extension) -> None:
    result = http.failed("request", url="http://innocent.test/", resolve={"innocent.test": "169.254.169.254"})
    assert "innocent.test is refused" in result.error


def test_they_are_asked_where_allow_hosts_names_them() -> None:
    for pattern in ("169.254.169.254", "169.254.169.254:80", "[fd00:ec2::254]"):
        host = pattern.removesuffix(":80").strip("[]")
        Guard((pattern,), (host, 80)).check_host(host, 80)
        Guard((pattern,), (host, 80)).check_address(host, 80, host)
    for pattern in ("*", "*.254", "169.254.169.254:81"):
        with pytest.raises(Refused, match="credentials"):
            Guard((pattern,), ("169.254.169.254", 80)).check_host("169.254.169.254", 80)


def test_a_host_that_stands_in_the_task_may_be_asked_wherever_it_is(http: Extension, stub: Stub) -> None:
    http.get(stub.says("/", "x"))
    http.get(f"http://localhost:{stub.port}/")


def test_a_host_out_of_a_variable_is_not_asked(http: Extension, stub: Stub) -> None:
    stub.json("/where", {"next": stub.url("/secret"), "host": stub.address, "port": stub.port, "path": "secret"})
    stub.says("/secret", "gold")
    names = ("next", "host", "port", "path")
    http.get(stub.url("/where"), capture={name: {"json": f"$.{name}"} for name in names}, **{"as": "told"})
    asked = len(stub.asked)
    for url in ("${told.next}", "http://${told.host}/secret", "http://127.0.0.1:${told.port}/secret"):
        result = http.failed("request", url=url)
        assert "comes from a variable or a redirect, the task does not name it" in result.error
        assert f'"allowHosts": ["{stub.address}"], or "127.0.0.1" for all of its ports' in result.error
        assert len(stub.asked) == asked
        assert http.get(url, allowHosts=[stub.address]).outputs["body"] == "gold"
        asked = len(stub.asked)
    assert http.get(f"{stub.origin}/${{told.path}}").outputs["body"] == "gold"


def test_allow_hosts_itself_takes_no_variables(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/where", {"host": stub.address}), capture={"host": {"json": "$.host"}}, **{"as": "told"})
    assert http.call("request", {"url": "http://${told.host}/", "allowHosts": ["127.0.0.1"]}).outputs["status"] == "404"
    refused = http.refused("request", url="http://${told.host}/", allowHosts=["${told.host}"])
    assert "expected a host" in refused


def test_a_value_can_not_move_the_url_to_another_host(http: Extension, stub: Stub) -> None:
    values = {
        "at": "@evil.test/",
        "user": "x@evil.test",
        "slash": "/../..//evil.test/",
        "back": "\\evil.test",
        "hash": "#",
    }
    capture = {name: {"json": f"$.{name}"} for name in values}
    http.get(stub.json("/values", values), capture=capture, **{"as": "bad"})
    for name in values:
        http.call("request", {"url": f"{stub.origin}/${{bad.{name}}}"})
        http.call("request", {"url": f"{stub.origin}/?q=${{bad.{name}}}"})
        args = {"url": f"{stub.origin}${{bad.{name}}}"}
        answer = http.peer.execute("request", args, workdir=str(http.workdir))
        assert '"success":true' not in repr(answer).replace(" ", "").replace("'", '"').replace("True", "true")
    assert len(stub.asked) == 1 + 2 * len(values)


def test_the_configuration_may_allow_hosts(fresh: Callable[..., Extension], stub: Stub) -> None:
    http = fresh({"allowHosts": ["127.0.0.1"]})
    http.get(stub.json("/where", {"next": stub.url("/where")}), capture={"next": {"json": "$.next"}}, **{"as": "told"})
    http.get("${told.next}")


@pytest.mark.parametrize(
    ("given", "expanded", "literal"),
    [
        ("http://a.test/x", "http://a.test/x", True),
        ("http://a.test/${v.x}", "http://a.test/1", True),
        ("http://a.test:80/${v.x}", "http://a.test:80/1", True),
        ("http://a.test?x=${v.x}", "http://a.test?x=1", True),
        ("http://a.test${v.x}", "http://a.test/1", False),
        ("http://${v.x}/", "http://a.test/", False),
        ("${v.x}", "http://a.test/", False),
        ("${v.x}://a.test/", "http://a.test/", False),
        ("http://a.${v.x}/y", "http://a.test/y", False),
        ("http://u:${v.x}@a.test/", "http://u:p@evil.test/@a.test/", False),
    ],
)
def test_whether_a_host_stands_in_the_task(given: str, expanded: str, literal: bool) -> None:
    assert host_is_literal(given, expanded) is literal


@pytest.mark.parametrize("pattern", ["api.test", "API.test", "api.test:443", "*.test", "*", "*.test:443"])
def test_patterns_that_match(pattern: str) -> None:
    Guard((pattern.lower(),)).check_host("api.test", 443)


@pytest.mark.parametrize("pattern", ["test", "pi.test", "api.test:80", "*.api.test", "*.est", "api.test.evil"])
def test_patterns_that_do_not(pattern: str) -> None:
    with pytest.raises(Refused):
        Guard((pattern,)).check_host("api.test", 443)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.0.1", "::1", "fe80::1%eth0", "0.0.0.0", "fc00::1"]
)
def test_a_wildcard_does_not_open_private_addresses(address: str) -> None:
    for pattern in ("*.test", "*"):
        with pytest.raises(Refused, match="private"):
            Guard((pattern,)).check_address("api.test", 80, address)
    Guard(("*.test",)).check_address("api.test", 80, "93.184.216.34")
    Guard(("api.test",)).check_address("api.test", 80, address)
    Guard((), ("api.test", 80)).check_address("api.test", 80, address)


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(http: Extension, stub: Stub) -> None:
    stub.says("/", "x")
    url = f"http://inner.test:{stub.port}/"
    assert http.get(url, resolve={"inner.test": "127.0.0.1"}).outputs["body"] == "x"
    assert http.get(url, resolve={f"inner.test:{stub.port}": "127.0.0.1"}).outputs["body"] == "x"
    assert stub.asked[-1].header("host") == f"inner.test:{stub.port}"
    http.get(stub.json("/where", {"next": url}), capture={"next": {"json": "$.next"}}, **{"as": "told"})
    result = http.failed("request", url="${told.next}", resolve={"inner.test": "127.0.0.1"}, allowHosts=["*.test"])
    assert "its address 127.0.0.1 is private" in result.error


def test_a_unicode_name_is_the_one_that_is_asked() -> None:
    assert str(origin_of("http://[::1]:81/x")) == "http://[::1]:81"
    assert origin_of("HTTPS://Shop.TEST/x") == ("https", "shop.test", 443)


def test_an_ipv6_server_can_be_asked(http: Extension) -> None:
    with Stub(host="::1") as stub:
        http.get(stub.says("/", "six"), expect={"body": "six"})
