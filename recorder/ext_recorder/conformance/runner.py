"""Run of `ext-recorder conformance`: check the clauses on one child, and print the verdicts."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.batch.pool import Progress, cores
from ext_recorder.batch.reports import Case, junit, readable, write
from ext_recorder.errors import UsageError
from ext_recorder.messages.differences import Problem
from ext_recorder.sockets.address import Address
from ext_sdk.core.wire.json_codec import dumps

from .checks import CLAUSES
from .conversations import CONVERSATIONS
from .peer import ChildUnderTest
from .protocol_clauses import ask, clauses_of
from .raw_host import PATIENCE_SECONDS, NotApplicable, Violation
from .target import Profile, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .clauses import Clause

GEVALS = "gevals"
EXIT_VIOLATIONS = 1
_WORDS = {"met": "met", "violated": "VIOLATED", "skipped": "skipped"}


class Verdict:
    """Verdict on one clause.

    Attributes:
        number: of the clause, from 1, in the order of the specification.
        clause: the clause.
        word: "met", "violated" or "skipped".
        reason: why it is violated, or was skipped.
        seconds: duration of the check.
    """

    __slots__ = ("clause", "number", "reason", "seconds", "word")

    def __init__(self, number: int, clause: Clause, word: str, reason: str, seconds: float) -> None:
        self.number = number
        self.clause = clause
        self.word = word
        self.reason = reason
        self.seconds = seconds


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
    patience: float = PATIENCE_SECONDS,
) -> int:
    """Check the clauses of a protocol on a child, and print the verdicts.

    Args:
        command: the child. It is started in an empty directory, for spec 0 once per clause. () for a server that is
            already running.
        protocol: name of the protocol.
        connect: address of a socket server; "" for a child on its standard files.
        profile: file with the operations of the child; "" for none.
        only: ids of clauses, or prefixes of them; () for all.
        as_json: print a line of JSON for each clause instead of a table.
        junit_file: path of a JUnit XML report; "" for none.
        jobs: number of clauses that are checked in parallel; 0: the number of cores.
        patience: seconds to wait for expected output.

    Returns:
        The exit code: 0 if no clause is violated, else 1.

    Raises:
        UsageError: the command does not exist, the profile cannot be read, no clause has such an id, or the protocol
            does not use sockets.
        RecorderError: no server listens at the address.
    """
    chosen = _chosen(only, CLAUSES if protocol == GEVALS else clauses_of(protocol))
    address = Address.parse(connect, "--connect") if connect else None
    if address and protocol == GEVALS:
        raise UsageError("--connect is for servers on sockets; the gevals protocol uses standard input and output only")
    located = _located(command) if command else ()
    if protocol == GEVALS:
        asked = _asked(chosen, located, _profile(profile), jobs or cores(), patience)
    else:
        asked = _conversed(
            chosen, protocol, _known(profile, protocol), command=located, address=address, patience=patience
        )
    verdicts = []
    for verdict in asked:
        sys.stdout.write(_json_line(verdict) if as_json else _lines(verdict))
        sys.stdout.flush()
        verdicts.append(verdict)
    if junit_file:
        write(junit_file, junit("ext-recorder conformance", [_case(each) for each in verdicts]))
    if not as_json:
        sys.stdout.write(_summary(verdicts))
    return EXIT_VIOLATIONS if any(each.word == "violated" for each in verdicts) else 0


def _chosen(only: Sequence[str], clauses: Sequence[Clause]) -> list[tuple[int, Clause]]:
    numbered = list(enumerate(clauses, 1))
    for start in only:
        if not any(clause.id.startswith(start) for clause in clauses):
            kinds = " and ".join(f"--only {level}:" for level in dict.fromkeys(each.level for each in clauses))
            raise UsageError(f"--only {start}: no clause has this id; {kinds} select all of one kind")
    return [(n, clause) for n, clause in numbered if not only or any(clause.id.startswith(start) for start in only)]


def _located(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command with absolute paths of files, for another directory. Raises UsageError if it cannot start."""
    words = tuple(str(Path(word).absolute()) if Path(word).is_file() else word for word in command)
    if shutil.which(words[0]):
        return words
    if Path(words[0]).is_file():
        why = "is not executable (chmod +x)"
    else:
        why = "does not exist" if "/" in words[0] else "is not in PATH"
    raise UsageError(f"the command {command[0]!r} {why}")


