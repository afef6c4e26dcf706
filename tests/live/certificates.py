"""Who is who in a cluster made for tests: an authority, its certificates, and the key of service accounts' tokens."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

if TYPE_CHECKING:
    from pathlib import Path

NUMBER_BYTES = 32  # of each half of an ES256 signature


class Certificate:
    """A certificate and its key, both PEM."""

    __slots__ = ("certificate", "key")

    def __init__(self, certificate: bytes, key: bytes) -> None:
        self.certificate = certificate
        self.key = key

    def write(self, certificate: Path, key: Path) -> None:
        """Put both into files; the key is for this user alone."""
        certificate.write_bytes(self.certificate)
        key.touch(0o600)
        key.write_bytes(self.key)


class Authority:
    """The one that all parts of the cluster trust."""

    def __init__(self) -> None:
        self._authority = trustme.CA(organization_name="tests/live")
        self.own = Certificate(self._authority.cert_pem.bytes(), self._authority.private_key_pem.bytes())

    def server(self, *names: str) -> Certificate:
        """A certificate of a server with these names and addresses."""
        return _pair(self._authority.issue_cert(*names))

    def client(self, user: str, group: str, lasts: timedelta = timedelta(days=7)) -> Certificate:
        """A certificate that makes its bearer a user in a group, for a time."""
        now = datetime.now(UTC)
        return _pair(
            self._authority.issue_cert(
                "user.invalid",  # Go refuses an empty list of names, and nobody looks at a user's
                common_name=user,
                organization_name=group,
                not_before=now - timedelta(days=1),
                not_after=now + lasts,
            )
        )


class ServiceAccountKey:
    """Signs tokens of service accounts, as the API server does with the same key."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    def write(self, private: Path, public: Path) -> None:
        """Put both halves into files."""
        private.touch(0o600)
        private.write_bytes(self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        public.write_bytes(self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def token(self, *, issuer: str, namespace: str, name: str, uid: str, lasts: float) -> str:
        """A token of a service account that exists.

        Args:
            issuer: of the API server; its audience too.
            namespace: of the service account.
            name: of the service account.
            uid: of the service account.
            lasts: seconds from now until `exp`; negative for one that has expired.
        """
        now = int(time.time())
        claims = {
            "iss": issuer,
            "aud": [issuer],
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "iat": now - 3600,
            "nbf": now - 3600,
            "exp": int(now + lasts),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        }
        signed = f"{_base64url(_json({'alg': 'ES256', 'typ': 'JWT'}))}.{_base64url(_json(claims))}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_base64url(r.to_bytes(NUMBER_BYTES, 'big') + s.to_bytes(NUMBER_BYTES, 'big'))}"


def _pair(leaf: trustme.LeafCert) -> Certificate:
    return Certificate(b"".join(part.bytes() for part in leaf.cert_chain_pems), leaf.private_key_pem.bytes())


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
