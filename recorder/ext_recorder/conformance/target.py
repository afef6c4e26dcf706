"""The extension under test, and the clauses of gevals 0.0.1 that checks add themselves to.

`spec` clauses follow from the text of the specification, or of JSON-RPC 2.0, which it is based on. `host` clauses are
the behaviour of real hosts beyond it: an extension that violates one conforms, and fails for its users.

A sentence that binds the host alone has no clause, nor has one that cannot be checked from outside ("Extension crash:
process exits non-zero").
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import TIMEOUT_SECONDS, Host, NotApplicable, Violation, json_object, text
from ext_recorder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

PROTOCOL_VERSION = "0.0.1"
ENTRIES = {
    "succeeds": "a call that succeeds at once",
    "fails": "a call whose operation fails (success: false)",
    "logs": "a call that sends at least one log notification",
    "slow": "a call that takes minutes unless it is stopped",
    "long": "a call whose complete result is longer than 65,535 bytes",
    "relative": "a call that creates the file `creates`, named by a relative path",
    "env": "a call that returns the environment `variable` as the output `output`",
    "agent": "a call that succeeds when the agent's output contains `text`, and fails otherwise",
    "duration": "a call with an `argument` that is a duration",
    "background": "a call that starts a background process, and returns its id as the output `pid`",
    "config": "`value`: a valid configuration; `argument`: the command line option for it",
    "limit": "`config`: a configuration that limits the time of an operation if the host sends no phase",
}


def read_profile(path: Path, expected: Iterable[str]) -> dict[str, object]:
    """Read a profile, a file with a JSON object.

    Raises:
        UsageError: the file cannot be read, or has other than the expected entries.
    """
    try:
        entries = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"--profile {path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--profile {path}: not valid JSON: {error}") from None
    if not isinstance(entries, dict):
        raise UsageError(f"--profile {path}: expected an object with entries of {', '.join(expected)}")
    if unknown := entries.keys() - set(expected):
        names = f"{', '.join(expected)}; found {', '.join(sorted(unknown))}"
        raise UsageError(f"--profile {path}: expected an object with entries of {names}")
    return entries


@dataclass(frozen=True)
class Profile:
    """Operations of an extension, for the clauses that need a certain one.

    Args:
        entries: by the names in `ENTRIES`; each is optional.
        name: for messages.
    """

    entries: dict[str, dict[str, object]]
    name: str

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Read a profile; see `read_profile`."""
        entries = read_profile(path, ENTRIES)
        try:
            return cls({name: json_object(entry, name) for name, entry in entries.items()}, str(path))
        except Violation as error:
            raise UsageError(f"--profile {path}: {error}") from None

    def entry(self, name: str) -> dict[str, object]:
        """Return an entry. Raises NotApplicable if the profile lacks it."""
        if name not in self.entries:
            raise NotApplicable(f"the profile has no entry {name!r}: {ENTRIES[name]}")
        return self.entries[name]

    def value(self, name: str, key: str) -> str:
        """Return a text of an entry. Raises NotApplicable if the profile lacks the entry."""
        return text(self.entry(name)[key], f"{key} of {name} in {self.name}")


@dataclass(frozen=True)
class Target:
    """Command of an extension, and a directory to run it in.

    Args:
        profile: its operations.
        workdir: an empty directory of this check alone.
        timeout: seconds to wait for expected output.
        environment: variables in addition to those of this process.
    """

    command: tuple[str, ...]
    profile: Profile
    workdir: Path
    timeout: float = TIMEOUT_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def started(self, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[Host]:
        """Start the extension."""
        env = {**os.environ, **self.environment, **(environment or {})}
        with Host([*self.command, *arguments], self.workdir, env, self.timeout) as host:
            yield host

    @contextmanager
    def session(self, config: object = None) -> Iterator[Host]:
        """Start and initialize the extension."""
        with self.started() as host:
            self.initialize(host, config)
            yield host

    def initialize(self, host: Host, config: object = None) -> dict[str, object]:
        """Send initialize, and return the manifest."""
        members = {} if config is None else {"config": config}
        response = host.call("initialize", {"protocolVersion": PROTOCOL_VERSION} | members)
        return json_object(response.get("result"), "the result of initialize")

    def operations(self, host: Host) -> dict[str, dict[str, object]]:
        """Initialize a started extension, and return the operations of its manifest."""
        operations = json_object(self.initialize(host).get("operations"), "operations")
        return {name: json_object(operation, name) for name, operation in operations.items()}

    def params(self, entry: str, **context: object) -> dict[str, object]:
        """Return params of `execute` for an entry of the profile; `context` adds to workdir and phase."""
        call = self.profile.entry(entry)
        return self.execute_params(text(call["operation"], "operation"), call["args"], **context)

    def execute_params(self, operation: str, args: object, **context: object) -> dict[str, object]:
        """Return params of `execute`."""
        base = {"workdir": str(self.workdir), "phase": "setup"}
        return {"operation": operation, "args": args, "context": base | context}

    def run(self, host: Host, entry: str, **context: object) -> dict[str, object]:
        """Execute an entry of the profile, and return its result."""
        return result_of(host.call("execute", self.params(entry, **context)))


def result_of(response: dict[str, object]) -> dict[str, object]:
    """Return the result of a response. Raises Violation unless it has one."""
    if "result" not in response:
        raise Violation(f"expected a result, found {response!r:.500}")
    return json_object(response["result"], "the result")


def error_code(response: dict[str, object], *expected: int) -> int:
    """Return the code of an error response. Raises Violation unless it is one of those expected."""
    error = json_object(response.get("error"), f"the error in {response!r:.300}")
    code = error.get("code")
    if type(code) is not int or code not in expected:
        raise Violation(f"expected the error code {' or '.join(map(str, expected))}, found {error!r:.300}")
    return code


def still_serves(target: Target, host: Host) -> None:
    """Check that the next request still gets its response."""
    unknown = host.call("execute", target.execute_params("no-such-operation", {}))
    error_code(unknown, -32601)


@dataclass(frozen=True)
class CheckedClause:
    """Requirement of the specification, or of a host.

    Args:
        id: short and stable; the name of its test.
        section: of the specification, or the host behaviour.
        text: the requirement in one sentence.
        check: raises Violation if the clause is violated, NotApplicable if it cannot be checked.
    """

    id: str
    section: str
    text: str
    check: Callable[[Target], None]

    @property
    def level(self) -> str:
        """`spec` or `host`."""
        return self.id.partition(":")[0]


REGISTERED: list[CheckedClause] = []  # `checks.CLAUSES` has them in the order of the specification


def clauses_of_section(level: str, section: str) -> Callable[[str, str], Callable[..., Callable[[Target], None]]]:
    """Return a decorator that registers a check as a clause of a section: `@clause(id, text)`."""

    def clause(id: str, text: str) -> Callable[..., Callable[[Target], None]]:
        def register(check: Callable[[Target], None]) -> Callable[[Target], None]:
            REGISTERED.append(CheckedClause(f"{level}:{id}", section, text, check))
            return check

        return register

    return clause
