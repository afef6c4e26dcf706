"""Programs see the defects of real certificates, and trust the authorities of the user."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.proxy.certificates import Authority, bundle, defect_of

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.http.proxy.certificates import Defect

AUTHORITY = Authority()


def seen(context: ssl.SSLContext, host: str) -> str:
    """Return the defect that a client finds in a handshake; "" for none."""
    trusting = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    client = trusting.wrap_bio(pipes[0], pipes[1], server_hostname=host)
    server = context.wrap_bio(pipes[1], pipes[0], server_side=True)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            return defect_of(error)
    return ""


@pytest.mark.parametrize("defect", ["", "untrusted", "self-signed", "expired", "not-yet-valid", "name"])
@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1", "x" * 60 + ".example.com"])
def test_a_client_finds_the_defect_of_the_real_certificate(defect: Defect, host: str) -> None:
    assert seen(AUTHORITY.context(host, defect), host) == defect


def test_a_host_has_one_certificate_for_each_defect() -> None:
    assert AUTHORITY.context("h") is AUTHORITY.context("h")
    assert AUTHORITY.context("h") is not AUTHORITY.context("h", "expired")


def test_the_bundle_has_our_authority_and_the_files_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(b"-- own --")
    found = bundle(b"-- ours --\n", [str(file), str(tmp_path / "missing.pem"), str(file)])
    assert found.startswith(b"-- ours --\n")
    assert found.count(b"-- own --\n") == 1
