"""Resource limits of commands, by setrlimit."""

from __future__ import annotations

import math
import resource
import signal
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.process import ExitStatus

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Size = (
    Annotated[int, Meta(ge=1, le=2**62)]
    | Annotated[str, Meta(pattern="^[1-9][0-9]{0,8}(KiB|MiB|GiB|kB|MB|GB)?$", examples=["64KiB", "512MiB"])]
)


class Limits(ext_sdk.Args):
    """What each process of a command may use. Not given: what the extension itself may."""

    cpu: Annotated[
        ext_sdk.Duration | UnsetType,
        Meta(description="Time on a processor, in whole seconds; then SIGXCPU"),
    ] = UNSET
    memory: Annotated[Size | UnsetType, Meta(description="Address space, as bytes or 512MiB")] = UNSET
    open_files: Annotated[Count | UnsetType, Meta(description="Files, sockets and pipes open at once")] = UNSET
    file_size: Annotated[Size | UnsetType, Meta(description="Largest file it may write; then SIGXFSZ")] = UNSET
    processes: Annotated[
        Count | UnsetType,
        Meta(description="Processes and threads of the user; root has no limit"),
    ] = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.cpu, ext_sdk.Duration) and self.cpu.seconds <= 0:
            raise ValueError(f"cpu: expected a duration over 0, found {self.cpu}")

    def merged(self, others: Limits) -> Limits:
        """These, and the others where these are not given."""
        given = {
            name: value
            for limits in (others, self)
            for name in self.__struct_fields__
            if (value := getattr(limits, name)) is not UNSET
        }
        return Limits(**given)


def size_in_bytes(size: int | str) -> int:
    """Bytes of `65536`, `"64KiB"`."""
    if isinstance(size, int):
        return size
    digits = size.rstrip("KMGiBk")
    return int(digits) * _UNITS[size[len(digits) :]]


def as_rlimits(limits: Limits) -> Mapping[int, tuple[int, int]]:
    """The limits as (soft, hard) by RLIMIT_ number. Core dumps are off: they would be left in the workdir.

    Raises:
        InvalidArgs: a limit above the extension's own hard one, which only root may raise.
    """
    wanted = {resource.RLIMIT_CORE: (0, 0)}
    if isinstance(limits.cpu, ext_sdk.Duration):
        seconds = math.ceil(limits.cpu.seconds)
        wanted[resource.RLIMIT_CPU] = (seconds, seconds + 1)  # a process that handles SIGXCPU is killed later
    sizes: tuple[tuple[str, int, int | str | UnsetType], ...] = (
        ("memory", resource.RLIMIT_AS, limits.memory),
        ("openFiles", resource.RLIMIT_NOFILE, limits.open_files),
        ("fileSize", resource.RLIMIT_FSIZE, limits.file_size),
        ("processes", resource.RLIMIT_NPROC, limits.processes),
    )
    for name, number, value in sizes:
        if value is not UNSET:
            size = size_in_bytes(value)
            _refuse_over(name, size, resource.getrlimit(number)[1])
            wanted[number] = (size, size)
    return wanted


def _refuse_over(name: str, value: int, hard: int) -> None:
    if hard not in (-1, resource.RLIM_INFINITY) and value > hard:
        raise ext_sdk.InvalidArgs(
            f"limits.{name}", f"expected at most {hard}, which is the limit of this extension's process; found {value}"
        )


def explanation(limits: Limits, status: ExitStatus) -> str:
    """Which limit ended a command, as far as its end tells; "" for none."""
    if status.signal == signal.SIGXCPU and limits.cpu is not UNSET:
        return f"limits.cpu of {limits.cpu} was reached"
    if status.signal == signal.SIGXFSZ and limits.file_size is not UNSET:
        return f"limits.fileSize of {limits.file_size} was reached"
    if status.signal in {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT} and limits.memory is not UNSET:
        return f"limits.memory of {limits.memory} may be too low for it"
    return ""
