"""Patches of plain sockets for replay: host names are resolved from the recording, connections lead to the recorder."""

from __future__ import annotations

import contextlib

from .channel import shown
from .connections import peeks
from .errors import MARK
from .record_sockets import patch_files, patch_listening
from .redirect import NetworkRedirect

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .channel import Channel
    from .clock import RecordedClock
    from .connections import Connection

    Lookup = Callable[..., Any]
    Method = Callable[..., Any]


def patch_names(module: Any, redirect: NetworkRedirect) -> None:
    """Resolve names from the recording.

    Args:
        module: socket.
    """
    look_up: Lookup = module.getaddrinfo

    def getaddrinfo(host: object, port: object, *args: Any, **named: Any) -> list[Any]:
        text = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
        given = dict(zip(("family", "type", "proto", "flags"), args, strict=False)) | named
        numeric = given | {"flags": given.get("flags", 0) | module.AI_NUMERICHOST}
        try:
            results: list[Any] = look_up(text, port, **(numeric if text else given))
        except module.gaierror:
            if given.get("flags", 0) & module.AI_NUMERICHOST:
                raise
        else:
            return results
        results = []
        for address in redirect.resolve(str(text)):
            with contextlib.suppress(module.gaierror):  # an address of the other family
                results += look_up(address, port, **numeric)
        if not results:
            raise module.gaierror(module.EAI_NONAME, f"{MARK}{text} has no address of this family in the recording")
        return results

    def gethostbyname(host: object) -> object:
        return getaddrinfo(host, 0, module.AF_INET)[0][4][0]

    def gethostbyaddr(host: object) -> object:
        raise module.herror(1, f"{MARK}names of addresses are not looked up on replay")

    module.getaddrinfo = getaddrinfo
    module.gethostbyname = gethostbyname
    module.gethostbyaddr = gethostbyaddr


