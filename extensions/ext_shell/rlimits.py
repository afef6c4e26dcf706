"""Resource limits of commands (setrlimit), and the explanation of an end that a limit caused."""

from __future__ import annotations

import math
import resource
import signal
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.process import ExitStatus, Output


_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]

Size = (
    Annotated[int, Meta(ge=1, le=2**62)]
    | Annotated[str, Meta(pattern="^[1-9][0-9]{0,8}(KiB|MiB|GiB|kB|MB|GB)?$", examples=["64KiB", "512MiB"])]
)


class Limits(ext_sdk.Args):
    """Resource limits of each process of a command; a limit that is not given is that of the extension."""

    early_check: ClassVar[str] = "ext_shell:check_limits"

    cpu: Annotated[
        ext_sdk.Duration | UnsetType,
        Meta(description="CPU time in whole seconds; after it a process gets SIGXCPU"),
    ] = UNSET
    memory: Annotated[Size | UnsetType, Meta(description="Address space, as bytes or 512MiB")] = UNSET
    open_files: Annotated[Count | UnsetType, Meta(description="Number of open files, sockets and pipes")] = UNSET
    file_size: Annotated[
        Size | UnsetType,
        Meta(description="Size of a written file; beyond it a process gets SIGXFSZ"),
    ] = UNSET
    processes: Annotated[
        Count | UnsetType,
        Meta(description="Number of processes and threads of the user; root has no limit"),
    ] = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.cpu, ext_sdk.Duration) and self.cpu.seconds <= 0:
            raise ValueError(f"cpu: expected a duration over 0, found {self.cpu}")

    def merged(self, others: Limits) -> Limits:
        """Return these limits, and the others for those that are not given."""
        given = {
            name: value
            for limits in (others, self)
            for name in self.__struct_fields__
            if (value := getattr(limits, name)) is not UNSET
        }
        return Limits(**given)


def size_in_bytes(size: int | str) -> int:
    """Return the bytes of a size such as `65536` or `"64KiB"`."""
    if isinstance(size, int):
        return size
    digits = size.rstrip("KMGiBk")
    return int(digits) * _UNITS[size[len(digits) :]]


def as_rlimits(limits: Limits) -> Mapping[int, tuple[int, int]]:
    """Return limits as (soft, hard) by RLIMIT_ number. Core dumps are off: they would stay in the working directory.

    Raises:
        InvalidArgs: a limit is above the hard limit of the extension, which only root may raise.
    """
    rlimits = {resource.RLIMIT_CORE: (0, 0)}
    if isinstance(limits.cpu, ext_sdk.Duration):
        seconds = math.ceil(limits.cpu.seconds)
        rlimits[resource.RLIMIT_CPU] = (seconds, seconds + 1)  # a process that handles SIGXCPU is killed later
    sizes: tuple[tuple[str, int, int | str | UnsetType], ...] = (
        ("memory", resource.RLIMIT_AS, limits.memory),
        ("openFiles", resource.RLIMIT_NOFILE, limits.open_files),
        ("fileSize", resource.RLIMIT_FSIZE, limits.file_size),
        ("processes", resource.RLIMIT_NPROC, limits.processes),
    )
    for name, number, value in sizes:
        if value is not UNSET:
            size, (_, hard) = size_in_bytes(value), resource.getrlimit(number)
            if hard not in (-1, resource.RLIM_INFINITY) and size > hard:
                text = f"expected at most {hard}, which is the limit of the extension's process; found {size}"
                raise ext_sdk.InvalidArgs(f"limits.{name}", text)
            rlimits[number] = (size, size)
    return rlimits


class _Trace(NamedTuple):
    """Signs of a reached limit in the exit status of a command, or in its output.

    The kernel reports most limits to the process alone, as an errno, which programs translate to text.
    """

    field: str
    certain: tuple[int, ...] = ()  # signals that the kernel sends for this limit alone
    likely: tuple[int, ...] = ()  # signals that are also sent for other reasons
    texts: tuple[str, ...] = ()  # lower case


_TRACES = (
    _Trace("cpu", certain=(signal.SIGXCPU,)),
    _Trace("file_size", certain=(signal.SIGXFSZ,), texts=("file too large", "file size limit exceeded")),
    _Trace(
        "memory",
        likely=(signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT),
        texts=("cannot allocate memory", "out of memory", "outofmemory", "memoryerror", "bad_alloc", "enomem"),
    ),
    _Trace("open_files", texts=("too many open files", "emfile")),
    _Trace("processes", texts=("resource temporarily unavailable", "can't start new thread", "eagain")),
)

_OF_A_SHELL = 128  # a shell exits with this and the number of the signal that ended its command
_READ = 64 * 1024  # bytes of the end of an output in which a text is looked for


def explanation(limits: Limits, status: ExitStatus, outputs: Mapping[str, Output]) -> str:
    """Return the limit that ended a command, as far as its exit status and its outputs by name show it, or ""."""
    number = status.signal or (status.code or 0) - _OF_A_SHELL
    ends = {name: output.data[-_READ:].decode("utf-8", "replace").lower() for name, output in outputs.items()}
    for trace in _TRACES:
        limit = getattr(limits, trace.field)
        if limit is UNSET:
            continue
        name = f"limits.{_NAMES[trace.field]} of {limit}"
        if number in trace.certain:
            return f"{name} was reached"
        for stream, text in ends.items() if status.code != 0 else ():
            if sign := next((sign for sign in trace.texts if sign in text), ""):
                return f"{name} was probably reached: {stream} contains {sign!r}"
        if number in trace.likely:
            return f"{name} may be too low"
    return ""


_NAMES = dict(zip(Limits.__struct_fields__, Limits.__struct_encode_fields__, strict=True))
