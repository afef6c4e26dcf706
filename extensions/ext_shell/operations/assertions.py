"""Operations `assert-agent`, `assert-file`, `snapshot` and `assert-changes`.

They check the prompt and the output of the agent, a file, or the changes in a folder since a snapshot.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk import expect
from ext_sdk.capture import check_names
from ext_sdk.core.text import counted
from ext_sdk.expect.changes import (
    DEFAULT_NAME,
    ChangesArgs,
    Name,
    Pattern,
    Snapshots,
    compare,
    conclude_changes,
    matches,
)
from ext_sdk.expect.check import failures
from ext_sdk.files import kind_of, os_errors
from ext_sdk.polling import attempts_until, exponential
from ext_shell.expectations import AssertFile, check_matching, withhold_streams
from ext_shell.files import CHUNK, FilePath, check_time, permissions_text, readable_for, workdir_for
from ext_shell.result import WITHHELD, LineCapture, capture_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELS = {"output": "the agent's output", "prompt": "the prompt"}


class AgentCapture(LineCapture):
    """Part of the agent's output, or of its prompt, that becomes an output; the entire text by default."""

    from_: Annotated[Literal["output", "prompt"], Meta(description="Text to search")] = field(
        default="output", name="from"
    )


class AssertAgent(ext_sdk.Args, any_of=("output", "prompt", "capture")):
    """Arguments of `assert-agent`."""

    output: Annotated[
        expect.Text | UnsetType, Meta(description="Expected answer of the agent: a text, or an object")
    ] = UNSET
    prompt: Annotated[
        expect.Text | UnsetType, Meta(description="Expected prompt of the agent: a text, or an object")
    ] = UNSET
    capture: Annotated[
        dict[str, AgentCapture], Meta(description="Parts of the answer or the prompt that become outputs, by name")
    ] = field(default_factory=dict)


