"""Children of a run that use stdio: each start of a child has a cassette of its own in the folder of the recording.

`run` writes the file of the session, and a shim for each child. A shim starts `ext-recorder record`, which reads here
whether to record the child, to replay it or to run it. A shim of the user (`ext-recorder shim`) does the same if
EXT_RECORDER_RUN is set. Every replayed child imports this module, so it imports little.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from itertools import zip_longest

from ext_recorder.errors import RECORD_AGAIN, RecorderError, UsageError
from ext_sdk.core import own_program
from ext_sdk.core.wire.json_codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    from ext_recorder.cassette.recording import Child
    from ext_recorder.messages.provenance import Live

VARIABLE = "EXT_RECORDER_RUN"  # the folder of the session
SESSION, STARTS, REPORT, CLAIMS = "children.json", "starts.ndjson", "report.ndjson", "claims"
HTTP_STARTS = "sessions.ndjson"  # the same as STARTS, for sessions over HTTP, which the proxy records
SHIMS, LAUNCHER = "shims", "ext-recorder"  # in the folder of the session
PATIENCE_S = 10.0  # until the recorders of children have ended after the command
HOST_PATIENCE_S = 5.0  # until the host has sent the first message to a child that cannot be replayed
SHOWN = 5  # differences of replayed children in the summary

# A host may remove all variables, or start a shim in any folder: a shim finds the session by its own path.
SHIM = f"""\
#!/bin/sh
# Written by `ext-recorder run`.
{VARIABLE}=${{0%/*/*}}
export {VARIABLE}
exec "${VARIABLE}/{LAUNCHER}" record --config=none --passed=$# "${{0##*/}}" -- "$@"
"""


class ChildOptions:
    """Choice of children, and the options with which they are recorded and replayed.

    Attributes:
        wrap: configuration files of the host.
        real: names of children that run on replay.
        only: names of the children to record and replay; () for all.
        files: names of the children whose changed files are recorded.
        values: options of `record` and `replay` by name.
    """

    __slots__ = ("files", "only", "real", "values", "wrap")

    def __init__(
        self,
        wrap: Sequence[str] = (),
        real: Sequence[str] = (),
        only: Sequence[str] = (),
        values: Mapping[str, tuple[str, ...]] | None = None,
        files: Sequence[str] = (),
    ) -> None:
        self.wrap = tuple(wrap)
        self.files = tuple(files)
        self.real = tuple(real)
        self.only = tuple(only)
        self.values = dict(values or {})

    def with_rules(self, rules: Iterable[tuple[str, str]]) -> ChildOptions:
        """Return these options with the rules of a recording: names of options, and a value."""
        values = dict(self.values)
        for name, value in rules:
            option = "mask" if name == "path" else name
            values[option] = (*values.get(option, ()), value)
        return ChildOptions(self.wrap, self.real, self.only, values)

    def check(self, known: Collection[str]) -> None:
        """Raise UsageError if `--real` or `--only` names a child that is not one of these."""
        for option, names in (("real", self.real), ("only", self.only), ("files", self.files)):
            for name in names:
                if name not in known:
                    listed = ", ".join(sorted(known)) or "none"
                    raise UsageError(f"--{option} {name}: no such child; children of this command: {listed}")


class Children:
    """Children of one run, for the process of the run.

    Args:
        options: of the user.
        recorded: the children of the recording; None to record them.

    Attributes:
        servers: MCP servers over HTTP whose sessions were recorded.
        server_lines: lines about them for the summary.
    """

    def __init__(self, options: ChildOptions, recorded: Sequence[Child] | None) -> None:
        self._options = options
        self._recorded = recorded
        self._recording = self._folder = self._new = ""
        self.servers: list[Child] = []
        self.server_lines: list[str] = []

    def is_wanted(self, name: str) -> bool:
        """Return True if a child is recorded or replayed; False if it runs as without the recorder."""
        if self._options.only and name not in self._options.only:
            return False
        if self._recorded is None:
            return True
        return name not in self._options.real and any(child.name == name for child in self._recorded)

    def write(
        self,
        folder: str,
        recording: str,
        commands: Mapping[str, Sequence[str]],
        variables: dict[str, str],
        *,
        files: Collection[str] = (),
        own: Mapping[str, Mapping[str, str]] = {},
        extended: str = "",
    ) -> None:
        """Write the file of the session, and the shims.

        Args:
            folder: of the session.
            recording: folder of the recording; of the new one if it is being made.
            commands: the children with shims, each with the words before those that the host passes.
            variables: of the command; gets the one that names the session.
            files: the children whose changed files are recorded, in the workspaces that their requests name.
            own: of children whose variables are others.
            extended: folder of the new recording, for sessions that the recording does not have; "" to refuse these.
        """
        from ext_recorder.cassette.recording import CASSETTES
        from ext_recorder.messages.comparison_rules import FilePattern
        from ext_recorder.messages.path_bindings import RUN_FOLDER

        self._folder, self._recording = folder, os.path.abspath(recording)  # noqa: PTH100
        self._new = os.path.abspath(extended or recording)  # noqa: PTH100
        variables[VARIABLE] = folder
        recorded: dict[str, list[str]] = {}
        for child in self._recorded or ():
            recorded.setdefault(child.name, []).extend(f"{self._recording}/{path}" for path in child.cassettes)
        session: dict[str, Any] = {
            "recorded": None if self._recorded is None else recorded,
            "cassettes": f"{self._new}/{CASSETTES}",
            "extends": bool(extended),
            "commands": {name: list(command) for name, command in commands.items()},
            "real": list(self._options.real),
            "only": list(self._options.only),
            "files": list(self._options.files),
            "workspaces": list(files),
            "environ": variables,  # for children whose host removes them
            "own": {name: dict(values) for name, values in own.items()},
            "values": {name: list(value) for name, value in self._options.values.items()},
            "places": {
                mask: mask.place for mask in self._options.values.get("mask", ()) if isinstance(mask, FilePattern)
            },
        }
        # A host passes the paths of shims to an agent that starts the servers.
        session["values"]["bind"] = [*session["values"].get("bind", ()), f"{RUN_FOLDER}?={folder}"]
        os.makedirs(f"{folder}/{CLAIMS}")  # noqa: PTH103
        os.makedirs(f"{folder}/{SHIMS}")  # noqa: PTH103
        _write(f"{folder}/{SESSION}", dumps(session))
        from shlex import join

        launcher = join(own_program("ext_recorder"))
        _write(f"{folder}/{LAUNCHER}", f'#!/bin/sh\nexec {launcher} "$@"\n', mode=0o755)
        for name in commands:
            _write(f"{folder}/{SHIMS}/{name}", SHIM, mode=0o755)

    def recorded(self, wrapped: Iterable[str], began: float) -> tuple[list[Child], list[str]]:
        """Return the children that were recorded, and lines for the summary. Wait until their recorders have ended.

        Args:
            wrapped: names of the children with shims; they are listed even if none of them was started.
            began: start of the run, on the monotonic clock.
        """
        from ext_recorder.cassette.recording import Child

        children, lines = self._found(STARTS, began)
        named = {child.name for child in children}
        children += [Child(name) for name in wrapped if name not in named and self.is_wanted(name)]
        return children, [*lines, *_session_counts(children)]

    def read_servers(self, began: float) -> None:
        """Read which MCP servers over HTTP were recorded, after the proxy has ended.

        Args:
            began: start of the run, on the monotonic clock.
        """
        self.servers, lines = self._found(HTTP_STARTS, began)
        self.server_lines = [*lines, *_session_counts(self.servers)]

    def _found(self, file: str, began: float) -> tuple[list[Child], list[str]]:
        """Return the children whose starts are in a file, and problems."""
        from ext_recorder.cassette.git_patch import remarks_of
        from ext_recorder.cassette.reader import Reader
        from ext_recorder.cassette.recording import Child

        found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        starts = _lines(f"{self._folder}/{file}")
        lines = [f"child {start['name']}: not recorded: {start['failure']}" for start in starts if "failure" in start]
        lines = list(dict.fromkeys(lines))
        zeros = {str(start["cassette"]): float(str(start["zero"])) - began for start in starts if "zero" in start}
        # The cassette of a child that could not be started has no content; the next start gets the same name.
        for start in {str(start.get("cassette")): start for start in starts if "name" in start}.values():
            name, cassette = str(start["name"]), str(start.get("cassette"))
            if "failure" in start or not os.path.abspath(cassette).startswith(f"{self._new}/"):  # noqa: PTH100
                continue
            if problem := _completed(cassette, start.get("pid")):
                lines.append(f"child {name}: {problem}")
            lines += [
                f"child {name}: changes that are not recorded: {remark}" for remark in remarks_of(cassette)[:SHOWN]
            ]
            if os.path.exists(cassette):  # noqa: PTH110
                with Reader(cassette) as reader:
                    command = reader.header.command
                found.setdefault((name, command), []).append(cassette)
        children = [
            Child(
                name,
                command,
                [os.path.relpath(cassette, self._new) for cassette in cassettes],
                [zeros[cassette] for cassette in cassettes] if zeros.keys() >= set(cassettes) else (),
            )
            for (name, command), cassettes in found.items()
        ]
        return children, lines

    def replayed(self, servers: Collection[str] = (), *, completely: bool = True) -> tuple[bool, list[str]]:
        """Return True if the replay did not differ from the recording, and lines for the summary.

        Args:
            servers: children that an agent starts; if it is replayed, it does not start them.
            completely: all recorded sessions have to be replayed.
        """
        claimed = set(os.listdir(f"{self._folder}/{CLAIMS}"))  # noqa: PTH208
        starts = _lines(f"{self._folder}/{STARTS}")
        problems = [str(start["problem"]) for start in starts if "problem" in start]
        begun = set()
        told: dict[str, list[str]] = {}  # the last line of a session has all of its differences
        for line in _lines(f"{self._folder}/{REPORT}"):
            begun.add(str(line.get("cassette")))
            if isinstance(differences := line.get("told"), list):
                label = os.path.relpath(str(line.get("cassette")), self._recording)
                told[str(line.get("session"))] = [f"{label}: {text}" for text in differences]
        began = [str(start["cassette"]) for start in starts if "cassette" in start and "name" in start]
        began = [cassette for cassette in began if completely or not cassette.startswith(f"{self._new}/")]
        problems += [f"{cassette}: could not be replayed" for cassette in began if cassette not in begun]
        ranks = zip_longest(*told.values(), fillvalue="")  # the first of each session, before the second of any
        problems += [text for rank in ranks for text in rank if text]
        sessions = {
            path.rpartition("/")[2]: child.name
            for child in self._recorded or ()
            for path in child.cassettes
            if self.is_wanted(child.name)
        }
        # The client of a server over HTTP may be a child that is replayed, and then sends nothing.
        optional = {child.name for child in self._recorded or () if child.url} if self.absent(()) else set()
        optional |= set(servers)
        problems += [
            f"{file}: no child {name} has replayed this session"
            for file, name in sessions.items()
            if completely and name not in optional and file not in claimed
        ]
        lines = problems[:SHOWN]
        if len(problems) > SHOWN:
            lines.append(f"and {len(problems) - SHOWN} more differences of children")
        for name in dict.fromkeys(sessions.values()):
            files = {file for file, owner in sessions.items() if owner == name}
            reason = "; a replayed child may be its client" if name in optional and not files <= claimed else ""
            lines.append(f"child {name}: {len(claimed & files)} of {_counted(len(files))}{reason}")
        return not problems, lines

    def http_endpoints(self, recording: str) -> dict[str, list[str]]:
        """Return the cassettes of the MCP servers over HTTP that are replayed, by URL."""
        endpoints: dict[str, list[str]] = {}
        for child in self._recorded or ():
            if child.url and self.is_wanted(child.name):
                endpoints.setdefault(child.url, []).extend(f"{recording}/{path}" for path in child.cassettes)
        return endpoints

    def absent(self, wrapped: Collection[str]) -> frozenset[str]:
        """Return the clients whose HTTP requests are in the recording, and are not sent: children that are replayed.

        Args:
            wrapped: children with shims. Requests of others, started by shims of the user, are not distinguished from
                those of the command, which is "".
        """
        names = {
            child.name
            for child in self._recorded or ()
            if child.cassettes and not child.url and self.is_wanted(child.name)
        }
        return frozenset(name if name in wrapped else "" for name in names)


class Start:
    """Action for one start of a child.

    Attributes:
        action: record the child, replay it, or only run it.
        name: of the child.
        command: to run.
        cassette: the file to write or to read.
        values: options of `record` or `replay`.
        claim: on replay, the session and its alternatives.
    """

    __slots__ = ("action", "cassette", "claim", "command", "name", "values")

    def __init__(
        self,
        action: Literal["record", "replay", "run"],
        name: str,
        command: Sequence[str],
        *,
        cassette: str = "",
        values: Mapping[str, tuple[str, ...]] | None = None,
        claim: Claim | None = None,
    ) -> None:
        self.claim = claim
        self.action = action
        self.name = name
        self.cassette = cassette
        self.command = tuple(command)
        self.values = dict(values or {})


def name_of(cassette: str) -> str:
    """Return the name of the child of a user's shim: that of its cassette, without folder, suffix and placeholders."""
    import re

    stem = re.sub(r"\{[a-z]+\}", "", cassette.rpartition("/")[2].removesuffix(".yaml"))
    return plain(stem)


