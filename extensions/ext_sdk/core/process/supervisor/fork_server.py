"""Fork server: one process for each owner, which forks a supervisor for each launch."""

from __future__ import annotations

import _socket
import errno
import marshal
import os
import select
import sys

from .launcher import STOP_SIGNALS, Launch, become_subreaper, start, wake_on
from .supervisor import ProcessGroup, ProcessTree, Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

__all__ = ["DESCRIPTORS", "main"]

DESCRIPTORS = 5  # control socket, working directory, stdin, stdout, stderr


class ForkServer:
    """Forks a supervisor for each launch received on the socket, until the socket ends."""

    def __init__(self, requests: _socket.socket, contained: bool) -> None:
        self._requests = requests
        self._contained = contained
        self._supervisors: set[int] = set()
        self._tree = ProcessTree()

    def serve(self) -> None:
        """Serve launches; then wait until every supervisor has exited."""
        wakeups = wake_on(_signal.SIGCHLD)
        poll = select.poll()
        poll.register(wakeups, select.POLLIN)
        poll.register(self._requests.fileno(), select.POLLIN)
        served = True
        while True:
            # Reap supervisors, and kill other processes: those were left by a supervisor that was killed.
            ended, left = self._tree.reap()
            well = all(status == 0 and pid in self._supervisors for pid, status in ended)
            self._supervisors.difference_update(pid for pid, _ in ended)
            if left and not well and self._contained:
                self._tree.kill(skip=self._supervisors)
            if not (left or served):
                return
            for descriptor, _ in poll.poll():
                if descriptor == wakeups:
                    os.read(wakeups, 4096)
                elif received := _receive(self._requests):
                    self._launch(*received)
                else:
                    poll.unregister(descriptor)
                    served = False

    def _launch(self, launch: Launch, descriptors: list[int]) -> None:
        control = _socket.socket(fileno=descriptors[0])
        try:
            pid = os.fork()
        except OSError as error:
            _report_failure(control, error, "fork")
            pid = -1
        if pid == 0:  # the supervisor of this command
            status = 1
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the fork server's socket is not ours
                wakeups = wake_on(_signal.SIGCHLD, *STOP_SIGNALS)
                if self._contained:
                    become_subreaper()
                control.sendall(b"watched\n")  # raises if the owner has exited: then nothing is started
                command, failure = start(launch, descriptors[1], descriptors[2:])
                tree = ProcessTree() if self._contained else ProcessGroup(command)
                supervisor = Supervisor(control, launch, command, tree)
                supervisor.report(failure or f"pid {command}")
                supervisor.watch(wakeups)
                status = 0
            except BaseException as error:  # noqa: BLE001 - no memory, or a bug: the fork server kills what is left
                _report_failure(control, error, "supervisor")
            os._exit(status)
        if pid > 0:
            self._supervisors.add(pid)
        control.close()
        for descriptor in descriptors[1:]:
            os.close(descriptor)


def _report_failure(control: _socket.socket, error: BaseException, stage: str) -> None:
    number = (error.errno if isinstance(error, OSError) else None) or errno.EIO
    try:  # noqa: SIM105 - importing contextlib takes as long as this complete program
        control.send(f"error {number} {stage}\n".encode())
    except OSError:
        pass  # the owner has exited


def _receive(requests: _socket.socket) -> tuple[Launch, list[int]] | None:
    """Read one launch: 4 bytes of length, which carry the descriptors, then its marshalled fields.

    Marshal is safe here: the only peer is the owner, which runs this same interpreter as this same user.
    """
    try:
        head, ancillary, _, _ = requests.recvmsg(4, _socket.CMSG_SPACE(DESCRIPTORS * 4))
        packed = b"".join(data for _, _, data in ancillary)
        descriptors = [int.from_bytes(packed[i : i + 4], sys.byteorder) for i in range(0, len(packed), 4)]
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # noqa: FBT003
        head += _read(requests, 4 - len(head)) if head else b""
        fields = _read(requests, int.from_bytes(head, "big"))
    except OSError:
        return None
    if not fields or len(descriptors) != DESCRIPTORS:
        return None
    return Launch(**marshal.loads(fields)), descriptors  # noqa: S302 - see above


def _read(requests: _socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes; b"" if the socket ends before."""
    parts = []
    while size:
        part = requests.recv(size)
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main() -> None:
    """Serve the socket at fd 0. With `--group` only process groups are contained, as without Linux."""
    for number in STOP_SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)  # it exits after its owner, not before
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    contained = "--group" not in sys.argv
    if contained:
        become_subreaper()
    ForkServer(_socket.socket(fileno=0), contained).serve()
