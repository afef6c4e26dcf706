"""Mocks of one workdir and scope by name, and all mocks of the process by address."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.core.text import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk.context import Place

    from .journal import Journal
    from .routing import Route, Router
    from .server import Server


MockName = Annotated[
    str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="Tells several mocks of a workdir apart")
]


class Mock:
    """One mock.

    Attributes:
        name: by which operations find it.
        place: workdir and scope of the operation that started it.
        url: of its root, without a slash at the end.
        routes: in their order.
        router: gives the answers.
        journal: what it was asked.
        server: that listens.
        ca_file: the certificate of the authority, for clients to trust; None without TLS.
    """

    def __init__(
        self,
        name: str,
        *,
        place: Place,
        url: str,
        routes: list[Route],
        router: Router,
        journal: Journal,
        server: Server,
        ca_file: Path | None,
    ) -> None:
        self.name = name
        self.place = place
        self.url = url
        self.routes = routes
        self.router = router
        self.journal = journal
        self.server = server
        self.ca_file = ca_file

    def close(self) -> None:
        """Stop it."""
        self.server.close()
        self.router.close()
        self.journal.close()

    def outputs(self) -> dict[str, str | int | bool]:
        """What tells a mock from others, and what became of it."""
        outputs: dict[str, str | int | bool] = {"name": self.name, "url": self.url, "port": self.server.port}
        return outputs | ({"caFile": str(self.ca_file)} if self.ca_file else {})

    @property
    def address(self) -> str:
        """Host and port, as `allowHosts` has them."""
        return self.url.partition("://")[2]

    @property
    def described(self) -> str:
        """The mock and where it belongs, for messages of any workdir."""
        scope = f", scope {self.place.scope!r}," if self.place.scope else ""
        return f"mock {self.name!r} of workdir {self.place.workdir}{scope}"

    def counts(self) -> dict[str, str | int | bool]:
        """How often it was asked, and where that is written."""
        return {
            "calls": self.journal.count,
            "unmatched": self.journal.unmatched,
            "journalFile": str(self.journal.path),
        }


class Mocks:
    """The mocks of one workdir and scope. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mocks: dict[str, Mock] = {}
        self._closed = False

    def add(self, mock: Mock) -> None:
        """Keep one, or stop it. Raises OperationFailed where its name is taken, or the extension ends."""
        with self._lock:
            other = self._mocks.get(mock.name)
            if other is None and not self._closed:
                self._mocks[mock.name] = mock
                return
        mock.close()
        if other is None:
            raise ext_sdk.OperationFailed("the extension was told to end and starts nothing more")
        raise ext_sdk.OperationFailed(
            f"mock {mock.name!r} stands already",
            error=f"name: expected one that no mock of this workdir and scope has, found {mock.name!r}, which listens "
            f"at {other.url} since a previous mock-start; stop it first, or use another name, `scope`, or one folder "
            "for each parallel task",
        )

    def get(self, name: str) -> Mock | None:
        """The mock of this name."""
        with self._lock:
            return self._mocks.get(name)

    def names(self) -> list[str]:
        """All names, sorted."""
        with self._lock:
            return sorted(self._mocks)

    def addresses(self) -> list[str]:
        """Host and port of each, as `allowHosts` has them."""
        with self._lock:
            return [mock.address for mock in self._mocks.values()]

    def ca_files(self) -> list[str]:
        """Paths of the certificates by which clients trust them."""
        with self._lock:
            return [str(mock.ca_file) for mock in self._mocks.values() if mock.ca_file]

    def remove(self, name: str) -> Mock | None:
        """Forget the mock of this name, and return it."""
        with self._lock:
            return self._mocks.pop(name, None)

    def close(self) -> None:
        """Stop all of them."""
        with self._lock:
            self._closed = True
            mocks, self._mocks = list(self._mocks.values()), {}
        for mock in mocks:
            mock.server.stop()
        for mock in mocks:
            mock.close()


class Addresses:
    """The mocks of all workdirs of this process, by address. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mocks: dict[str, Mock] = {}

    def add(self, mock: Mock) -> None:
        """Register a mock that listens."""
        with self._lock:
            self._mocks = {address: one for address, one in self._mocks.items() if not one.server.closed}
            self._mocks[mock.address] = mock

    def holder(self, address: str) -> Mock | None:
        """Return the mock that listens at an address, None if no mock of this process does."""
        with self._lock:
            mock = self._mocks.get(address)
        return None if mock is None or mock.server.closed else mock


def not_found(name: str, names: list[str]) -> ext_sdk.OperationFailed:
    """The failure of an operation on a mock that is not there."""
    told = suggest(name, names, none="none was started, or all were stopped")
    error = f"name: expected a mock that mock-start started in this workdir and scope, found {name!r}; {told}"
    return ext_sdk.OperationFailed(f"there is no mock {name!r}", error=error)