def plain(name: str) -> str:
    """Return a name that is also the name of a file."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in name)
    return kept.strip(".-") or "child"


def join(name: str, command: Sequence[str], passed: int) -> Start | None:
    """Return what the start of a child does in the run that EXT_RECORDER_RUN names.

    Args:
        name: of the child.
        command: the words that the shim has, and that the host passes.
        passed: number of the latter; if these are all, a shim of the user may have no words.

    Returns:
        None outside of a run.

    Raises:
        UsageError: on replay, the child was not recorded with this command, or not as often. The host has the reason.
    """
    folder = os.environ.get(VARIABLE, "")
    try:
        with open(f"{folder}/{SESSION}", encoding="utf-8") as file:  # noqa: PTH123
            session: dict[str, Any] = loads(file.read())  # type: ignore[assignment]  # we have written it
    except FileNotFoundError:
        return None  # the run has ended
    if name in session["commands"]:
        command, passed = (*_texts(session["commands"][name]), *command), -1
    common = session["environ"]
    for variable, value in (common | session["own"].get(name, {})).items():
        if os.environ.get(variable) in {None, common.get(variable)}:  # the user's configuration has no other value
            os.environ[variable] = value
    from ext_recorder.messages.path_bindings import parse_bind
    from ext_recorder.messages.provenance import Live

    recorded: Mapping[str, list[str]] | None = session["recorded"]
    if session["only"] and name not in session["only"]:
        return Start("run", name, command)
    is_new = recorded is not None and name not in recorded and not session["extends"]
    if is_new or (recorded is not None and name in session["real"]):
        return Start("run", name, command)
    values = {option: _texts(value, session["places"]) for option, value in session["values"].items()}
    # The host may have removed a variable of --redact.
    rules = values.get("redact", ())
    values["redact"] = tuple(rule for rule in rules if not rule.isidentifier() or rule in os.environ)
    if recorded is None or name not in recorded:
        return _recording(session, name, command, values)
    live = Live(command, passed=passed, bind=parse_bind(values.get("bind", ())))
    try:
        claim = Claim(folder, name, _of_command(name, recorded[name], live))
    except UsageError as error:
        if session["extends"]:
            return _recording(session, name, command, values)
        _append(f"{folder}/{STARTS}", {"name": name, "problem": str(error)})
        refuse(str(error))
        raise
    values |= {"report": (f"{folder}/{REPORT}",), "quiet": ("",)}
    _append(f"{folder}/{STARTS}", {"name": name, "cassette": claim.cassette})
    return Start("replay", name, command, cassette=claim.cassette, values=values, claim=claim)


def refuse(reason: str) -> None:
    """Respond to the first message on standard input by an error, if it is a JSON-RPC request.

    Some hosts wait for this response forever, even if the child has ended.
    """
    import time
    from select import select

    from ext_sdk.core.wire.errors import INTERNAL_ERROR, RpcError, WireError
    from ext_sdk.core.wire.frames import Frame
    from ext_sdk.core.wire.framing import FRAMINGS
    from ext_sdk.core.wire.jsonrpc import ErrorResponse, Request, encode, parse

    until, framing, decoder, event = time.monotonic() + HOST_PATIENCE_S, FRAMINGS["ndjson"], None, None
    with suppress(OSError, WireError):
        while not isinstance(event, Frame):
            left = until - time.monotonic()
            if left <= 0 or not select([0], [], [], left)[0] or not (data := os.read(0, 65536)):
                return
            if decoder is None:
                framing = FRAMINGS["content-length" if data[:8].lower() == b"content-" else "ndjson"]
                decoder = framing.decoder()
            decoder.receive_data(data)
            while (event := decoder.next_event()) is not None and not isinstance(event, Frame):
                pass  # bytes before the first message
        message = parse(event.payload)
        if isinstance(message, Request):
            error = RpcError(INTERNAL_ERROR, f"ext-recorder: {reason}")
            os.write(1, framing.encode(encode(ErrorResponse(message.id, error))))


def _recording(
    session: Mapping[str, Any], name: str, command: Sequence[str], values: Mapping[str, tuple[str, ...]]
) -> Start:
    if name in session["workspaces"] or name in session["files"]:
        values = {**values, "files": ("sessions" if name in session["workspaces"] else "",)}
    return Start("record", name, command, cassette=f"{session['cassettes']}/{name}.yaml", values=values)


def started(name: str, cassette: str, failure: str = "") -> None:
    """Report that this process records a child in this cassette, or the failure to start the child."""
    line = {"name": name, "cassette": cassette, "pid": os.getpid()} | ({"failure": failure} if failure else {})
    _append(f"{os.environ[VARIABLE]}/{STARTS}", line)


def clock_started(cassette: str, zero: float) -> None:
    """Report the zero of a cassette's clock, on the monotonic clock, which all processes share."""
    _append(f"{os.environ[VARIABLE]}/{STARTS}", {"cassette": cassette, "zero": zero})


