"""Sending many messages through a program by `programs/drive`, a host that measures."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.bench.harness import Bench, BenchError, pinned

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

WINDOW = 64  # messages unanswered at a time; 300 bytes each, a pipe holds three times as much
PATIENCE_SECONDS = 330  # the driver ends itself sooner
_COMPLAINT_BYTES = 500


@dataclass(frozen=True, slots=True)
class Driven:
    """What the driver has measured.

    Attributes:
        seconds: from the first answer to the last.
        to_exit: from the first answer to the end of the program.
        p50: the median of a call, in seconds; with many at once it counts from the sending.
        p99: the 99th percentile.
        cpu: seconds of processor time of the program and all that it has waited for.
        early_kib: the program's memory after `early` answers; this and the next two are 0 where a system does not tell.
        last_kib: after the last.
        peak_kib: the most that it ever had.
    """

    seconds: float
    to_exit: float
    p50: float
    p99: float
    cpu: float
    early_kib: int
    last_kib: int
    peak_kib: int


def drive(
    bench: Bench,
    command: Sequence[str],
    requests: Path,
    answers: Path | None,
    *,
    window: int = 1,
    early: int = 0,
    cores: Sequence[int],
    exits: Container[int] = (0,),
) -> Driven:
    """Send requests, take the answers, and wait for the end.

    Args:
        bench: where and with what.
        command: the program, which ends when its input does.
        requests: a file of lines.
        answers: a file of what must come, byte for byte; None: one line for each request.
        window: requests unanswered at a time.
        early: see Driven.
        cores: where driver and program run.
        exits: exit codes that are as good as any.

    Raises:
        BenchError: other answers, or another exit code.
    """
    words = [*bench.programs.drive, str(requests), str(answers or "-"), str(window), str(early), *command]
    measured, complaint = told(bench, words, command, cores)
    if (code := measured.pop("exit")) not in exits:
        raise BenchError(f"{' '.join(command)}: exit code {code}, expected 0: {_first_words(complaint)}")
    return Driven(**measured)


def told(
    bench: Bench, words: Sequence[str], command: Sequence[str], cores: Sequence[int]
) -> tuple[dict[str, Any], bytes]:
    """Run a program that measures another one: the JSON that it prints, and what came on stderr.

    Args:
        bench: where and with what.
        words: its command line.
        command: the one that is measured, for messages.
        cores: where both run.

    Raises:
        BenchError: it failed.
    """
    with pinned(cores):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=bench.environment
        )
    try:
        said, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    if process.returncode:
        raise BenchError(f"{' '.join(command)}: {complaint.decode(errors='replace').strip()[-500:]}")
    measured: dict[str, Any] = json.loads(said)
    return measured, complaint


def _first_words(complaint: bytes) -> str:
    return complaint[:_COMPLAINT_BYTES].decode(errors="replace").strip()
