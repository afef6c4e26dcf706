"""A certificate for loopback, and the authority that signed it, made anew for every mock; the one import of trustme.

The authority's key is never written and gone with the mock; only its certificate is handed out, for clients to trust.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("localhost", "127.0.0.1", "::1")
ORGANIZATION = "Local"


def server_context(ca_file: Path) -> ssl.SSLContext:
    """What a server needs for TLS.

    Args:
        ca_file: where the authority's certificate is written, as PEM. Raises OSError.
    """
    import trustme

    # The agent under test sees both certificates: trustme's own names say that they are for tests.
    authority = trustme.CA(organization_name=ORGANIZATION, organization_unit_name="Certificate Authority")
    ca_file.write_bytes(authority.cert_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate = authority.issue_cert(
        *NAMES, common_name=NAMES[0], organization_name=ORGANIZATION, organization_unit_name="Services"
    )
    certificate.configure_cert(context)
    return context
