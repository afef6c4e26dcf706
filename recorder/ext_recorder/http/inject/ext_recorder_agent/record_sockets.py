"""Patches of plain sockets for recording. They only report: results and exceptions are those of the originals."""

from __future__ import annotations

from .connections import peeks, text_of
from .traffic import TrafficReporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .channel import Channel
    from .clock import RecordedClock
    from .connections import Connections

    Method = Callable[..., Any]

PASSING = (BlockingIOError, InterruptedError)  # the operation has not failed, it is incomplete


def patch_names(module: Any, reporter: TrafficReporter) -> None:
    """Report the addresses of hosts.

    Args:
        module: socket.
    """
    look_up: Method = module.getaddrinfo

    def getaddrinfo(host: object, port: object, *args: object, **named: object) -> object:
        try:
            results = look_up(host, port, *args, **named)
        except OSError as error:
            reporter.refused((text_of(host), port), error)
            raise
        if host:
            name, addresses = text_of(host), list(dict.fromkeys(str(result[4][0]) for result in results))
            if addresses != [name]:
                for address in addresses:
                    reporter.connections.named(name, address)
                reporter.report("resolved", {"host": name, "addresses": addresses})
        return results

    module.getaddrinfo = getaddrinfo


def patch_sockets(module: Any, reporter: TrafficReporter) -> None:
    """Report the traffic of plain sockets.

    Args:
        module: socket.
    """
    Patches(module, reporter).install(module.socket)
    patch_listening(module, reporter.connections)
    patch_files(module)


class Patches:
    """Replacements for methods of `socket.socket`."""

    def __init__(self, module: Any, reporter: TrafficReporter) -> None:
        self._module = module
        self._reporter = reporter
        self._inet = (module.AF_INET, module.AF_INET6)
        self._so_error = (module.SOL_SOCKET, module.SO_ERROR)

    def install(self, kind: Any) -> None:
        """Replace the methods."""
        kind.connect = self.connecting(kind.connect)
        kind.connect_ex = self.connecting(kind.connect_ex)
        kind.send = self.sending(kind.send, whole=False)
        kind.sendall = self.sending(kind.sendall, whole=True)
        kind.sendmsg = self.sending_pieces(kind.sendmsg)
        kind.sendto = self.sending_datagrams(kind.sendto)
        kind.recv = self.receiving(kind.recv)
        kind.recv_into = self.receiving(kind.recv_into)
        kind._real_close = self.closing(kind._real_close)
        kind.getsockopt = self.asking(kind.getsockopt)

    def connecting(self, connect: Method) -> Method:
        """Wrap `connect`, or `connect_ex`, which returns the error that `connect` raises."""
        errno, reporter, stream = self._module.errno, self._reporter, self._module.SOCK_STREAM
        good = {0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EISCONN}
        families = {*self._inet, self._module.AF_UNIX}

        def connect_(sock: socket.socket, address: object) -> object:
            if sock.type != stream or sock.family not in families or reporter.connections.is_own(address):
                return connect(sock, address)
            try:
                result = connect(sock, address)
            except PASSING:
                reporter.opened(sock, address)
                raise
            except OSError as error:
                reporter.refused(address, error)
                reporter.times.step()
                raise
            if result is None or result in good:
                reporter.opened(sock, address)
            else:
                reporter.refused(address, self._error(result))
                reporter.times.step()
            return result

        return connect_

    def _error(self, number: int) -> OSError:
        return OSError(number, self._module.os.strerror(number))

    def sending(self, send: Method, *, whole: bool) -> Method:
        """Wrap `send`, or `sendall`, which sends all of the data."""
        reporter = self._reporter

        def send_(sock: socket.socket, data: bytes, *args: object) -> object:
            fd = sock.fileno()
            if fd not in reporter.connections.by_fd:
                return send(sock, data, *args)
            try:
                result = send(sock, data, *args)
            except PASSING:
                raise
            except OSError as error:
                reporter.failed(fd, error)
                raise
            view = memoryview(data).cast("B")
            reporter.sent(fd, view if whole else view[:result])
            return result

        return send_

    def sending_pieces(self, sendmsg: Method) -> Method:
        """Wrap `sendmsg`."""

        def sendmsg_(sock: socket.socket, buffers: list[bytes], *args: object) -> object:
            result = sendmsg(sock, buffers, *args)
            self._reporter.sent(sock.fileno(), b"".join(buffers)[:result])
            return result

        return sendmsg_

    def sending_datagrams(self, sendto: Method) -> Method:
        """Wrap `sendto`."""

        def sendto_(sock: socket.socket, *args: object) -> object:
            if sock.family in self._inet and sock.type != self._module.SOCK_STREAM:
                self._reporter.problem(f"a datagram to {args[-1]}: only connections are recorded")
            return sendto(sock, *args)

        return sendto_

    def receiving(self, receive: Method) -> Method:
        """Wrap `recv`, or `recv_into`, which returns the number of bytes in its buffer."""
        reporter = self._reporter

        def receive_(sock: socket.socket, *args: Any, **named: Any) -> object:
            fd = sock.fileno()
            if fd not in reporter.connections.by_fd or peeks(self._module, args, named):
                return receive(sock, *args, **named)
            try:
                result = receive(sock, *args, **named)
            except PASSING:
                raise
            except OSError as error:
                reporter.failed(fd, error)
                raise
            if isinstance(result, bytes):
                reporter.received(fd, result)
            else:
                buffer = args[0] if args else named["buffer"]
                reporter.received(fd, memoryview(buffer).cast("B")[:result])
            return result

        return receive_

    def closing(self, close: Method) -> Method:
        """Wrap `_real_close`, which is called when the last reference to the socket is closed."""

        def real_close(sock: socket.socket, *args: object) -> object:
            self._reporter.closed(sock.fileno())
            return close(sock, *args)

        return real_close

    def asking(self, getsockopt: Method) -> Method:
        """Wrap `getsockopt`, by which event loops read the result of a connection attempt."""
        reporter = self._reporter

        def getsockopt_(sock: socket.socket, *args: object) -> object:
            result = getsockopt(sock, *args)
            connection = reporter.connections.by_fd.get(sock.fileno())
            if connection and result and args == self._so_error:
                reporter.connections.by_fd.pop(sock.fileno())
                reporter.report("forget", {"c": connection.id})
                reporter.refused(connection.address, self._error(result))
            return result

        return getsockopt_


def patch_listening(module: Any, connections: Connections) -> None:
    """Register the addresses that this process listens on.

    Args:
        module: socket.
    """
    listen: Method = module.socket.listen

    def listen_(sock: socket.socket, *args: object) -> object:
        result = listen(sock, *args)
        connections.listening(sock.getsockname())
        return result

    module.socket.listen = listen_


def patch_files(module: Any) -> None:
    """Make `sendfile` use `send` instead of the kernel.

    Args:
        module: socket.
    """

    def give_up(*args: object) -> object:
        raise module._GiveupOnSendfile(OSError("recorded"))

    module.socket._sendfile_use_sendfile = give_up


def install(module: ModuleType, channel: Channel, times: RecordedClock) -> Callable[[ModuleType], None]:
    """Patch `socket`. Return the function that patches `ssl`, which is imported later."""
    import atexit

    reporter = TrafficReporter(channel, times)
    atexit.register(reporter.flush)
    patch_names(module, reporter)
    patch_sockets(module, reporter)

    def ssl_imported(module: ModuleType) -> None:
        from .record_tls import patch_tls

        patch_tls(module, reporter)

    return ssl_imported
