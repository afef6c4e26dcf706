"""Manifests from web servers and from kustomize; files and arguments are in test_apply."""

from __future__ import annotations

import ssl
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import trustme

from ext_kubernetes.api.download import fetch
from ext_sdk import Deadline, OperationFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched}\ndata: {a: b}\n"


class Web(ThreadingHTTPServer):
    """A web server on loopback.

    Attributes:
        pages: what it answers, by path: a body, or for redirects an address.
        asked: paths and headers, in their order.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes | str] = {"/all.yaml": CONFIG}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.scheme = "http"

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
        page = self.server.pages.get(self.path.partition("?")[0])
        self.send_response(404 if page is None else 302 if isinstance(page, str) else 200)
        if isinstance(page, str):
            self.send_header("Location", page)
        body = page if isinstance(page, bytes) else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield from _served(server)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Web, Path]]:
    """One with TLS, and the file of the authority that its certificate is from."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    with Web() as server:
        server.scheme = "https"
        server.socket = context.wrap_socket(server.socket, server_side=True)
        for one in _served(server):
            yield one, tmp_path / "authority.pem"


def _served(server: Web) -> Iterator[Web]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


# --- url -------------------------------------------------------------------------------------------------------------


def test_a_manifest_is_fetched(kube: Extension, api: FakeApi, web: Web) -> None:
    kube.ok("apply", {"url": f"{web.address}/all.yaml?token=sesame"})
    assert api.get("configmaps", "fetched") is not None
    ((path, headers),) = web.asked
    assert path == "/all.yaml?token=sesame"
    assert headers["user-agent"].startswith("ext-kubernetes/")
    assert "authorization" not in headers


def test_redirects_are_followed(kube: Extension, web: Web) -> None:
    web.pages |= {"/old": "/older", "/older": f"{web.address}/all.yaml"}
    kube.ok("apply", {"url": f"{web.address}/old"})
    assert [path for path, _ in web.asked] == ["/old", "/older", "/all.yaml"]


def test_redirects_that_have_no_end_are_an_error(kube: Extension, web: Web) -> None:
    web.pages["/old"] = "/old"
    assert "more than 5 redirects" in kube.failed("apply", {"url": f"{web.address}/old"})


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "metadata.google.internal.",
        "METADATA",
    ],
)
def test_where_clouds_hand_out_credentials_nothing_is_asked(kube: Extension, web: Web, host: str) -> None:
    web.pages["/away"] = f"http://{host}/latest/meta-data"
    for url in (f"http://{host}/latest/meta-data", f"{web.address}/away"):
        assert "clouds serve credentials" in kube.failed("apply", {"url": url})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file:///etc/passwd", "expected a URL with http:// or https://, found 'file:///etc/passwd'"),
        ("all.yaml", "expected a URL with http:// or https://"),
        ("http://user:sesame@127.0.0.1/all.yaml", "expected a URL without user and password"),
        ("http://127.0.0.1:99999/all.yaml", "Port out of range"),
    ],
)
def test_what_is_no_address_is_refused(kube: Extension, url: str, told: str) -> None:
    refused = kube.refused("apply", {"url": url})
    assert told in refused
    assert "sesame" not in refused


def test_a_page_that_is_not_there_is_told_without_its_query(kube: Extension, web: Web) -> None:
    told = kube.failed("apply", {"url": f"{web.address}/none.yaml?token=sesame"})
    assert f"expected a manifest at {web.address}/none.yaml, found HTTP status 404" in told
    assert "sesame" not in told


def test_a_server_that_is_not_there_is_told(kube: Extension) -> None:
    told = kube.failed("apply", {"url": "http://127.0.0.1:1/all.yaml"})
    assert "expected a manifest at http://127.0.0.1:1/all.yaml, found no response from 127.0.0.1, port 1: " in told
    assert "Connection refused" in told


