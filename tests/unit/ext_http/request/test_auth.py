"""Authentication: Basic, Bearer, Digest, OAuth2 client credentials, netrc; values out of the environment."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from ext_http.request.auth import FromEnv, read_pem, resolve_secret, resolve_value
from ext_sdk import InvalidArgs, OperationFailed
from tests.support.http_contexts import context_in
from tests.support.http_stub import Asked, Handler, Stub, echo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.ext_http import Extension

SECRET = "open-sesame-4711"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_user_and_password_in_the_url_are_basic_authentication_and_hidden(http: Extension, stub: Stub) -> None:
    result = http.get(stub.does("/", echo).replace("://", f"://ada:{SECRET}@"))
    assert stub.asked[-1].header("authorization") == basic("ada", SECRET)
    assert SECRET not in repr(result)
    assert basic("ada", SECRET) not in repr(result)
    assert result.outputs["url"] == stub.url("/")


def test_a_secret_comes_from_the_environment_of_the_task_or_of_the_extension(
    fresh: Callable[..., Extension], stub: Stub
) -> None:
    http = fresh(None, {"SHOP_TOKEN": "of-the-extension-1"})
    stub.does("/", echo)
    http.get(stub.url(), auth={"bearer": {"env": "SHOP_TOKEN"}})
    assert stub.asked[-1].header("authorization") == "Bearer of-the-extension-1"
    result = http.call(
        "request", {"url": stub.url(), "auth": {"bearer": {"env": "SHOP_TOKEN"}}}, env={"SHOP_TOKEN": SECRET}
    )
    assert stub.asked[-1].header("authorization") == f"Bearer {SECRET}"
    assert SECRET not in repr(result)
    assert "expected the name of a variable" in http.refused(
        "request", url=stub.url(), auth={"bearer": {"env": "NOPE"}}
    )


def test_secret_headers_and_query_parameters_are_hidden(http: Extension, stub: Stub) -> None:
    result = http.get(
        stub.does("/", echo),
        headers={"X-Api-Key": "header-key-123"},
        secretHeaders={"X-Tenant": "tenant-name-9"},
        query={"api_key": "query-key-123", "page": "visible"},
    )
    for value in ("header-key-123", "tenant-name-9", "query-key-123"):
        assert value not in repr(result), value
    assert "visible" in repr(result)


def _digest(algorithm: Callable[[bytes], object], name: str, password: str) -> Callable[[Handler, Asked], None]:
    def hashed(text: str) -> str:
        return algorithm(text.encode()).hexdigest()  # type: ignore[attr-defined,no-any-return]

    def route(handler: Handler, asked: Asked) -> None:
        given = dict(re.findall(r'(\w+)="?([^",]+)"?', asked.header("authorization") or ""))
        challenge = f'Digest realm="shop", nonce="abc", qop="auth", algorithm={name}, opaque="xyz"'
        if not given:
            handler.answer(401, "who?", {"WWW-Authenticate": challenge})
            return
        ha1, ha2 = hashed(f"ada:shop:{password}"), hashed(f"{asked.method}:{asked.path}")
        wanted = hashed(f"{ha1}:abc:{given['nc']}:{given['cnonce']}:auth:{ha2}")
        good = given["response"] == wanted and given["username"] == "ada"
        handler.answer(200 if good else 403, asked.body or b"in")

    return route


@pytest.mark.parametrize(("algorithm", "name"), [(hashlib.md5, "MD5"), (hashlib.sha256, "SHA-256")])
def test_a_digest_challenge_is_answered(
    algorithm: Callable[[bytes], object], name: str, http: Extension, stub: Stub
) -> None:
    url = stub.does("/a?b=c", _digest(algorithm, name, SECRET))
    auth = {"digest": {"username": "ada", "password": SECRET}}
    assert http.get(url, auth=auth).outputs["body"] == "in"
    assert http.get(url, auth=auth, method="PUT", body={"raw": "data"}).outputs["body"] == "data"
    wrong = {"digest": {"username": "ada", "password": "wrong-password"}}
    assert "got 403" in http.failed("request", url=url, auth=wrong).error


def test_a_digest_that_nobody_can_answer_is_told(http: Extension, stub: Stub) -> None:
    auth = {"digest": {"username": "a", "password": "long-enough"}}
    for fields in ('realm="x", nonce="n", qop="auth-int"', 'realm="x", nonce', 'realm="x", nonce="n", qop="x"'):
        url = stub.says("/", status=401, WWW_Authenticate=f"Digest {fields}")
        assert "digest" in http.failed("request", url=url, auth=auth).error.lower()


class TokenServer:
    """Gives out tokens, each once, and believes the last one."""

    def __init__(self, stub: Stub, **more: object) -> None:
        self.forms: list[Asked] = []
        self.more = more
        self.url = stub.does("/token", self._give)
        self.api = stub.does("/api", self._serve)
        self.valid = ""

    def _give(self, handler: Handler, asked: Asked) -> None:
        self.forms.append(asked)
        self.valid = f"token-number-{len(self.forms)}"
        handler.json({"access_token": self.valid, "token_type": "bearer", **self.more})

    def _serve(self, handler: Handler, asked: Asked) -> None:
        good = asked.header("authorization") == f"Bearer {self.valid}"
        handler.answer(200 if good else 401, "in" if good else "who?")

    def auth(self, **more: object) -> dict[str, object]:
        return {"oauth2": {"tokenUrl": self.url, "clientId": "shop client", "clientSecret": SECRET, **more}}


def test_a_token_for_client_credentials_is_fetched_once_and_used_again(http: Extension, stub: Stub) -> None:
    server = TokenServer(stub, expires_in=3600)
    for _ in range(3):
        result = http.get(server.api, auth=server.auth(scope="read write", audience="api"))
        assert SECRET not in repr(result)
    assert len(server.forms) == 1
    form = parse_qs(server.forms[0].body.decode())
    assert form == {"grant_type": ["client_credentials"], "scope": ["read write"], "audience": ["api"]}
    assert server.forms[0].header("authorization") == basic("shop+client", SECRET)


def test_id_and_secret_can_go_in_the_form(http: Extension, stub: Stub) -> None:
    server = TokenServer(stub)
    http.get(server.api, auth=server.auth(send="body"))
    form = parse_qs(server.forms[0].body.decode())
    assert (form["client_id"], form["client_secret"]) == (["shop client"], [SECRET])
    assert server.forms[0].header("authorization") is None


def test_a_token_that_is_refused_is_fetched_anew(http: Extension, stub: Stub) -> None:
    server = TokenServer(stub, expires_in=3600)
    http.get(server.api, auth=server.auth())
    server.valid = "revoked"
    http.get(server.api, auth=server.auth())
    assert len(server.forms) == 2


def test_a_token_that_has_ended_is_fetched_anew(http: Extension, stub: Stub) -> None:
    server = TokenServer(stub, expires_in=5)
    for _ in range(2):
        http.get(server.api, auth=server.auth())
    assert len(server.forms) == 2


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, '{"error": "invalid_client", "error_description": "no such client"}', "invalid_client no such client"),
        (200, "<html>", "status 200"),
        (200, '{"token_type": "bearer"}', "status 200"),
        (200, '{"access_token": "abc-def-ghi", "token_type": "mac"}', "type 'mac'"),
        (500, "", "status 500"),
    ],
)
def test_no_token_is_told(status: int, body: str, told: str, http: Extension, stub: Stub) -> None:
    url = stub.says("/token", body, status=status)
    auth = {"oauth2": {"tokenUrl": url, "clientId": "shop", "clientSecret": SECRET}}
    result = http.failed("request", url=stub.says("/api"), auth=auth)
    assert told in result.error
    assert SECRET not in repr(result)
    assert [asked.path for asked in stub.asked] == ["/token"]


def test_a_token_server_that_starts_is_waited_for(http: Extension, stub: Stub) -> None:
    server = TokenServer(stub)
    count = iter(range(100))
    stub.does("/t", lambda handler, asked: handler.answer(503) if next(count) < 2 else server._give(handler, asked))
    auth = {"oauth2": {"tokenUrl": stub.url("/t"), "clientId": "shop", "clientSecret": SECRET}}
    assert http.ok("wait", url=server.api, auth=auth, interval="1ms").outputs["attempts"] == "3"


def test_a_token_server_out_of_a_variable_is_not_asked(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/w", {"next": stub.url("/t")}), capture={"next": {"json": "$.next"}}, **{"as": "told"})
    auth = {"oauth2": {"tokenUrl": "${told.next}", "clientId": "shop", "clientSecret": SECRET}}
    assert "allowHosts" in http.failed("request", url=stub.url(), auth=auth).error
    assert len(stub.asked) == 1


def test_netrc_is_read_where_it_is_named_and_only_there(fresh: Callable[..., Extension], stub: Stub) -> None:
    """Requests reads ~/.netrc by itself."""
    text = f"machine 127.0.0.1 login ada password {SECRET}\n"
    http = fresh(None, {"HOME": "/nonexistent"})
    (http.workdir / ".netrc").write_text(text)
    http = fresh(None, {"HOME": str(http.workdir), "NETRC": str(http.workdir / ".netrc")})
    result = http.get(stub.does("/", echo))
    assert stub.asked[-1].header("authorization") is None
    result = http.get(stub.url(), auth={"netrc": ".netrc"})
    assert stub.asked[-1].header("authorization") == basic("ada", SECRET)
    assert SECRET not in repr(result)
    (http.workdir / "other").write_text("machine x login y password z\n")
    assert (
        "expected an entry `machine 127.0.0.1`" in http.failed("request", url=stub.url(), auth={"netrc": "other"}).error
    )
    (http.workdir / "bad").write_text("machine\n\nbroken stuff")
    assert "auth.netrc" in http.failed("request", url=stub.url(), auth={"netrc": "bad"}).error


def test_a_value_of_the_task_stays_visible_and_one_of_the_process_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "value-of-the-process")
    context = context_in(tmp_path)
    context.env["TASK"] = "value-of-the-task"
    assert resolve_value(FromEnv(env="TASK"), "headers.a", context) == "value-of-the-task"
    assert context.secrets.redact("value-of-the-task") == "value-of-the-task"
    assert resolve_value(FromEnv(env="OWN"), "headers.a", context) == "value-of-the-process"
    assert "process" not in context.secrets.redact("value-of-the-process")


def test_a_missing_variable_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgs, match="found no variable 'NO_SUCH'"):
        resolve_secret(FromEnv(env="NO_SUCH"), "auth.bearer", context_in(tmp_path))


def test_pem_is_text_or_a_file_of_the_workdir(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    (tmp_path / "no.pem").write_text("nothing")
    assert read_pem("-----BEGIN X", "tls.ca", context) == "-----BEGIN X"
    assert read_pem("ca.pem", "tls.ca", context) == "-----BEGIN CERTIFICATE-----"
    with pytest.raises(InvalidArgs, match="expected PEM"):
        read_pem("no.pem", "tls.ca", context)
    with pytest.raises(OperationFailed):
        read_pem("missing.pem", "tls.ca", context)
