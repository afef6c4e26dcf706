"""Everybody who may call a control plane of one's own, and the files by which its programs know them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.live import kubeconfig
from tests.live.certificates import Authority, ServiceAccountKey
from tests.live.flags import ISSUER

if TYPE_CHECKING:
    from pathlib import Path

MASTERS = "system:masters"  # the group that may do everything
WEEK = timedelta(days=7)
TOKEN_USER = "token-user"


class Identities:
    """Makes kubeconfig files of users.

    Args:
        directory: for all files.
        address: of the API server.
    """

    def __init__(self, directory: Path, address: str) -> None:
        self._directory = directory
        self._address = address
        self._authority = Authority()
        self._key = ServiceAccountKey()
        self._token = secrets.token_urlsafe(24)

    def write(self) -> None:
        """Write the files that `flags` names."""
        directory = self._directory
        self._authority.own.write(directory / "ca.crt", directory / "ca.key")
        server = self._authority.server("127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc")
        server.write(directory / "server.crt", directory / "server.key")
        caller = self._authority.client("kube-apiserver", MASTERS)
        caller.write(directory / "kube-apiserver.crt", directory / "kube-apiserver.key")
        self._key.write(directory / "service-accounts.key", directory / "service-accounts.pub")
        tokens = directory / "tokens.csv"
        tokens.touch(0o600)
        tokens.write_text(f"{self._token},{TOKEN_USER},{TOKEN_USER}\n")

    def user(self, name: str, group: str = "testers", lasts: timedelta = WEEK) -> Path:
        """Make a kubeconfig of a user with a certificate; only groups and roles give them rights.

        Args:
            name: of the user.
            group: the one they are in.
            lasts: until the certificate expires; negative for one that has.
        """
        return self._kubeconfig(name, kubeconfig.with_certificate(self._authority.client(name, group, lasts)))

    def token_user(self) -> Path:
        """Make a kubeconfig of the user `token-user`, known by a token that is valid for good."""
        return self._kubeconfig(TOKEN_USER, kubeconfig.with_token(self._token))

    def service_account(self, namespace: str, name: str, uid: str, lasts: float) -> Path:
        """Make a kubeconfig of a service account, with a token that expires soon or has expired.

        Args:
            namespace: of the account.
            name: of the account.
            uid: of the account.
            lasts: seconds until it expires. The server accepts it for a minute more, because clocks differ, and may
                remember for 10 s that it did.
        """
        token = self.token(namespace, name, uid, lasts)
        return self._kubeconfig(f"{namespace}-{name}", kubeconfig.with_token(token))

    def token(self, namespace: str, name: str, uid: str, lasts: float) -> str:
        """The token alone; see `service_account`."""
        return self._key.token(issuer=ISSUER, namespace=namespace, name=name, uid=uid, lasts=lasts)

    def _kubeconfig(self, name: str, user: kubeconfig.Entry) -> Path:
        path = self._directory / f"{name.replace(':', '-')}.kubeconfig"
        return kubeconfig.write(path, kubeconfig.cluster(self._address, self._authority.own.certificate), user)
