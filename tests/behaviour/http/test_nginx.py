"""Against a server of the distribution, where it is there: nginx, over HTTP/1.1, TLS and HTTP/2."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest
import trustme

from tests.support.ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.ext_http import Extension

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed")
PAGE = "".join(f"line {number} of a page that is worth compressing\n" for number in range(2000))
CONFIGURATION = """
{user}
daemon off;
pid {d}/nginx.pid;
error_log {d}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {d}/t1; proxy_temp_path {d}/t2; fastcgi_temp_path {d}/t3;
    uwsgi_temp_path {d}/t4; scgi_temp_path {d}/t5;
    default_type text/plain;
    gzip on;
    gzip_types text/plain;
    server {{
        listen 127.0.0.1:{plain};
        listen 127.0.0.1:{tls} ssl http2;
        listen unix:{d}/nginx.sock;
        ssl_certificate {d}/server.pem;
        ssl_certificate_key {d}/server.pem;
        root {d}/www;
        location = /protocol {{ return 200 "$server_protocol"; }}
        location = /moved {{ return 301 /page.txt; }}
        location = /secret {{ auth_basic "shop"; auth_basic_user_file {d}/users; }}
        location /slow/ {{ limit_rate 1k; alias {d}/www/; }}
    }}
}}
"""


class Nginx(NamedTuple):
    """A running one."""

    plain: int
    tls: int
    ca: str
    directory: Path

    def url(self, path: str, *, tls: bool = False) -> str:
        return f"https://127.0.0.1:{self.tls}{path}" if tls else f"http://127.0.0.1:{self.plain}{path}"


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    directory = tmp_path_factory.mktemp("nginx")
    (directory / "www").mkdir()
    (directory / "www/page.txt").write_text(PAGE)
    (directory / "www/secret").write_text("gold")
    (directory / "users").write_text("ada:{PLAIN}open-sesame-1\n")
    ca = trustme.CA()
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(directory / "server.pem")
    user = "user root;" if os.geteuid() == 0 else ""  # else its workers are another one, who may read nothing here
    assert NGINX
    with reserved_port() as plain, reserved_port() as tls:
        (directory / "nginx.conf").write_text(CONFIGURATION.format(user=user, d=directory, plain=plain, tls=tls))
        process = subprocess.Popen([NGINX, "-c", directory / "nginx.conf", "-p", directory], stderr=subprocess.DEVNULL)
        yield Nginx(plain, tls, ca.cert_pem.bytes().decode(), directory)
        process.terminate()
        process.wait(60)


def test_it_is_waited_for_and_asked(http: Extension, nginx: Nginx) -> None:
    result = http.ok("wait", url=nginx.url("/page.txt"), timeout="20s", expect={"status": 200, "body": PAGE})
    assert "2 checks passed" in result.message
    result = http.get(
        nginx.url("/page.txt"), expect={"headers": {"content-encoding": "gzip"}, "body": {"equals": PAGE}}
    )
    assert int(result.outputs["status"]) == 200


@pytest.mark.parametrize(("version", "protocol"), [("1.1", "HTTP/1.1"), ("2", "HTTP/2.0"), ("auto", "HTTP/2.0")])
def test_it_speaks_the_version_that_is_wanted(version: str, protocol: str, http: Extension, nginx: Nginx) -> None:
    http.ok("wait", url=nginx.url("/page.txt"), timeout="20s")
    http.get(nginx.url("/protocol", tls=True), tls={"ca": nginx.ca}, httpVersion=version, expect={"body": protocol})


def test_a_file_is_downloaded_over_http_2(http: Extension, nginx: Nginx) -> None:
    http.ok("wait", url=nginx.url("/page.txt"), timeout="20s")
    digest = hashlib.sha256(PAGE.encode()).hexdigest()
    url = nginx.url("/page.txt", tls=True)
    http.ok("download", url=url, tls={"ca": nginx.ca}, httpVersion="2", path="page.txt", sha256=digest)
    assert (http.workdir / "page.txt").read_text() == PAGE


def test_redirect_unix_socket_and_password(http: Extension, nginx: Nginx) -> None:
    http.ok("wait", url=nginx.url("/page.txt"), timeout="20s")
    assert "301" in http.failed("request", url=nginx.url("/moved")).error
    http.get(nginx.url("/moved"), redirects=1, expect={"body": {"lineCount": 2000}})
    socket_path = str(nginx.directory / "nginx.sock")
    http.get("http://web/protocol", unixSocket=socket_path, expect={"body": "HTTP/1.1"})
    assert "401" in http.failed("request", url=nginx.url("/secret")).error
    auth = {"basic": {"username": "ada", "password": "open-sesame-1"}}
    http.get(nginx.url("/secret"), auth=auth, expect={"body": "gold"})


def test_a_slow_file_ends_at_the_deadline(http: Extension, nginx: Nginx) -> None:
    http.ok("wait", url=nginx.url("/page.txt"), timeout="20s")
    headers = {"Accept-Encoding": "identity"}
    result = http.failed("download", url=nginx.url("/slow/page.txt"), path="x", timeout="1s", headers=headers)
    assert "the response began, but did not end before the deadline (1.0 s); received: 200 OK" in result.error
    assert not (http.workdir / "x").exists()
