"""While replaying: every connection leads to the recorder, and there is no other way out.

A socket that connects gets, under the same descriptor, a line to the recorder, which answers on it as the recorded
server did, byte for byte. So whatever waits for a socket (timeouts, select, event loops) does it as ever. What the
recording has nothing of is refused here, before anything reaches the network.
"""

from __future__ import annotations

import contextlib
import os

from .calls import current
from .channel import connected, frame, receive
from .connections import Connection, Connections
from .errors import MARK, exception
from .tapped import patch_files, patch_listening

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, cast

    from .channel import Channel, Told
    from .clock import Times
    from .errors import Failure

    Method = Callable[..., Any]


class Guard:
    """Connects to the recorder, in the place of the network.

    Args:
        channel: to the recorder.
        times: of the calls.
    """

    def __init__(self, channel: Channel, times: Times) -> None:
        self.connections = Connections()
        self.step = times.step
        self._channel = channel
        self._folder = times.folder

    def connect(self, sock: socket.socket, address: object) -> None:
        """Put a line to the recorder in the place of a connection. Raises OSError, as recorded."""
        self.step()
        name = self.connections.name_of(address)
        line = connected(self._folder)
        try:
            line.sendall(frame({"k": "connect", "host": name, "address": shown(address), "call": current()}))
            told = receive(line)
            raise_failure(told)
            number = told["c"]
            os.dup2(line.fileno(), sock.fileno(), inheritable=False)
            os.set_blocking(sock.fileno(), sock.gettimeout() is None)
        finally:
            line.close()
        made = Connection(number if isinstance(number, int) else 0, address, name, current())
        self.connections.by_fd[sock.fileno()] = made

    def before_sending(self, fd: int) -> None:
        """Tell for which call the connection is used, where that has changed."""
        found = self.connections.by_fd.get(fd)
        if found is not None and found.call != current():
            found.call = current()
            self._channel.ask({"k": "call", "c": found.id, "call": found.call})

    def ended(self, fd: int) -> None:
        """A connection has ended: raise what the recorded one was ended by, if it was not the server's wish."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            raise_failure(self._channel.ask({"k": "why", "c": found.id}))

    def secure(self, fd: int, name: str | None) -> Told:
        """Put a connection into what stands for TLS. Raises ssl.SSLError, as recorded."""
        found = self.connections.by_fd.get(fd)
        if found is None:
            return {}
        told = self._channel.ask({"k": "tls", "c": found.id, "name": name, "call": current()})
        raise_failure(told)
        found.tls = True
        return told

    def resolve(self, name: str) -> list[str]:
        """The recorded addresses of a host. Raises socket.gaierror."""
        told = self._channel.ask({"k": "resolve", "host": name, "call": current()})
        raise_failure(told)
        found = told.get("addresses")
        addresses = [str(each) for each in found] if isinstance(found, list) else []
        for address in addresses:
            self.connections.named(name, address)
        return addresses

    def refuse(self, what: str) -> ConnectionRefusedError:
        """The refusal of what goes to the network and can't have been recorded."""
        told = self._channel.ask({"k": "refused", "what": what, "call": current()})
        return ConnectionRefusedError(MARK + str(told.get("text", what)))


def raise_failure(told: Told) -> None:
    """Raise what an answer tells, if it does."""
    failure = told.get("error")
    if isinstance(failure, dict):
        if TYPE_CHECKING:
            failure = cast("Failure", failure)
        raise exception(failure)


def shown(address: object) -> list[object] | str:
    """An address for JSON."""
    if isinstance(address, tuple):
        return [str(address[0]), *address[1:2]]
    return address.decode("utf-8", "surrogateescape") if isinstance(address, bytes) else str(address)


def install(module: Any, channel: Channel, times: Times) -> Callable[[ModuleType], None]:
    """Patch `socket`. Returns what patches `ssl`, which imports `socket` and is there later."""
    guard = Guard(channel, times)
    patch_names(module, guard)
    Patches(module, guard).install(module.socket)
    patch_listening(module, guard.connections)
    patch_files(module)
    watch(guard)

    def tls(found: ModuleType) -> None:
        from .tls import install as install_tls

        install_tls(found, guard)

    return tls


def watch(guard: Guard) -> None:
    """Stop what goes around the patches, by what the interpreter itself tells about sockets."""
    import _socket
    import sys

    refused = {"socket.connect", "socket.sendto", "socket.sendmsg"}
    inet = {_socket.AF_INET, _socket.AF_INET6}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in refused and args[0].family in inet:
            address = args[1]
            if address is not None and not guard.connections.is_own(address):
                raise guard.refuse(f"{event} to {shown(address)}")

    sys.addaudithook(hook)