def test_a_page_that_is_no_manifest_is_told_with_its_line(kube: Extension, web: Web) -> None:
    web.pages["/page"] = b"<html>"
    assert f"{web.address}/page, line 1: expected an object" in kube.failed("apply", {"url": f"{web.address}/page"})


def test_what_is_too_long_is_not_read_to_its_end(web: Web) -> None:
    with pytest.raises(OperationFailed) as failed:
        fetch(f"{web.address}/all.yaml", Deadline(10), 10)
    assert "found more than 10 bytes" in failed.value.error


def test_a_certificate_is_checked(start: Starter, api: FakeApi, secure: tuple[Web, Path], tmp_path: Path) -> None:
    web, authority = secure
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    start(kubeconfig, {"SSL_CERT_FILE": str(authority)}).ok("apply", {"url": f"{web.address}/all.yaml"})
    stranger = start(kubeconfig)
    assert "certificate verify failed" in stranger.failed("apply", {"url": f"{web.address}/all.yaml"})


def test_a_redirect_never_leaves_encryption(
    start: Starter, api: FakeApi, secure: tuple[Web, Path], web: Web, tmp_path: Path
) -> None:
    encrypted, authority = secure
    encrypted.pages["/all.yaml"] = f"{web.address}/all.yaml"
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"SSL_CERT_FILE": str(authority)})
    assert "which is not encrypted" in kube.failed("apply", {"url": f"{encrypted.address}/all.yaml"})


def test_a_proxy_is_asked_where_there_is_one(start: Starter, api: FakeApi, web: Web, tmp_path: Path) -> None:
    web.pages["http://manifests.test/all.yaml"] = CONFIG
    proxy = {"http_proxy": web.address, "no_proxy": "127.0.0.1"}
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), proxy)
    kube.ok("apply", {"url": "http://manifests.test/all.yaml"})
    assert [path for path, _ in web.asked] == ["http://manifests.test/all.yaml"]
    assert "clouds serve credentials" in kube.failed("apply", {"url": "http://metadata.google.internal/a.yaml"})


# --- kustomize -------------------------------------------------------------------------------------------------------


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(("name", "command"), [("kubectl", "kustomize"), ("kustomize", "build")])
def test_a_kustomization_is_built_by_what_is_there(
    start: Starter, api: FakeApi, tmp_path: Path, name: str, command: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, name, f'[ "$1" = {command} ] && /bin/cat "$2/all.yaml"')
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"PATH": str(programs)})
    (kube.workdir / "overlay").mkdir()
    (kube.workdir / "overlay" / "all.yaml").write_bytes(CONFIG)
    kube.ok("apply", {"kustomize": "overlay"})
    assert api.get("configmaps", "fetched") is not None


def test_a_kustomization_that_cannot_be_built_is_told(start: Starter, api: FakeApi, tmp_path: Path) -> None:
    program(tmp_path, "kubectl", "echo 'no kustomization file found' >&2; exit 3")
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"PATH": str(tmp_path)})
    (kube.workdir / "overlay").mkdir()
    told = kube.failed("apply", {"kustomize": "overlay"})
    assert "expected kubectl kustomize overlay to output manifests, found exit code 3: no kustomization file" in told


def test_a_kustomization_needs_a_program(start: Starter, api: FakeApi, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"PATH": str(tmp_path)})
    (kube.workdir / "overlay").mkdir()
    assert "kubectl" in kube.refused("apply", {"kustomize": "overlay"})


def test_a_kustomization_outside_of_the_workdir_is_refused(kube: Extension) -> None:
    assert "not a path inside the working directory" in kube.failed("apply", {"kustomize": "../elsewhere"})


@pytest.mark.parametrize("manifest", [
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: ${a.b}}}",
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "${a.b}"}},
])  # fmt: skip
def test_a_reference_in_a_manifest_is_told(kube: Extension, manifest: object) -> None:
    told = kube.failed("apply", {"manifest": manifest})
    assert "`${NAME.key}` is replaced in a manifest only with `expand: true`" in told
