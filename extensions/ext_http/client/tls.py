"""TLS contexts, and the expiry date of a server's certificate."""

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


def create_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client. Raises InvalidArgs if a certificate or a key is not valid."""
    if tls.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca:
        try:
            context = ssl.create_default_context(cadata=tls.ca)
        except (ssl.SSLError, ValueError) as error:
            raise ext_sdk.InvalidArgs("tls.ca", f"expected certificates in PEM: {_reason(error)}") from None
    else:
        context = httpx2.create_ssl_context(trust_env=False)
    if not tls.certificate:
        return context
    # Python loads certificates and keys from files only: a private file, removed at once.
    descriptor, name = tempfile.mkstemp(prefix="ext-http-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{tls.certificate}\n{tls.key}\n")
        context.load_cert_chain(name, password=tls.key_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        problem = f"expected a certificate and its key in PEM, found some that are not valid: {_reason(error)}"
        raise ext_sdk.InvalidArgs("tls.certificate", problem) from None
    finally:
        Path(name).unlink()
    return context


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()


def expiry_of(stream: object) -> datetime | None:
    """Return the expiry date of the server's certificate; None without TLS.

    Python parses only certificates that it has verified, so the date is read from the bytes (RFC 5280, 4.1).
    """
    get = getattr(stream, "get_extra_info", None)
    connection = get("ssl_object") if get else None
    data = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    if not data:
        return None
    try:
        _, certificate, _ = _element(data)
        _, fields, _ = _element(certificate)
        tag, _, rest = _element(fields)
        if tag == 0xA0:  # the version, which old certificates leave out
            _, _, rest = _element(rest)  # serial number
        for _ in ("signature", "issuer"):
            _, _, rest = _element(rest)
        _, validity, _ = _element(rest)
        _, _, after = _element(validity)
        tag, value, _ = _element(after)
        text = value.decode("ascii")
        if tag == 0x17:  # UTCTime has two digits of the year
            text = ("20" if text < "50" else "19") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (IndexError, ValueError):
        return None


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first DER element (X.690), and the bytes after it."""
    length, start = data[1], 2
    if length & 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(data[2 : 2 + count]), 2 + count
    return data[0], data[start : start + length], data[start + length :]