class Patches:
    """Replacements for methods of `socket.socket`."""

    def __init__(self, module: Any, redirect: NetworkRedirect) -> None:
        self._module = module
        self._redirect = redirect
        self._by_fd = redirect.connections.by_fd
        self._families = {module.AF_INET, module.AF_INET6, module.AF_UNIX}

    def install(self, kind: Any) -> None:
        """Replace the methods."""
        connect = self.connecting(kind.connect)
        kind.connect = connect
        kind.connect_ex = self.trying(connect)
        for name in ("send", "sendall"):
            setattr(kind, name, self.sending(getattr(kind, name)))
        kind.sendmsg = self.sending_pieces(kind.sendmsg)
        for name in ("recv", "recv_into"):
            setattr(kind, name, self.receiving(getattr(kind, name)))
        kind._real_close = self.closing(kind._real_close)
        # A Unix socket does not have these options and addresses of an Internet connection.
        kind.setsockopt = self.instead(kind.setsockopt, lambda connection, args: None)
        kind.getsockopt = self.asking(
            self.instead(kind.getsockopt, lambda connection, args: 0 if len(args) < 3 else bytes(args[2]))
        )
        kind.getpeername = self.instead(kind.getpeername, lambda connection, args: connection.address)
        kind.getsockname = self.instead(kind.getsockname, lambda connection, args: ("127.0.0.1", connection.id))

    def connecting(self, connect: Method) -> Method:
        """Wrap `connect`: connect to the recorder, unless this process listens on the address."""
        redirect, module = self._redirect, self._module

        def connect_(sock: socket.socket, address: object) -> None:
            if redirect.connections.is_own(address) or sock.family not in self._families:
                connect(sock, address)
            elif sock.type == module.SOCK_STREAM:
                redirect.connect(sock, address)
            elif sock.family == module.AF_UNIX:
                connect(sock, address)
            else:
                raise redirect.refuse(f"datagrams to {shown(address)}")

        return connect_

    def trying(self, connect: Method) -> Method:
        """Wrap `connect_ex`."""

        def connect_ex(sock: socket.socket, address: object) -> int:
            try:
                connect(sock, address)
            except OSError as error:
                return error.errno or int(self._module.errno.ECONNREFUSED)
            return 0

        return connect_ex

    def sending(self, send: Method) -> Method:
        """Wrap `send` and `sendall`."""
        redirect = self._redirect

        def send_(sock: socket.socket, data: bytes, *args: object) -> object:
            connection = self._by_fd.get(sock.fileno())
            if connection is None:
                return send(sock, data, *args)
            redirect.before_sending(connection)
            hello = self._hello(connection, data)
            if hello:
                result = send(sock, hello, *args)
                return None if result is None else len(data)
            result = send(sock, data, *args)
            if connection.within is None:
                redirect.step()
            return result

        return send_

    def sending_pieces(self, sendmsg: Method) -> Method:
        """Wrap `sendmsg`."""
        redirect = self._redirect

        def sendmsg_(sock: socket.socket, buffers: list[bytes], *args: object) -> object:
            connection = self._by_fd.get(sock.fileno())
            if connection is None:
                return sendmsg(sock, buffers, *args)
            redirect.before_sending(connection)
            hello = self._hello(connection, b"".join(buffers))
            if hello:
                sendmsg(sock, [hello], *args)
                return sum(map(len, buffers))
            result = sendmsg(sock, buffers, *args)
            if connection.within is None:
                redirect.step()
            return result

        return sendmsg_

    def _hello(self, connection: Connection, data: bytes) -> bytes:
        """Return the bytes to send instead of a ClientHello; b"" for other data."""
        tls = self._redirect.hellos.sender(data)
        return self._redirect.secure_within(connection, tls) if tls is not None else b""

    def receiving(self, receive: Method) -> Method:
        """Wrap `recv` and `recv_into`: at the end, raise the recorded error."""

        def receive_(sock: socket.socket, *args: object, **named: object) -> object:
            if peeks(self._module, args, named):
                return receive(sock, *args, **named)
            try:
                result = receive(sock, *args, **named)
            except ConnectionResetError:
                self._redirect.ended(sock.fileno())
                raise
            connection = self._by_fd.get(sock.fileno())
            if connection is not None and connection.within is None:
                self._redirect.step()
            if not result:
                self._redirect.ended(sock.fileno())
            return result

        return receive_

    def closing(self, close: Method) -> Method:
        """Wrap `_real_close`."""

        def real_close(sock: socket.socket, *args: object) -> object:
            self._by_fd.pop(sock.fileno(), None)
            return close(sock, *args)

        return real_close

    def asking(self, getsockopt: Method) -> Method:
        """Wrap `getsockopt`, by which event loops read the result of a connection attempt."""
        so_error = (self._module.SOL_SOCKET, self._module.SO_ERROR)

        def getsockopt_(sock: socket.socket, *args: Any) -> object:
            connection = self._by_fd.get(sock.fileno())
            if connection is None or not connection.failed or args != so_error:
                return getsockopt(sock, *args)
            self._by_fd.pop(sock.fileno())
            return connection.failed

        return getsockopt_

    def instead(self, method: Method, answer: Callable[[Connection, tuple[Any, ...]], object]) -> Method:
        """Wrap a method whose result differs for a connection to the recorder."""

        def method_(sock: socket.socket, *args: Any) -> object:
            connection = self._by_fd.get(sock.fileno())
            if connection is None or (args and args[0] == self._module.SOL_SOCKET):
                return method(sock, *args)
            return answer(connection, args)

        return method_


def install(module: Any, channel: Channel, times: RecordedClock) -> Callable[[ModuleType], None]:
    """Patch `socket`. Return the function that patches `ssl`, which is imported later."""
    redirect = NetworkRedirect(channel, times)
    patch_names(module, redirect)
    Patches(module, redirect).install(module.socket)
    patch_listening(module, redirect.connections)
    patch_files(module)
    watch(redirect)

    def ssl_imported(module: ModuleType) -> None:
        from .replay_tls import install as install_tls

        install_tls(module, redirect)

    return ssl_imported


def watch(redirect: NetworkRedirect) -> None:
    """Refuse traffic that bypasses the patches, by the interpreter's audit events."""
    import _socket
    import sys

    refused = {"socket.connect", "socket.sendto", "socket.sendmsg"}
    inet = {_socket.AF_INET, _socket.AF_INET6}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in refused and args[0].family in inet:
            address = args[1]
            if address is not None and not redirect.connections.is_own(address):
                raise redirect.refuse(f"{event} to {shown(address)}")

    sys.addaudithook(hook)
