"""TLS contexts, and what a server's certificate says of its time."""

from __future__ import annotations

import os
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

import ext_sdk

if TYPE_CHECKING:
    from .settings import Tls


def context_of(tls: Tls) -> ssl.SSLContext:
    """A context for a client.

    Raises:
        InvalidArgs: a certificate or a key can't be read.
    """
    if tls.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca:
        context = _with_authorities(tls.ca)
    else:
        context = httpx2.create_ssl_context(trust_env=False)
    if tls.certificate:
        _load_certificate(context, tls)
    return context


def _with_authorities(pem: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ext_sdk.InvalidArgs("tls.ca", f"expected certificates in PEM: {_reason(error)}") from None


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """The system reads certificates and keys from files only: a private one, for a moment."""
    descriptor, name = tempfile.mkstemp(prefix="ext-http-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{tls.certificate}\n{tls.key}\n")
        context.load_cert_chain(name, password=tls.key_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        wrong = f"expected a certificate and its key in PEM, found some that can't be used: {_reason(error)}"
        raise ext_sdk.InvalidArgs("tls.certificate", wrong) from None
    finally:
        Path(name).unlink()


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()


def expiry_of(stream: object) -> datetime | None:
    """Until when the certificate of a connection's server is valid; None where there is none.

    Python reads certificates only that it has verified; so the date is read from the bytes (RFC 5280, 4.1).
    """
    get = getattr(stream, "get_extra_info", None)
    connection = get("ssl_object") if get else None
    data = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    try:
        return _not_after(data) if data else None
    except (IndexError, ValueError):
        return None


def _not_after(data: bytes) -> datetime:
    _, certificate, _ = _element(data)
    _, fields, _ = _element(certificate)
    tag, _, rest = _element(fields)
    if tag == 0xA0:  # the version, which old certificates leave out
        _, _, rest = _element(rest)  # serial number
    for _ in ("signature", "issuer"):
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, after = _element(validity)
    tag, text, _ = _element(after)
    moment = text.decode("ascii")
    if tag == 0x17:  # UTCTime has two digits of the year
        moment = ("20" if moment < "50" else "19") + moment
    return datetime.strptime(moment, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content, and what follows, of the first element (X.690, DER)."""
    length, start = data[1], 2
    if length & 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(data[2 : 2 + count]), 2 + count
    return data[0], data[start : start + length], data[start + length :]