def assert_agent(args: AssertAgent, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check the answer or the prompt of the agent: text, regular expressions, lines, documents; in verify only.

    `capture` outputs parts of them, such as a value in the answer that later steps use.
    """
    agent = context.agent
    if agent is None:
        advice = "hosts send them in the verify phase, so make this a step of verify"
        if not context.phase:
            advice += "; clients of MCP, G-Assist and Pi have none: for them, use `serve --deny assert-agent`"
        elif context.phase == "verify":
            advice = "the host must send them; `ext-shell call` sends the text of --agent-output"
        raise ext_sdk.OperationFailed(
            "the agent's prompt and output are missing",
            error="expected the agent's prompt and output in context.agent, got none (phase: "
            f"{context.phase or 'unknown'}); {advice}",
        )
    check_names(args.capture, {"output", "outputFile"})
    expectations = {"output": args.output, "prompt": args.prompt}
    texts = {name: text for name, text in (("output", agent.output), ("prompt", agent.prompt)) if text is not None}
    used = {name for name, expectation in expectations.items() if expectation is not UNSET}
    used |= {capture.from_ for capture in args.capture.values()}
    for name in expectations:
        if name in used - texts.keys():
            raise ext_sdk.OperationFailed(
                f"the agent's {name} is missing",
                error=f"context.agent.{name}: expected the agent's {name}, got none; the host must send it",
            )
    with expect.Searcher(deadline=context.deadline) as searcher:
        captured = capture_texts(args.capture, texts, context, searcher)  # before the checks, which redact secrets
        checks = []
        for name, expectation in expectations.items():
            if not isinstance(expectation, UnsetType):
                checks += expect.check_text(
                    expectation,
                    texts[name],
                    where=LABELS[name],
                    searcher=searcher,
                    redact=context.secrets.redact,
                    workdir=context.workdir,
                )
    checks = withhold_streams(checks, {LABELS[name] for name in captured.withheld}) + captured.failures
    if checks:
        result = expect.conclude(checks, done="Checked the agent")
    else:
        result = ext_sdk.Result.ok(f"Captured {', '.join(args.capture)} from the agent")
    if "output" in texts:
        withheld = "output" in captured.withheld
        result.outputs["output"] = WITHHELD.text if withheld else texts["output"]
        result.whole = {"output": WITHHELD.whole} if withheld else {}
    result.outputs |= captured.values
    result.secret_outputs = captured.secrets
    return result


def assert_file(args: AssertFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check whether a file exists, and its type, text, JSON, permissions, owner, size, SHA-256, time and link target.

    With `glob`, check all files that match a pattern.
    """
    workdir = readable_for(context, args.path or args.glob)
    with expect.Searcher() as searcher:
        deadline = context.deadline.limit(0) if isinstance(args.timeout, UnsetType) else context.deadline
        checks: list[expect.Check] = []
        outputs: dict[str, str | int | bool] = {}
        attempts = 0
        for attempt in attempts_until(deadline, exponential(first=0.05, longest=1.0), jitter=0.0):
            attempts = attempt.number
            checks, outputs = check_matching(args, workdir, context, searcher)
            if expect.passed(checks):
                break
    result = expect.conclude(checks, done=f"Checked {args.path or args.glob}", outputs=outputs | {"attempts": attempts})
    if attempts > 1 and not result.success:
        result.error += f"\nchecked {attempts} times until the timeout of {args.timeout}"
    timed_out = not isinstance(args.timeout, UnsetType) and not context.deadline.stopped.is_set()
    last_seen = "; ".join(failures(checks, brief=True))
    return ext_sdk.conclude_wait(result, args.on_timeout, timed_out=timed_out, last_seen=last_seen)


MOST_ENTRIES = 100_000  # of one snapshot, which is in memory
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Snapshot(ext_sdk.Args):
    """Arguments of `snapshot`."""

    name: Annotated[
        Name, Meta(description="Name for `assert-changes`; a previous snapshot of this name is replaced")
    ] = DEFAULT_NAME
    path: Annotated[FilePath, Meta(description="Folder; names in patterns and outputs are relative to it")] = "."
    exclude: Annotated[
        list[Pattern],
        Meta(
            description="Patterns of files and folders to leave out, now and in `assert-changes`: * ? [a-z] within "
            "names, ** for any number of folders, as in **/__pycache__"
        ),
    ] = field(default_factory=list)


class Entry(NamedTuple):
    """State of a file, a folder or another entry.

    Attributes:
        content: SHA-256 of a file, target of a symbolic link, "" otherwise.
    """

    kind: str
    mode: int
    owner: tuple[int, int]
    size: int
    content: str


class FolderState(NamedTuple):
    """Snapshot of a folder.

    Attributes:
        entries: by path, that of a folder with a slash at its end.
    """

    path: str
    exclude: list[str]
    entries: dict[str, Entry]

    def files(self) -> str:
        """Return the number of its files as text."""
        return counted(sum(not path.endswith("/") for path in self.entries), "file")


def snapshot(args: Snapshot, context: ext_sdk.Context) -> ext_sdk.Result:
    """Keep the names, contents, permissions, owners and link targets of all files in a folder, for `assert-changes`.

    Snapshots belong to the workdir and scope, and exist until the extension exits. Symbolic links are not followed.
    """
    snapshots = context.state(Snapshots[FolderState])
    with os_errors("read", args.path):
        state = FolderState(args.path, args.exclude, _entries(args.path, args.exclude, context))
    snapshots.keep(args.name, state)
    count = sum(not path.endswith("/") for path in state.entries)
    return ext_sdk.Result.ok(
        f"Kept the state of {state.files()} in {args.path} as {args.name!r}",
        outputs={"name": args.name, "path": str(workdir_for(context, args.path).path(args.path)), "files": count},
    )


def assert_changes(args: ChangesArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check which files of a folder were added, changed or removed since `snapshot`; by default none may be.

    Modification times do not count, nor do folders whose contents are listed.
    """
    before = context.state(Snapshots[FolderState]).get(args.since)
    with os_errors("read", before.path):
        try:
            entries = _entries(before.path, before.exclude, context)
        except FileNotFoundError:
            entries = {}
    after = FolderState(before.path, before.exclude, entries)
    changes = compare(before.entries, after.entries, _difference)
    # A new or removed folder is listed by its contents, and by itself only if it has none.
    changes = changes._replace(added=_without_parents(changes.added), removed=_without_parents(changes.removed))
    return conclude_changes(
        args,
        changes,
        names=before.entries.keys() | after.entries.keys(),
        done=f"Compared {after.files()} in {before.path} with snapshot {args.since!r}",
        advice=f"patterns are relative to {'the working directory' if before.path == '.' else before.path}",
    )


def _without_parents(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return sorted paths without the folders that contain others of them."""
    pairs = zip_longest(paths, paths[1:], fillvalue="")
    return tuple([path for path, after in pairs if not (path.endswith("/") and after.startswith(path))])


def _entries(folder: str, exclude: list[str], context: ext_sdk.Context) -> dict[str, Entry]:
    """Return the entries in a folder by path. Raises OSError, and OperationFailed if there are too many."""
    workdir = workdir_for(context, folder)
    try:
        descriptor = workdir.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError as error:
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder; use the folder of the file") from error
    entries: dict[str, Entry] = {}
    try:
        for path, name, directory in _walk(descriptor, exclude):
            check_time(context.deadline, f"reading {path!r}; `exclude` leaves out folders that do not matter")
            try:
                entry = _entry(name, directory, context.deadline)
            except FileNotFoundError:  # removed since its name was read
                continue
            except OSError as error:
                raise OSError(error.errno, f"{path}: {error.strerror}; `exclude` leaves it out") from error
            entries[f"{path}/" if entry.kind == "directory" else path] = entry
            if len(entries) > MOST_ENTRIES:
                raise ext_sdk.OperationFailed(
                    f"{folder} has too many files",
                    error=f"{folder}: expected at most {MOST_ENTRIES:,} files and folders, found more; `exclude` "
                    "leaves out folders that do not matter, such as node_modules",
                )
    except RecursionError:
        raise ext_sdk.OperationFailed(
            f"{folder} is nested too deeply", error=f"{folder}: folders are nested too deeply to be read completely"
        ) from None
    finally:
        os.close(descriptor)
    return entries


def _walk(descriptor: int, exclude: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the path, the name and the open directory of all entries; excluded folders are not entered."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for root, folders, files, directory in os.fwalk(".", dir_fd=descriptor, onerror=fail):
        prefix = "" if root == "." else f"{root.removeprefix('./')}/"
        for names in (folders, files):
            names[:] = [name for name in names if not any(matches(each, prefix + name) for each in exclude)]
            yield from ((prefix + name, name, directory) for name in names)


def _entry(name: str, directory: int, deadline: ext_sdk.Deadline) -> Entry:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    kind, content = kind_of(status.st_mode), ""
    if kind == "symlink":
        content = os.readlink(name, dir_fd=directory)
    elif kind == "file":
        digest = hashlib.sha256()
        with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb") as file:
            status = os.fstat(file.fileno())
            while stat.S_ISREG(status.st_mode) and (chunk := file.read(CHUNK)):
                check_time(deadline, f"reading {name!r}; `exclude` leaves it out")
                digest.update(chunk)
        kind, content = kind_of(status.st_mode), digest.hexdigest()
    size = 0 if kind == "directory" else status.st_size
    return Entry(kind, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), size, content)


def _difference(before: Entry, after: Entry) -> str:
    """Return what differs, as text; "" if nothing does."""
    if before.kind != after.kind:
        return f"a {after.kind} instead of a {before.kind}"
    texts = []
    if before.content != after.content:
        if after.kind == "symlink":
            texts.append(f"target {after.content!r} instead of {before.content!r}")
        else:
            texts.append(f"content, {counted(after.size, 'byte')} instead of {before.size:,}")
    if before.mode != after.mode:
        texts.append(f"permissions {permissions_text(after.mode)} instead of {permissions_text(before.mode)}")
    if before.owner != after.owner:
        texts.append("owner {}:{} instead of {}:{}".format(*after.owner, *before.owner))
    return ", ".join(texts)
