"""Values of one extension in calls of another: real extensions of one host, as a task uses them."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.host import ExtensionHost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SERVER = """
import http.server, os
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
TOKEN = "sesame-opens-42"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ExtensionHost]]:
    """Yield a function that starts an extension whose temporary directory is that of the test."""
    (tmp_path / "tmp").mkdir()
    with ExitStack() as stack:

        def started(name: str, *before: str) -> ExtensionHost:
            env = {"TMPDIR": str(tmp_path / "tmp"), "API_TOKEN": TOKEN}
            host = stack.enter_context(ExtensionHost([*before, sys.executable, "-m", name], env))
            host.initialize()
            return host

        yield started


def shared_files(folder: Path) -> list[Path]:
    """Return the files of shared values, which no other user can read."""
    (base,) = (folder / "tmp").glob("ext-values-*")
    assert {path.stat().st_mode & 0o077 for path in (base, *base.rglob("*"))} == {0}
    return [path for path in base.rglob("*") if path.is_file()]


def test_a_request_goes_to_the_port_of_a_process_of_another_extension(
    start: Callable[..., ExtensionHost], tmp_path: Path
) -> None:
    shell, http = start("ext_shell"), start("ext_http")
    place = {"workdir": str(tmp_path)}
    (tmp_path / "hello.txt").write_text("hello")
    server = {"name": "web", "command": [sys.executable, "-c", SERVER], "port": "auto", "ready": {"port": True}}
    shell.outputs("start", {**server, "as": "web"}, **place)
    url = "http://127.0.0.1:${web.port}/hello.txt"
    wanted = {"url": url, "expect": {"body": "hello"}}  # the extension has chosen the port, so no allowHosts
    http.outputs("request", {**wanted, "as": "page"}, **place)
    http.outputs("session", {"name": "api", "baseUrl": "http://127.0.0.1:${web.port}"}, **place)
    http.outputs("request", {"url": "/hello.txt", "session": "api", "expect": {"body": "hello"}}, **place)
    # The same port in the output of a program may have been influenced by the agent.
    shell.outputs("run", {"command": ["echo", "-n", "${web.port}"], "as": "told"}, **place)
    refused = http.result("request", {"url": "http://127.0.0.1:${told.stdout}/hello.txt"}, **place)
    assert "comes from a variable or a redirect" in str(refused)
    assert shell.outputs("run", {"command": ["echo", "-n", "${page.body}"]}, **place)["stdout"] == "hello"
    assert "${web.port} is not known" in str(http.result("request", {"url": url}, workdir=str(tmp_path / "tmp")))
    assert "${web.port} is not known" in str(http.result("request", {"url": url, "scope": "s"}, **place))
    assert "did you mean '${web.port}'" in str(http.result("request", {"url": url.replace("ort", "rt")}, **place))


def test_the_latest_call_of_a_name_counts_and_a_failed_one_unsets_it(
    start: Callable[..., ExtensionHost], tmp_path: Path
) -> None:
    first, second = start("ext_shell"), start("ext_shell")
    place = {"workdir": str(tmp_path)}
    shown = {"command": ["echo", "-n", "${a.stdout|none}"]}
    for number, host in enumerate((first, second, first)):
        host.outputs("run", {"command": ["echo", "-n", f"{number}"], "as": "a"}, **place)
        assert [one.outputs("run", shown, **place)["stdout"] for one in (first, second)] == [f"{number}"] * 2
    assert second.result("run", {"command": ["false"], "as": "a"}, **place)["success"] is False
    assert first.outputs("run", shown, **place)["stdout"] == "none"
    failure = first.result("run", {"command": ["echo", "${a.stdout}"]}, **place)
    assert "${a.stdout} was not set: run of ext-shell failed" in str(failure["error"])
    second.outputs("write-file", {"path": "x", "content": "a b", "as": "a"}, **place)
    error = str(first.result("run", {"command": ["echo", "${a.stdout}"]}, **place)["error"])
    assert "(the last step with `as: a` was one of ext-shell, without that output)" in error
    assert error.count("${a.stdout}") == 1  # is not suggested, although this extension once had it
    assert "did you mean '${a.size}'?" in error
    failure = second.result("assert-file", {"path": "x", "size": {"gte": "${a.path}"}}, **place)
    assert 'size.gte: expected an integer, found a string; the value of "${a.path}" is "/' in str(failure["error"])
    same = {"command": ["echo", "-n", "${uuid.run}"]}
    assert len({host.outputs("run", same, **place)["stdout"] for host in (first, second)}) == 1


