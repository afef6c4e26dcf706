"""Run of `ext-recorder conformance`: check the clauses on one child, and print the verdicts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.batch.pool import Progress, cores
from ext_recorder.batch.reports import Case, junit, write
from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.errors import UsageError
from ext_recorder.messages.differences import Problem
from ext_recorder.sockets.address import Address
from ext_sdk.core.text import readable
from ext_sdk.core.wire.json_codec import dumps

from .checks import CLAUSES
from .peer import ChildUnderTest
from .protocol_clauses import clauses_of, run_conversation
from .raw_host import TIMEOUT_SECONDS, NotApplicable, Violation
from .target import Profile, Target, read_profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_recorder.conformance.target import CheckedClause

GEVALS = "gevals"
EXIT_VIOLATIONS = 1
_WORDS = {"met": "met", "violated": "VIOLATED", "skipped": "skipped"}


class Verdict(NamedTuple):
    """Verdict on one clause.

    Attributes:
        number: number of the clause, from 1, in the order of the specification.
        word: "met", "violated" or "skipped".
    """

    number: int
    clause: CheckedClause
    word: str
    reason: str
    seconds: float

    def as_text(self) -> str:
        """Return the lines of the verdict in the table."""
        clause = self.clause
        text = f"{self.number:3}  {_WORDS[self.word]:8}  {clause.id:27} {clause.section}: {clause.text}\n"
        return text + "".join(f"                    {readable(line)}\n" for line in self.reason.splitlines())

    def as_json(self) -> str:
        """Return the verdict as a line of JSON."""
        members: dict[str, object] = {
            "number": self.number,
            "clause": self.clause.id,
            "section": self.clause.section,
            "text": self.clause.text,
            "verdict": self.word,
            "seconds": round(self.seconds, 6),
        }
        if self.reason:
            members["reason"] = self.reason
        return readable(dumps(members)) + "\n"

    def as_case(self) -> Case:
        """Return the verdict as a test case of a JUnit report."""
        clause = self.clause
        problems = [Problem(clause.id, self.reason)] if self.word == "violated" else []
        name = f"{clause.level} {clause.section}/{self.number:03} {clause.id} {clause.text}"
        skipped = self.reason if self.word == "skipped" else ""
        return Case(name, seconds=self.seconds, problems=problems, skipped=skipped)


def run(
    command: Sequence[str],
    *,
    protocol: str = GEVALS,
    connect: str = "",
    profile: str = "",
    only: Sequence[str] = (),
    as_json: bool = False,
    junit_file: str = "",
    jobs: int = 0,
    timeout: float = TIMEOUT_SECONDS,
) -> int:
    """Check the clauses of a protocol on a child, and print the verdicts.

    Args:
        command: the child. It is started in an empty directory, for gevals 0.0.1 once per clause. () for a server
            that is already running.
        connect: address of a socket server; "" for a child on its standard files.
        profile: path of a file with the operations of the child; "" for none.
        only: ids of clauses, or prefixes of them; () for all.
        as_json: print a line of JSON for each clause instead of a table.
        jobs: number of clauses that are checked in parallel; 0: the number of cores.
        timeout: seconds to wait for expected output.

    Returns:
        The exit code: 0 if no clause is violated, else 1.

    Raises:
        UsageError: the command does not exist, the profile cannot be read, no clause has such an id, or the protocol
            does not use sockets.
        RecorderError: no server listens at the address.
    """
    clauses = CLAUSES if protocol == GEVALS else clauses_of(protocol)
    for prefix in only:
        if not any(clause.id.startswith(prefix) for clause in clauses):
            kinds = " and ".join(f"--only {level}:" for level in dict.fromkeys(clause.level for clause in clauses))
            raise UsageError(f"--only {prefix}: no clause has this id; {kinds} select all of one kind")
    chosen = [(n, clause) for n, clause in enumerate(clauses, 1) if clause.id.startswith(tuple(only) or "")]
    address = Address.parse(connect, "--connect") if connect else None
    if address and protocol == GEVALS:
        raise UsageError("--connect is for servers on sockets; the gevals protocol uses standard input and output only")
    located = _located(command) if command else ()
    if protocol == GEVALS:
        operations = Profile.load(Path(profile)) if profile else Profile({}, "no profile")
        checked = _check_each(chosen, located, operations, jobs or cores(), timeout)
    else:
        known = read_profile(Path(profile), CONVERSATIONS[protocol].profile) if profile else {}
        for name, value in known.items():
            if isinstance(value, str) and Path(value).exists():
                known[name] = str(Path(value).absolute())  # the child runs in another directory
        checked = _converse(chosen, protocol, known, command=located, address=address, timeout=timeout)
    verdicts = []
    for verdict in checked:
        sys.stdout.write(verdict.as_json() if as_json else verdict.as_text())
        sys.stdout.flush()
        verdicts.append(verdict)
    if junit_file:
        write(junit_file, junit("ext-recorder conformance", [verdict.as_case() for verdict in verdicts]))
    counts = Counter(verdict.word for verdict in verdicts)
    if not as_json:
        text = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
        sys.stdout.write(f"{len(verdicts)} {'clause' if len(verdicts) == 1 else 'clauses'}: {text}\n")
    return EXIT_VIOLATIONS if counts["violated"] else 0


def _located(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command with absolute paths of files, for another directory. Raises UsageError if it cannot start."""
    words = tuple(str(Path(word).absolute()) if Path(word).is_file() else word for word in command)
    if shutil.which(words[0]):
        return words
    if Path(words[0]).is_file():
        reason = "is not executable (chmod +x)"
    else:
        reason = "does not exist" if "/" in words[0] else "is not in PATH"
    raise UsageError(f"the command {command[0]!r} {reason}")


def _converse(
    chosen: Sequence[tuple[int, CheckedClause]],
    protocol: str,
    known: dict[str, object],
    *,
    command: tuple[str, ...],
    address: Address | None,
    timeout: float,
) -> Iterator[Verdict]:
    """Yield the verdicts on clauses that are checked in one conversation."""
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name).resolve()
        with ChildUnderTest(command, folder, address) as peer:
            only = {clause.id for _, clause in chosen}
            values = {"workdir": str(folder), "session": folder.name, **known}
            verdicts = run_conversation(peer, protocol, values, only, timeout)
    seconds = (monotonic() - began) / max(1, len(chosen))
    for number, clause in chosen:
        yield Verdict(number, clause, *verdicts[clause.id], seconds)


def _check_each(
    chosen: Sequence[tuple[int, CheckedClause]], command: tuple[str, ...], profile: Profile, jobs: int, timeout: float
) -> Iterator[Verdict]:
    """Yield the verdicts in the order of the clauses."""
    with Progress(len(chosen)) as progress, ThreadPoolExecutor(jobs) as pool:
        checks = [pool.submit(_check, number, clause, command, profile, timeout) for number, clause in chosen]
        try:
            for check in checks:
                verdict = check.result()
                progress.advance()
                progress.aside()
                yield verdict
        finally:
            pool.shutdown(cancel_futures=True)


def _check(number: int, clause: CheckedClause, command: tuple[str, ...], profile: Profile, timeout: float) -> Verdict:
    began = monotonic()
    word, reason = "met", ""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        try:
            clause.check(Target(command, profile, Path(folder).resolve(), timeout))
        except NotApplicable as error:
            word, reason = "skipped", str(error)
        except Violation as error:
            word, reason = "violated", str(error)
    return Verdict(number, clause, word, reason, monotonic() - began)