def _profile(path: str) -> Profile:
    if not path:
        return Profile({}, "no profile")
    try:
        return Profile.load(Path(path))
    except OSError as error:
        raise UsageError(f"--profile {path}: cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"--profile {path}:{error.lineno}: not valid JSON: {error.msg}") from None
    except (ValueError, AttributeError, Violation) as error:
        raise UsageError(f"--profile {error}" if str(path) in str(error) else f"--profile {path}: {error}") from None


def _known(path: str, protocol: str) -> dict[str, object]:
    """Return the profile of a child of another protocol: values for the messages to it."""
    if not path:
        return {}
    expected = CONVERSATIONS[protocol].profile
    try:
        entries = json.loads(Path(path).read_text())
    except OSError as error:
        raise UsageError(f"--profile {path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--profile {path}: not valid JSON: {error}") from None
    if not isinstance(entries, dict) or not entries.keys() <= expected.keys():
        raise UsageError(f"--profile {path}: expected an object with entries of {', '.join(expected)}")
    return {name: _place(value) for name, value in entries.items()}


def _place(value: object) -> object:
    """Return the absolute path of an existing file, because the child runs in another directory."""
    return str(Path(value).absolute()) if isinstance(value, str) and Path(value).exists() else value


def _conversed(
    chosen: Sequence[tuple[int, Clause]],
    protocol: str,
    known: dict[str, object],
    *,
    command: tuple[str, ...],
    address: Address | None,
    patience: float,
) -> Iterator[Verdict]:
    """Yield the verdicts on clauses that are checked in one conversation."""
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name).resolve()
        with ChildUnderTest(command, folder, address) as peer:
            only = {clause.id for _, clause in chosen}
            found = ask(peer, protocol, {"workdir": str(folder), "session": folder.name, **known}, only, patience)
    seconds = (monotonic() - began) / max(1, len(chosen))
    for number, clause in chosen:
        yield Verdict(number, clause, *found[clause.id], seconds)


def _asked(
    chosen: Sequence[tuple[int, Clause]], command: tuple[str, ...], profile: Profile, jobs: int, patience: float
) -> Iterator[Verdict]:
    """Yield the verdicts in the order of the clauses."""
    with Progress(len(chosen)) as progress, ThreadPoolExecutor(jobs) as pool:
        asked = [pool.submit(_ask, number, clause, command, profile, patience) for number, clause in chosen]
        try:
            for each in asked:
                verdict = each.result()
                progress.advance()
                progress.aside()
                yield verdict
        finally:
            pool.shutdown(cancel_futures=True)


def _ask(number: int, clause: Clause, command: tuple[str, ...], profile: Profile, patience: float) -> Verdict:
    began = monotonic()
    word, reason = "met", ""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        try:
            clause.check(Target(command, profile, Path(folder).resolve(), patience))
        except NotApplicable as why:
            word, reason = "skipped", str(why)
        except Violation as why:
            word, reason = "violated", str(why)
    return Verdict(number, clause, word, reason, monotonic() - began)


def _lines(verdict: Verdict) -> str:
    clause = verdict.clause
    text = f"{verdict.number:3}  {_WORDS[verdict.word]:8}  {clause.id:27} {clause.section}: {clause.text}\n"
    return text + "".join(f"                    {readable(line)}\n" for line in verdict.reason.splitlines())


def _json_line(verdict: Verdict) -> str:
    clause = verdict.clause
    shown: dict[str, object] = {
        "number": verdict.number,
        "clause": clause.id,
        "section": clause.section,
        "text": clause.text,
        "verdict": verdict.word,
        "seconds": round(verdict.seconds, 6),
    }
    if verdict.reason:
        shown["reason"] = verdict.reason
    return readable(dumps(shown)) + "\n"


def _case(verdict: Verdict) -> Case:
    clause = verdict.clause
    problems = [Problem(clause.id, verdict.reason)] if verdict.word == "violated" else []
    name = f"{clause.level} {clause.section}/{verdict.number:03} {clause.id} {clause.text}"
    skipped = verdict.reason if verdict.word == "skipped" else ""
    return Case(name, seconds=verdict.seconds, problems=problems, skipped=skipped)


def _summary(verdicts: Sequence[Verdict]) -> str:
    counts = {word: sum(each.word == word for each in verdicts) for word in _WORDS}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    noun = "clause" if len(verdicts) == 1 else "clauses"
    return f"{len(verdicts)} {noun}: {told}\n"
