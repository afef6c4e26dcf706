"""Mocks of a workdir and scope by name, and mocks of the process by address."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_sdk.core.text import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk.context import Place

    from .request import Journal
    from .routing import Router
    from .server import Server


MockName = Annotated[
    str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="Name of the mock, unique in the workdir")
]


class Mock(NamedTuple):
    """Running mock server.

    Attributes:
        place: workdir and scope of the operation that started it.
        url: base URL, without a slash at the end.
        ca_file: CA certificate for clients to trust; None without TLS.
        private_folder: the folder of the journal was created for this process.
    """

    name: str
    place: Place
    url: str
    router: Router
    journal: Journal
    server: Server
    ca_file: Path | None
    private_folder: bool = False

    @property
    def address(self) -> str:
        """Return host and port, as in `allowHosts`."""
        return self.url.partition("://")[2]

    def close(self) -> None:
        """Stop the server and release its resources."""
        self.server.close()
        self.router.close()
        self.journal.close()

    def remove_files(self) -> None:
        """Remove the files that are of no use without the mock; a journal with requests is kept."""
        with suppress(OSError):
            if self.ca_file:
                self.ca_file.unlink(missing_ok=True)
            if not self.journal.path.stat().st_size:
                self.journal.path.unlink()
            if self.private_folder:
                self.journal.path.parent.rmdir()  # fails if it contains files

    def outputs(self) -> dict[str, str | int | bool]:
        """Return the outputs that identify the mock."""
        outputs: dict[str, str | int | bool] = {"name": self.name, "url": self.url, "port": self.server.port}
        return outputs | ({"caFile": str(self.ca_file)} if self.ca_file else {})

    def counts(self) -> dict[str, str | int | bool]:
        """Return the outputs about the requests received."""
        upstream = self.router.upstream
        recorded: dict[str, str | int | bool] = {"recorded": upstream.count} if upstream else {}
        return recorded | {
            "calls": self.journal.count,
            "unmatched": self.journal.unmatched,
            "state": self.router.state,
            "journalFile": str(self.journal.path),
        }


class Mocks:
    """Mocks of one workdir and scope. Thread-safe.

    Attributes:
        addresses: host and port of each mock, as in `allowHosts`; each request reads them.
    """

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._mocks: dict[str, Mock] = {}
        self._stopped: list[Mock] = []
        self._closed = False

    def add(self, mock: Mock) -> None:
        """Register a mock, or stop it. Raises OperationFailed if its name is in use, or the extension shuts down."""
        with self._lock:
            other = self._mocks.get(mock.name)
            if other is None and not self._closed:
                self._mocks[mock.name] = mock
                self.addresses += (mock.address,)
                return
        mock.close()
        if other is None:
            raise ext_sdk.OperationFailed("the extension is shutting down and starts no more mocks")
        raise ext_sdk.OperationFailed(
            f"mock {mock.name!r} is already running",
            error=f"name: expected one that no mock of this workdir and scope has, found {mock.name!r}, which listens "
            f"at {other.url} since a previous mock-start; stop it first, or use another name, `scope`, or one folder "
            "for each parallel task",
        )

    def get(self, name: str) -> Mock:
        """Return the mock of this name. Raises OperationFailed if there is none."""
        with self._lock:
            mock = self._mocks.get(name)
            names = sorted(self._mocks)
        if mock is None:
            known = suggest(name, names, none="none was started, or all were stopped")
            error = f"name: expected a mock that mock-start started in this workdir and scope, found {name!r}; {known}"
            raise ext_sdk.OperationFailed(f"mock {name!r} is not running", error=error)
        return mock

    def ca_files(self) -> list[str]:
        """Return the paths of the mocks' CA certificates."""
        with self._lock:
            return [str(mock.ca_file) for mock in self._mocks.values() if mock.ca_file]

    def remove(self, name: str) -> Mock | None:
        """Remove and return the mock of this name, None if there is none."""
        with self._lock:
            mock = self._mocks.pop(name, None)
            self._stopped += [mock] if mock else []
            self.addresses = tuple(other.address for other in self._mocks.values())
        return mock

    def close(self) -> None:
        """Stop all mocks and remove their files, when the extension ends."""
        with self._lock:
            self._closed = True
            mocks, self._mocks = list(self._mocks.values()), {}
        for mock in mocks:
            mock.server.stop()
        for mock in mocks:
            mock.close()
        for mock in [*mocks, *self._stopped]:
            mock.remove_files()


class MockAddresses:
    """Mocks of all workdirs of this process, by address. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mocks: dict[str, Mock] = {}

    def add(self, mock: Mock) -> None:
        """Register a mock that listens."""
        with self._lock:
            self._mocks = {address: mock for address, mock in self._mocks.items() if not mock.server.closed}
            self._mocks[mock.address] = mock

    def holder(self, address: str) -> str:
        """Return a description of the mock that listens at an address, "" if none of this process does."""
        with self._lock:
            mock = self._mocks.get(address)
        if mock is None or mock.server.closed:
            return ""
        scope = f", scope {mock.place.scope!r}," if mock.place.scope else ""
        return f"mock {mock.name!r} of workdir {mock.place.workdir}{scope}"
