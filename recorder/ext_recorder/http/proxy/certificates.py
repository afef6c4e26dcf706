"""Certificates of a run: its own authority, certificates in the name of servers, and the defects of real ones.

A program that is recorded must fail where it would fail without the proxy. So a server whose certificate is not valid
is represented by one with the same defect: of an unknown authority, self-signed, expired, not yet valid, or of another
name. A program that accepts such a certificate works with the proxy, too.
"""

from __future__ import annotations

import datetime as dt
import ssl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    import trustme

    Defect = Literal["", "untrusted", "self-signed", "expired", "not-yet-valid", "name"]

ORGANIZATION = "ext-recorder"
# OpenSSL's codes of verification, X509_V_ERR_….
_DEFECTS: dict[int, Defect] = {9: "not-yet-valid", 10: "expired", 18: "self-signed", 62: "name", 64: "name"}
PEM_END = b"-----END CERTIFICATE-----"
OTHER_NAME = "other.invalid"
SYSTEM_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def defect_of(error: ssl.SSLCertVerificationError) -> Defect:
    """Return the defect of a certificate that was refused."""
    return _DEFECTS.get(error.verify_code, "untrusted")


class Authority:
    """Authority of one run, which exists in memory only; its certificate is written to a file.

    Attributes:
        pem: its certificate.
    """

    def __init__(self) -> None:
        import trustme

        self._trusted = trustme.CA(organization_name=ORGANIZATION, organization_unit_name="recorded run")
        self._unknown: trustme.CA | None = None
        self._contexts: dict[tuple[str, Defect], ssl.SSLContext] = {}
        self.pem = self._trusted.cert_pem.bytes()

    def context(self, name: str, defect: Defect = "") -> ssl.SSLContext:
        """Return the context of a server with this name.

        Args:
            name: host name or address.
        """
        context = self._contexts.get((name, defect))
        if context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.set_alpn_protocols(["http/1.1", "h2"])  # h2 for programs that offer nothing else: they are refused
            if defect == "self-signed":
                import trustme

                own = trustme.CA(organization_name="self-signed")
                with trustme.Blob(own.private_key_pem.bytes() + own.cert_pem.bytes()).tempfile() as file:
                    context.load_cert_chain(file)
            else:
                self._certificate(name, defect).configure_cert(context)
            self._contexts[name, defect] = context
        return context

    def _certificate(self, name: str, defect: Defect) -> trustme.LeafCert:
        import trustme

        now = dt.datetime.now(dt.UTC)
        authority = self._trusted
        if defect == "untrusted":
            self._unknown = self._unknown or trustme.CA(organization_name="unknown")
            authority = self._unknown
        # Kubeconfigs and base URLs lead to listeners on loopback.
        names = [OTHER_NAME] if defect == "name" else list(dict.fromkeys([name, "127.0.0.1"]))
        return authority.issue_cert(
            *names,
            common_name=name[:64],
            organization_name=ORGANIZATION,
            not_before=now + dt.timedelta(days=30) if defect == "not-yet-valid" else None,
            not_after=now - dt.timedelta(days=1) if defect == "expired" else None,
        )


def java_trust_store(certificates: bytes) -> bytes:
    """Return certificates as a trust store of Java, in the format PKCS12, without a password.

    Args:
        certificates: PEM.
    """
    import warnings

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    entries = []
    for number, part in enumerate(certificates.split(PEM_END)[:-1]):
        with suppress(ValueError), warnings.catch_warnings():  # old authorities break rules that OpenSSL ignores
            warnings.simplefilter("ignore")
            certificate = x509.load_pem_x509_certificate(part + PEM_END)
            entries.append(pkcs12.PKCS12Certificate(certificate, str(number).encode()))
    return pkcs12.serialize_java_truststore(entries, NoEncryption())


def bundle(own: bytes, files: Iterable[str]) -> bytes:
    """Return the certificates that programs of the run have to trust: ours, those of the system, those of the user.

    Args:
        files: of the user, by variables such as SSL_CERT_FILE; missing ones are left out, as OpenSSL does.
    """
    parts = [own]
    for file in dict.fromkeys([*SYSTEM_BUNDLES, ssl.get_default_verify_paths().openssl_cafile, *files]):
        try:
            parts.append(Path(file).read_bytes().strip() + b"\n")
        except OSError:
            continue
    return b"".join(parts)
