"""While replaying: what stands in the place of the methods of sockets."""

from __future__ import annotations

from .channel import shown
from .peeking import peeks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from .answering import Guard
    from .connections import Connection

    Method = Callable[..., Any]


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
        for name in ("send", "sendall"):
            setattr(kind, name, self.sending(getattr(kind, name)))
        kind.sendmsg = self.sending_pieces(kind.sendmsg)
        for name in ("recv", "recv_into"):
            setattr(kind, name, self.receiving(getattr(kind, name)))
        kind._real_close = self.closing(kind._real_close)
        # What the family of a live connection would know.
        kind.setsockopt = self.instead(kind.setsockopt, lambda found, args: None)
        kind.getsockopt = self.asking(
            self.instead(kind.getsockopt, lambda found, args: 0 if len(args) < 3 else bytes(args[2]))
        )
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
        """`send`, `sendall`."""
        guard = self._guard

        def send_(sock: socket.socket, data: bytes, *args: object) -> object:
            found = self._by_fd.get(sock.fileno())
            if found is None:
                return send(sock, data, *args)
            guard.before_sending(found)
            hello = self._hello(found, data)
            if hello:
                result = send(sock, hello, *args)
                return None if result is None else len(data)
            result = send(sock, data, *args)
            if found.within is None:
                guard.step()
            return result

        return send_

    def sending_pieces(self, sendmsg: Method) -> Method:
        """`sendmsg`."""
        guard = self._guard

        def sendmsg_(sock: socket.socket, buffers: list[bytes], *args: object) -> object:
            found = self._by_fd.get(sock.fileno())
            if found is None:
                return sendmsg(sock, buffers, *args)
            guard.before_sending(found)
            hello = self._hello(found, b"".join(buffers))
            if hello:
                sendmsg(sock, [hello], *args)
                return sum(map(len, buffers))
            result = sendmsg(sock, buffers, *args)
            if found.within is None:
                guard.step()
            return result

        return sendmsg_

    def _hello(self, found: Connection, data: bytes) -> bytes:
        """Return what is sent instead of a ClientHello; b"" if the data is not one."""
        tls = self._guard.hellos.sender(data)
        return self._guard.secure_within(found, tls) if tls is not None else b""

    def receiving(self, receive: Method) -> Method:
        """`recv`, `recv_into`: at the end, what it was."""

        def receive_(sock: socket.socket, *args: object, **named: object) -> object:
            if peeks(self._module, args, named):
                return receive(sock, *args, **named)
            try:
                result = receive(sock, *args, **named)
            except ConnectionResetError:
                self._guard.ended(sock.fileno())
                raise
            found = self._by_fd.get(sock.fileno())
            if found is not None and found.within is None:
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

    def asking(self, getsockopt: Method) -> Method:
        """`getsockopt`, by which event loops find out whether there is a connection."""
        so_error = (self._module.SOL_SOCKET, self._module.SO_ERROR)

        def getsockopt_(sock: socket.socket, *args: Any) -> object:
            found = self._by_fd.get(sock.fileno())
            if found is None or not found.failed or args != so_error:
                return getsockopt(sock, *args)
            self._by_fd.pop(sock.fileno())
            return found.failed

        return getsockopt_

    def instead(self, method: Method, answer: Callable[[Connection, tuple[Any, ...]], object]) -> Method:
        """A method that a line to the recorder has another answer to, but for what concerns any socket."""

        def method_(sock: socket.socket, *args: Any) -> object:
            found = self._by_fd.get(sock.fileno())
            if found is None or (args and args[0] == self._module.SOL_SOCKET):
                return method(sock, *args)
            return answer(found, args)

        return method_