def test_secret_values_stay_in_their_extension(start: Callable[..., ExtensionHost], tmp_path: Path) -> None:
    shell, http = start("ext_shell"), start("ext_http")
    place = {"workdir": str(tmp_path)}
    capture = {"user": {"regex": "(.*):"}, "password": {"regex": ":(.*)", "secret": True}}
    script = {"script": f"echo ada:0pen-sesame; echo {TOKEN} >&2", "capture": capture, "as": "login"}
    shell.outputs("run", script, **place)
    answer = http.result(
        "request", {"url": "http://127.0.0.1:9/${login.password}", "body": {"raw": "${login.stderr}"}}, **place
    )
    assert "it is secret, and secret values are available in ext-shell only" in str(answer["error"])
    assert "it contains a secret value, and secret values are available in ext-shell only" in str(answer["error"])
    assert shell.outputs("run", {"command": ["test", "0pen-sesame", "=", "${login.password}"]}, **place)
    contents = b"".join(path.read_bytes() for path in shared_files(tmp_path))
    assert b'"user":"ada"' in contents
    assert b"sesame" not in contents


def test_values_end_with_their_extension(start: Callable[..., ExtensionHost], tmp_path: Path) -> None:
    shell, killed, reader = start("ext_shell"), start("ext_shell"), start("ext_shell")
    place = {"workdir": str(tmp_path)}
    for name, host in (("shell", shell), ("killed", killed)):
        host.outputs("run", {"command": ["true"], "as": name}, **place)
    assert len(shared_files(tmp_path)) == 2
    killed.process.kill()
    killed.process.wait()
    refused = reader.result("run", {"command": ["echo", "${killed.exitCode}", "${shell.exitCode}"]}, **place)
    assert str(refused["error"]).startswith("run: command[1]: ${killed.exitCode} is not known in this workdir")
    assert len(shared_files(tmp_path)) == 1
    shell.call("shutdown")
    assert not shared_files(tmp_path)


def test_a_directory_that_others_can_access_is_not_used(start: Callable[..., ExtensionHost], tmp_path: Path) -> None:
    base = tmp_path / "tmp" / f"ext-values-{os.getuid()}"
    shell, reader = start("ext_shell"), start("ext_shell")
    base.mkdir()
    base.chmod(0o755)
    place = {"workdir": str(tmp_path)}
    shell.outputs("run", {"command": ["true"], "as": "a"}, **place)
    assert not list(base.iterdir())
    assert shell.outputs("run", {"command": ["echo", "-n", "${a.exitCode}"]}, **place)["stdout"] == "0"
    assert "is not known" in str(reader.result("run", {"command": ["echo", "${a.exitCode}"]}, **place)["error"])


def test_an_extension_that_is_recorded_shares_values_too(start: Callable[..., ExtensionHost], tmp_path: Path) -> None:
    record = [sys.executable, "-m", "ext_recorder", "record", str(tmp_path / "shell.yaml"), "--"]
    recorded, other = start("ext_shell", *record), start("ext_shell")
    place = {"workdir": str(tmp_path)}
    recorded.outputs("run", {"command": ["echo", "-n", "hi"], "as": "a"}, **place)
    assert other.outputs("run", {"command": ["echo", "-n", "${a.stdout}"]}, **place)["stdout"] == "hi"
    in_shell = start("ext_shell", *record[:4], str(tmp_path / "more.yaml"), "--", "sh", "-c", '"$@"; exit', "sh")
    assert in_shell.outputs("run", {"command": ["echo", "-n", "${a.stdout}"]}, **place)["stdout"] == "hi"
