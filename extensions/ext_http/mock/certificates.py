"""A certificate for loopback, and the authority that signed it, made anew for every mock; the one import of trustme.

The authority's key is never written and gone with the mock; only its certificate is handed out, for clients to trust.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("localhost", "127.0.0.1", "::1")


def server_context(ca_file: Path) -> ssl.SSLContext:
    """What a server needs for TLS.

    Args:
        ca_file: where the authority's certificate is written, as PEM. Raises OSError.
    """
    import trustme

    authority = trustme.CA(organization_name="ext-http mock")
    ca_file.write_bytes(authority.cert_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    authority.issue_cert(*NAMES).configure_cert(context)
    return context