def patch_names(module: Any, guard: Guard) -> None:
    """Look names up in the recording.

    Args:
        module: socket.
        guard: asks the recorder.
    """
    look_up: Method = module.getaddrinfo

    def getaddrinfo(host: object, port: object, *args: Any, **named: Any) -> list[Any]:
        text = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
        given = dict(zip(("family", "type", "proto", "flags"), args, strict=False)) | named
        numeric = given | {"flags": given.get("flags", 0) | module.AI_NUMERICHOST}
        found: list[Any] | None = None
        try:
            found = look_up(text, port, **(numeric if text else given))
        except module.gaierror:
            if given.get("flags", 0) & module.AI_NUMERICHOST:
                raise
        if found is not None:
            return found
        found = []
        for address in guard.resolve(str(text)):
            with contextlib.suppress(module.gaierror):  # an address of the other family
                found += look_up(address, port, **numeric)
        if not found:
            raise module.gaierror(module.EAI_NONAME, f"{MARK}{text} has no address of this family in the recording")
        return found

    def gethostbyname(host: object) -> object:
        return getaddrinfo(host, 0, module.AF_INET)[0][4][0]

    def gethostbyaddr(host: object) -> object:
        raise module.herror(1, f"{MARK}names of addresses are not looked up on replay")

    module.getaddrinfo = getaddrinfo
    module.gethostbyname = gethostbyname
    module.gethostbyaddr = gethostbyaddr


class Patches:
    """The methods in the place of those of `socket.socket`."""

    def __init__(self, module: Any, guard: Guard) -> None:
        self._module = module
        self._guard = guard
        self._by_fd = guard.connections.by_fd
        self._families = {module.AF_INET, module.AF_INET6, module.AF_UNIX}

    def install(self, kind: Any) -> None:
        """Put them there."""
        connect = self.connecting(kind.connect)
        kind.connect = connect
        kind.connect_ex = self.trying(connect)
        for name in ("send", "sendall", "sendmsg"):
            setattr(kind, name, self.sending(getattr(kind, name)))
        for name in ("recv", "recv_into"):
            setattr(kind, name, self.receiving(getattr(kind, name)))
        kind._real_close = self.closing(kind._real_close)
        # What the family of a live connection would know.
        kind.setsockopt = self.instead(kind.setsockopt, lambda found, args: None)
        kind.getsockopt = self.instead(kind.getsockopt, lambda found, args: 0 if len(args) < 3 else bytes(args[2]))
        kind.getpeername = self.instead(kind.getpeername, lambda found, args: found.address)
        kind.getsockname = self.instead(kind.getsockname, lambda found, args: ("127.0.0.1", found.id))

    def connecting(self, connect: Method) -> Method:
        """`connect`: to the recorder, unless it is to this process itself."""
        guard, module = self._guard, self._module

        def connect_(sock: socket.socket, address: object) -> None:
            if guard.connections.is_own(address) or sock.family not in self._families:
                connect(sock, address)
            elif sock.type == module.SOCK_STREAM:
                guard.connect(sock, address)
            elif sock.family == module.AF_UNIX:
                connect(sock, address)
            else:
                raise guard.refuse(f"datagrams to {shown(address)}")

        return connect_

    def trying(self, connect: Method) -> Method:
        """`connect_ex`."""

        def connect_ex(sock: socket.socket, address: object) -> int:
            try:
                connect(sock, address)
            except OSError as error:
                return error.errno or int(self._module.errno.ECONNREFUSED)
            return 0

        return connect_ex

    def sending(self, send: Method) -> Method:
        """`send`, `sendall`, `sendmsg`."""

        def send_(sock: socket.socket, *args: object) -> object:
            fd = sock.fileno()
            self._guard.before_sending(fd)
            result = send(sock, *args)
            if fd in self._by_fd:
                self._guard.step()
            return result

        return send_

    def receiving(self, receive: Method) -> Method:
        """`recv`, `recv_into`: at the end, what it was."""

        def receive_(sock: socket.socket, *args: object, **named: object) -> object:
            try:
                result = receive(sock, *args, **named)
            except ConnectionResetError:
                self._guard.ended(sock.fileno())
                raise
            if sock.fileno() in self._by_fd:
                self._guard.step()
            if not result:
                self._guard.ended(sock.fileno())
            return result

        return receive_

    def closing(self, close: Method) -> Method:
        """`_real_close`."""

        def real_close(sock: socket.socket, *args: object) -> object:
            self._by_fd.pop(sock.fileno(), None)
            return close(sock, *args)

        return real_close

    def instead(self, method: Method, answer: Callable[[Connection, tuple[Any, ...]], object]) -> Method:
        """A method that a line to the recorder has another answer to, but for what concerns any socket."""

        def method_(sock: socket.socket, *args: Any) -> object:
            found = self._by_fd.get(sock.fileno())
            if found is None or (args and args[0] == self._module.SOL_SOCKET):
                return method(sock, *args)
            return answer(found, args)

        return method_