class Claim:
    """Session of a recording that this process replays, and the other sessions of the same command.

    A process begins with a session that no other process replays. If it turns out to be another session, it exchanges
    its claim with the process that has claimed that one. So each process has one claim at any time.

    Args:
        folder: of the run.
        cassettes: all sessions of the command.

    Attributes:
        cassette: the session that is played.

    Raises:
        UsageError: all of them are replayed already.
    """

    def __init__(self, folder: str, name: str, cassettes: Sequence[str]) -> None:
        self._folder = f"{folder}/{CLAIMS}"
        self._cassettes = cassettes
        with self._owners() as owners:
            self.cassette = next((cassette for cassette in cassettes if not owners[cassette]), "")
            if not self.cassette:
                sessions = _counted(len(cassettes))
                raise UsageError(f"child {name}: started more often than recorded ({sessions}); {_AGAIN} {name}")
            self._write(self.cassette, str(os.getpid()))

    def others(self) -> Sequence[str]:
        """Return the other sessions: first the one that is claimed instead of that which is played, then free ones."""
        with self._owners() as owners:
            found = [cassette for cassette in self._cassettes if cassette != self.cassette]
            return sorted(found, key=lambda cassette: (owners[cassette] != str(os.getpid()), bool(owners[cassette])))

    def choose(self, cassette: str) -> None:
        """Claim this session, which is played from now on, and exchange claims if another process has claimed it."""
        self.cassette = cassette
        with self._owners() as owners:
            held = next(held for held, owner in owners.items() if owner == str(os.getpid()))
            if held == cassette:
                return
            if owners[cassette]:
                self._write(held, owners[cassette])
            else:
                os.unlink(self._file(held))  # noqa: PTH108
            self._write(cassette, str(os.getpid()))

    def remaining(self) -> str:
        """Return the session that is claimed."""
        with self._owners() as owners:
            return next(held for held, owner in owners.items() if owner == str(os.getpid()))

    @contextmanager
    def _owners(self) -> Iterator[dict[str, str]]:
        """Return the process that has claimed each session, or "", while no other process changes it."""
        from fcntl import LOCK_EX, flock

        fd = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            flock(fd, LOCK_EX)
            owners = {}
            for cassette in self._cassettes:
                owners[cassette] = ""
                with suppress(FileNotFoundError), open(self._file(cassette), encoding="ascii") as file:  # noqa: PTH123
                    owners[cassette] = file.read()
            yield owners
        finally:
            os.close(fd)

    def _write(self, cassette: str, owner: str) -> None:
        with open(self._file(cassette), "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(owner)

    def _file(self, cassette: str) -> str:
        return f"{self._folder}/{cassette.rpartition('/')[2]}"


_AGAIN = f"record the command again with {RECORD_AGAIN}, or run the child with --real"


def _of_command(name: str, cassettes: Sequence[str], live: Live) -> list[str]:
    """Return the recorded sessions of a command. Raises UsageError if there are none."""
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.provenance import check, shown

    same = []
    for cassette in cassettes:
        with Reader(cassette) as reader, suppress(UsageError):
            check(cassette, reader.header, live)
            same.append(cassette)
    if not same:
        raise UsageError(f"child {name}: not recorded with this command: {shown(live.command)}; {_AGAIN} {name}")
    return same


def _completed(cassette: str, recorder: object) -> str:
    """Wait until a recorder has ended; recover its cassette if it was killed. Return a remark, or "".

    Args:
        recorder: its process id.
    """
    import time
    from pathlib import Path

    from ext_recorder.cassette.paths import partial_of
    from ext_recorder.cassette.recovery import recover
    from ext_recorder.errors import CassetteInUse

    until, partial = time.monotonic() + PATIENCE_S, partial_of(Path(cassette))
    while partial.exists():
        try:
            if partial.stat().st_size == 0 and isinstance(recorder, int):
                with suppress(ProcessLookupError):
                    os.kill(recorder, 0)
                    raise CassetteInUse(partial)  # its recorder runs, and has not locked the file yet
            recover(partial)
        except CassetteInUse:
            if time.monotonic() > until:
                return (
                    f"still runs {PATIENCE_S:.0f} s after the command has ended; this session is not in the recording"
                )
            time.sleep(0.02)
        except FileNotFoundError:
            continue  # its recorder has just finished it
        except RecorderError as error:
            return f"not recorded: {error}"
        else:
            return "its recorder was killed; the session is recorded up to the last complete message"
    return "" if os.path.exists(cassette) else "not recorded: it did not start, or its cassette could not be written"  # noqa: PTH110


def _session_counts(children: Sequence[Child]) -> list[str]:
    counts: dict[str, int] = {}
    for child in children:
        counts[child.name] = counts.get(child.name, 0) + len(child.cassettes)
    return [f"child {name}: {_counted(count)}" for name, count in counts.items()]


def _counted(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions} sessions"


def _texts(value: Iterable[str] | None, places: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the texts of a list; those that have a place in a file with it."""
    if not places:
        return tuple(value or ())
    from ext_recorder.messages.comparison_rules import FilePattern

    return tuple(FilePattern(text, places[text]) if text in places else text for text in value or ())


def _append(path: str, line: Mapping[str, object]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{dumps(dict(line))}\n".encode())
    finally:
        os.close(fd)


def _lines(path: str) -> list[dict[str, object]]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            found = [loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [line for line in found if isinstance(line, dict)]


def _write(path: str, text: str, mode: int = 0o600) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(fd, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
