"""TLS: who is believed, who is not, and what is said of it."""

from __future__ import annotations

import datetime as dt
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest
import trustme

from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ext_http import Extension


class Authority(NamedTuple):
    """An authority that nobody else believes."""

    ca: trustme.CA

    @property
    def pem(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    @contextmanager
    def server(self, *names: str, expires: dt.datetime | None = None, clients: bool = False) -> Iterator[Stub]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names, not_after=expires).configure_cert(context)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            self.ca.configure_trust(context)
        with Stub(context) as stub:
            stub.says("/", "safe")
            yield stub


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(trustme.CA())


def test_a_certificate_of_an_unknown_authority_is_not_believed(http: Extension, authority: Authority) -> None:
    with authority.server("127.0.0.1") as stub:
        result = http.failed("request", url=stub.url())
        assert "unable to get local issuer certificate" in result.error or "self-signed" in result.error
        assert "trust its CA with `tls.ca`, or set `tls.insecure: true`" in result.error
        assert stub.asked == []


def test_the_authority_can_be_named_as_text_as_file_and_by_the_configuration(
    http: Extension, fresh: Callable[..., Extension], authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text(authority.pem)
    with authority.server("127.0.0.1") as stub:
        http.get(stub.url(), tls={"ca": authority.pem}, expect={"body": "safe"})
        http.get(stub.url(), tls={"ca": "ca.pem"}, expect={"body": "safe"})
        fresh({"caFile": str(tmp_path / "ca.pem")}).get(stub.url(), expect={"body": "safe"})


def test_a_name_that_is_not_in_the_certificate_is_not_believed(http: Extension, authority: Authority) -> None:
    with authority.server("other.test") as stub:
        error = http.failed("request", url=stub.url(), tls={"ca": authority.pem}).error
        assert "certificate is not valid for '127.0.0.1'" in error or "IP address mismatch" in error
        assert "use a name of the certificate in the URL, or set it as `tls.serverName`" in error
        assert "tls.ca" not in error
        http.get(stub.url(), tls={"ca": authority.pem, "serverName": "other.test"}, expect={"body": "safe"})
        url = f"https://other.test:{stub.port}/"
        http.get(url, tls={"ca": authority.pem}, resolve={"other.test": "127.0.0.1"}, expect={"body": "safe"})


def test_an_expired_certificate_is_not_believed_and_its_age_can_be_told(http: Extension, authority: Authority) -> None:
    """StepCI shows positive days for an expired certificate."""
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    with authority.server("127.0.0.1", expires=yesterday) as stub:
        error = http.failed("request", url=stub.url(), tls={"ca": authority.pem}).error
        assert "certificate has expired; renew the certificate, or accept it with `tls.insecure: true`" in error
        http.get(stub.url(), tls={"insecure": True}, expect={"certificateExpiry": {"lt": "-23h", "gt": "-25h"}})
        result = http.failed(
            "request", url=stub.url(), tls={"insecure": True}, expect={"certificateExpiry": {"gt": "1h"}}
        )
        assert "time until the certificate expires" in result.error


def test_how_long_a_certificate_is_valid_can_be_expected(http: Extension, authority: Authority) -> None:
    in_30_days = dt.datetime.now(dt.UTC) + dt.timedelta(days=30)
    with authority.server("127.0.0.1", expires=in_30_days) as stub:
        tls = {"ca": authority.pem}
        http.get(stub.url(), tls=tls, expect={"certificateExpiry": {"gt": "700h", "lt": "721h"}})
        assert not http.call(
            "request", {"url": stub.url(), "tls": tls, "expect": {"certificateExpiry": {"gt": "800h"}}}
        ).success


def test_verification_that_is_off_is_told_in_every_message(http: Extension, authority: Authority) -> None:
    """StepCI and Tavern verify nothing unless asked to."""
    told = "the server's certificate was not verified (tls.insecure)"
    with authority.server("127.0.0.1") as stub:
        tls = {"insecure": True}
        assert told in http.get(stub.url(), tls=tls).message
        assert told in http.ok("wait", url=stub.url(), tls=tls).message
        assert told in http.failed("request", url=stub.url("/missing"), tls=tls).error
        assert told in http.failed("wait", url=stub.url("/missing"), tls=tls, timeout="200ms").error
        assert told in http.ok("download", url=stub.url(), tls=tls, path="x").message


def test_a_client_certificate_is_shown(http: Extension, authority: Authority) -> None:
    identity = authority.ca.issue_cert("client@shop.test")
    key = identity.private_key_pem.bytes().decode()
    chain = b"".join(one.bytes() for one in identity.cert_chain_pems).decode()
    (http.workdir / "client.pem").write_text(chain)
    (http.workdir / "client.key").write_text(key)
    with authority.server("127.0.0.1", clients=True) as stub:
        ca = authority.pem
        assert not http.call("request", {"url": stub.url(), "tls": {"ca": ca}}).success
        http.get(stub.url(), tls={"ca": ca, "certificate": chain, "key": key}, expect={"body": "safe"})
        http.get(stub.url(), tls={"ca": ca, "certificate": "client.pem", "key": "client.key"}, expect={"body": "safe"})
        http.get(stub.url(), tls={"ca": ca, "certificate": chain + key}, expect={"body": "safe"})
        assert "PRIVATE KEY" not in repr(http.call("request", {"url": stub.url(), "tls": {"ca": ca}}))


def test_a_client_certificate_is_not_shown_to_another_origin(http: Extension, authority: Authority) -> None:
    identity = authority.ca.issue_cert("client@shop.test")
    pem = identity.private_key_and_cert_chain_pem.bytes().decode()
    tls = {"ca": authority.pem, "certificate": pem}
    with authority.server("127.0.0.1") as first, authority.server("127.0.0.1", clients=True) as second:
        first.says("/away", status=302, Location=second.url())
        http.get(second.url(), tls=tls)
        asked = len(second.asked)
        assert not http.call(
            "request", {"url": first.url("/away"), "tls": tls, "redirects": 1, "allowHosts": [second.address]}
        ).success
        assert len(second.asked) == asked


@pytest.mark.parametrize(
    ("tls", "told"),
    [
        (
            {"ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
            "tls.ca: expected certificates in PEM",
        ),
        ({"ca": "x", "insecure": True}, "expected one of ca and insecure"),
        ({"key": "x"}, "key requires certificate"),
        ({"certificate": "-----BEGIN X-----\n-----END X-----"}, "tls.certificate: expected a certificate and its key"),
    ],
)
def test_tls_that_can_not_be_is_refused(tls: object, told: str, http: Extension, authority: Authority) -> None:
    with authority.server("127.0.0.1") as stub:
        assert told in http.refused("request", url=stub.url(), tls=tls)


def test_a_certificate_file_outside_of_the_workdir_is_not_read(http: Extension) -> None:
    error = http.failed("request", url="https://127.0.0.1:1/", tls={"ca": "/etc/ssl/certs/ca-certificates.crt"}).error
    assert "not a path inside the working directory" in error


def test_waiting_does_not_mend_a_certificate(http: Extension, authority: Authority) -> None:
    with authority.server("127.0.0.1") as stub:
        result = http.failed("wait", url=stub.url(), timeout="20s")
        assert result.outputs["attempts"] == "1"
        result = http.failed("wait", url=stub.url(), timeout="3s", interval="10ms", giveUpOn=[])
        assert int(result.outputs["attempts"]) > 1
