"""The extension under test: how to start it, and what may be asked of it."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .raw_host import PATIENCE_SECONDS, Host, NotApplicable, Violation, json_object, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PROTOCOL_VERSION = "0.0.1"
ENTRIES = {
    "succeeds": "a call that succeeds at once",
    "fails": "a call whose operation fails (success: false)",
    "logs": "a call that sends at least one log notification",
    "slow": "a call that takes minutes, unless it is stopped",
    "long": "a call whose whole result is over 65,535 bytes",
    "relative": "a call that makes the file `creates`, which it names by a relative path",
    "env": "a call that shows the environment `variable` as the output `output`",
    "agent": "a call that succeeds when the agent's output contains `text`, and fails when not",
    "duration": "a call with an `argument` that holds a duration",
    "background": "a call that starts a process that goes on, and gives its id as the output `pid`",
    "config": "`value`: a configuration that is accepted; `argument`: the option that gives it on the command line",
    "limit": "`config`: a configuration that limits the time of an operation where the host gives no phase",
}


@dataclass(frozen=True)
class Profile:
    """What an extension has to offer for the clauses that need a certain operation.

    Args:
        entries: by the names in `ENTRIES`; any may be missing.
        name: for messages.
    """

    entries: dict[str, dict[str, object]]
    name: str

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Read a profile, a JSON file.

        Raises:
            ValueError: it is no JSON object of objects, or has an entry that is unknown.
        """
        entries = json.loads(path.read_text())
        unknown = entries.keys() - ENTRIES.keys()
        if unknown:
            raise ValueError(f"{path}: expected entries of {', '.join(ENTRIES)}; found {', '.join(sorted(unknown))}")
        return cls({name: json_object(entry, name) for name, entry in entries.items()}, str(path))

    def entry(self, name: str) -> dict[str, object]:
        """An entry. Raises NotApplicable where the profile has none."""
        if name not in self.entries:
            raise NotApplicable(f"the profile has no entry {name!r}: {ENTRIES[name]}")
        return self.entries[name]

    def value(self, name: str, key: str) -> str:
        """A text in an entry. Raises NotApplicable where the profile has no such entry."""
        return text(self.entry(name)[key], f"{key} of {name} in {self.name}")


@dataclass(frozen=True)
class Target:
    """An extension and a place to run it in.

    Args:
        command: argv.
        profile: what may be asked of it.
        workdir: an empty directory of this test's own.
        patience: seconds to wait for what must come.
        environment: variables beside those of the tests.
    """

    command: tuple[str, ...]
    profile: Profile
    workdir: Path
    patience: float = PATIENCE_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def started(self, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[Host]:
        """The extension, started and told nothing yet."""
        env = {**os.environ, **self.environment, **(environment or {})}
        with Host([*self.command, *arguments], self.workdir, env, self.patience) as host:
            yield host

    @contextmanager
    def session(self, config: object = None) -> Iterator[Host]:
        """The extension, started and initialized."""
        with self.started() as host:
            self.initialize(host, config)
            yield host

    def initialize(self, host: Host, config: object = None) -> dict[str, object]:
        """The manifest."""
        members = {} if config is None else {"config": config}
        response = host.call("initialize", {"protocolVersion": PROTOCOL_VERSION} | members)
        return json_object(response.get("result"), "the result of initialize")

    def operations(self, host: Host) -> dict[str, dict[str, object]]:
        """The operations of the manifest, of an extension that was just started."""
        operations = json_object(self.initialize(host).get("operations"), "operations")
        return {name: json_object(operation, name) for name, operation in operations.items()}

    def params(self, entry: str, **context: object) -> dict[str, object]:
        """Params of `execute` for an entry of the profile; `context` is added to workdir and phase."""
        call = self.profile.entry(entry)
        return self.execute_params(text(call["operation"], "operation"), call["args"], **context)

    def execute_params(self, operation: str, args: object, **context: object) -> dict[str, object]:
        """Params of `execute`."""
        base = {"workdir": str(self.workdir), "phase": "setup"}
        return {"operation": operation, "args": args, "context": base | context}

    def run(self, host: Host, entry: str, **context: object) -> dict[str, object]:
        """Execute an entry of the profile; its result."""
        response = host.call("execute", self.params(entry, **context))
        if "result" not in response:
            raise Violation(f"expected a result, found {response!r:.500}")
        return json_object(response["result"], "the result of execute")


def error_code(response: dict[str, object], *expected: int) -> int:
    """The code of an error response, which must be one of those expected."""
    error = json_object(response.get("error"), f"the error in {response!r:.300}")
    code = error.get("code")
    if type(code) is not int or code not in expected:
        raise Violation(f"expected the error code {' or '.join(map(str, expected))}, found {error!r:.300}")
    return code


def still_serves(target: Target, host: Host) -> None:
    """Whatever came before: the next request is answered as ever."""
    unknown = host.call("execute", target.execute_params("no-such-operation", {}))
    error_code(unknown, -32601)


def run_for_each(names: Sequence[str], what: str) -> str:
    """A list for a message."""
    return f"{what}: {', '.join(names)}"
