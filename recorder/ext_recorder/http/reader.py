"""Reader of NAME.http.yaml, or of a cassette that vcrpy itself has recorded. `writer` describes the format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.paths import target_of
from ext_recorder.cassette.recording import TRAFFIC
from ext_recorder.cassette.writer import hold
from ext_recorder.errors import CassetteError, UsageError

from .interaction import interaction_of
from .interaction_file import BEGIN, NONE, InteractionFile, Unreadable
from .writer import TITLE, VERSION, Index, end_of, load_yaml, without_clients

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .interaction import Interaction


class Document:
    """Content of a file.

    Attributes:
        values: all members except the interactions.
        interactions: in the order in which their requests began.
        file: reads them when they are required, so `interactions` is empty; None if they were loaded.
    """

    def __init__(
        self, values: Mapping[str, object], interactions: list[Interaction], file: InteractionFile | None = None
    ) -> None:
        self.values = values
        self.interactions = interactions
        self.file = file

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a value that is a mapping; an empty one if it is missing."""
        value = self.values.get(name)
        return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}

    def text(self, name: str) -> str:
        """Return a value that is a text; "" if it is missing."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


def open_document(path: Path) -> Document:
    """Open a file whose interactions are read when they are required; a file of another form is loaded as a whole.

    Raises:
        CassetteError: the file cannot be read, or has another format.
    """
    try:
        file = InteractionFile(path)
    except (Unreadable, OSError):
        return load(path)
    try:
        file.prepare()
    except (Unreadable, CassetteError, OSError):
        file.close()
        return load(path)
    return Document(file.frame.values, [], file)


def interactions(path: Path) -> Iterator[Interaction]:
    """Yield the interactions of a file, in the order in which their requests began, reading them one by one.

    Raises:
        CassetteError: the file cannot be read, or has another format.
    """
    document = open_document(path)
    if document.file is None:
        yield from document.interactions
        return
    with document.file as file:
        for _, interaction in file:
            yield interaction


def load(path: Path) -> Document:
    """Read a file of the recorder or of vcrpy, as a whole.

    Raises:
        CassetteError: the file cannot be read, or has another format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CassetteError(path, 0, "no such file", _advice(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CassetteError(path, 0, f"cannot be read: {error}") from None
    try:
        content = load_yaml(text)
    except ValueError as error:
        problem = f"cut off or damaged, not YAML of plain data: {error}"
        raise CassetteError(path, 0, problem, _advice(path)) from None
    if not isinstance(content, dict) or not isinstance(content.get("interactions"), list):
        problem = "expected a mapping with `interactions`, as vcrpy and ext-recorder write it"
        raise CassetteError(path, 0, problem, _advice(path))
    content.pop("index", None)
    version = content.get("http", VERSION)
    if version != VERSION:
        raise CassetteError(path, 0, f"version {version} of the format; this ext-recorder supports version {VERSION}")
    interactions = []
    for number, item in enumerate(content.pop("interactions"), 1):
        try:
            interactions.append(interaction_of(item))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"without {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
            problem = f"cut off or damaged at interaction {number}: {what}"
            raise CassetteError(path, 0, problem, _advice(path)) from None
    if "http" not in content:
        for interaction in interactions:
            _fix_headers(interaction)
    return Document(content, sorted(interactions, key=lambda interaction: interaction.time))


def _advice(path: Path) -> str:
    """Return how to record a file again."""
    if path.name == TRAFFIC:
        return f"record it again: ext-recorder run --mode all {path.parent} -- COMMAND…"
    return "record it again: ext-recorder record --http --mode all …"


def _fix_headers(interaction: Interaction) -> None:
    """Fix the headers of an interaction in a file of vcrpy, where bodies are in one piece, and may be decoded."""
    data = interaction.body.whole() if interaction.body is not None else b""
    is_encoded = data.startswith((b"\x1f\x8b", b"\x78"))
    removed = {"transfer-encoding", "content-length"} | (set() if is_encoded else {"content-encoding"})
    interaction.headers = [(name, value) for name, value in interaction.headers if name.lower() not in removed]
    if interaction.method != "HEAD":
        interaction.headers.append(("Content-Length", str(len(data))))


def end_values(path: Path) -> dict[str, str]:
    """Return the texts next to the interactions of a file, such as `kubeconfig`. Raises CassetteError.

    Only for a process that uses no HTTP client.
    """
    try:
        with InteractionFile(path) as file:
            values = file.frame.values
    except (Unreadable, OSError):
        without_clients()
        values = load(path).values
    return {name: value for name, value in values.items() if isinstance(value, str)}


class RecoveredTraffic(NamedTuple):
    """Result of the recovery of a partial file.

    Attributes:
        kept: number of interactions.
        dropped: bytes of an interaction that was cut off.
        unknown: what the file does not have, because its end is missing.
        unanswered: requests without a response that were removed.
    """

    kept: int
    dropped: int = 0
    unknown: str = ""
    unanswered: int = 0


AT_END = "host names, TLS properties, clock readings, calls of the host, kubeconfig"


def recover_traffic(partial: Path, path: Path, *, replace: bool = False, of_run: bool = False) -> RecoveredTraffic:
    """Rename a partial file to its final name. An interaction that was cut off is removed, and a missing end is added.

    Args:
        of_run: it is of a run. It may have no complete interaction. Requests that got no response before the end are
            removed: on replay, they are errors at once, and their programs do not wait.

    Raises:
        UsageError: the final name exists.
        CassetteInUse: the file is still being recorded.
        CassetteError: the file has no complete interaction, or another format.
        OSError: the file cannot be read or renamed.
    """
    path = type(path)(target_of(str(path)))
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name for the recovered file, or remove that one")
    with hold(partial):
        without_clients()
        try:
            recovered = _completed(partial)
        except Unreadable:
            if not of_run:
                problem = "no complete interaction: there is nothing to recover"
                raise CassetteError(partial, 0, problem, RECORD) from None
            recovered = _emptied(partial)
        if of_run:
            recovered = recovered._replace(unanswered=_remove_unanswered(partial))
        document = open_document(partial)
        kept = len(document.interactions)
        if document.file is not None:
            with document.file as file:
                kept = sum(1 for _ in file)
        partial.replace(path)
    return recovered._replace(kept=kept)


HEAD = ("recorder", "recorded", "epoch", "seed", "bindings", "deterministic")  # members before the interactions
GAVE_UP = "GaveUp"  # type of the error of a request whose client did not wait, or was ended
RECORD = "record the session again, and remove this file"


def _completed(partial: Path) -> RecoveredTraffic:
    """Replace an incomplete end of a file. Raises CassetteError, or Unreadable without a complete interaction."""
    with InteractionFile(partial) as file:
        if file.frame.is_closed:
            return RecoveredTraffic(0)
        index = file.scan()
        if index.end == file.frame.begin:
            raise Unreadable
        return _with_end(partial, index, file.frame.end - index.end)


def _remove_unanswered(partial: Path) -> int:
    """Remove the requests that waited for a response when everything ended. Return their number."""
    with InteractionFile(partial) as file:
        end, count = file.frame.end, 0
        for at, interaction in file.in_order():
            is_open = interaction.error is not None and interaction.error.get("type") == GAVE_UP
            end, count = (end if count else at, count + 1) if is_open else (file.frame.end, 0)
        if not count:
            return 0
        values = {name: value for name, value in file.frame.values.items() if name not in {*HEAD, "http", "version"}}
        if end == file.frame.begin:
            end = 0
    if not end:
        _emptied(partial)
        return count
    for _ in range(2):  # the second time with an index of what is left
        with InteractionFile(partial) as file:
            index = file.scan() if file.frame.end == end else Index(end)
        with partial.open("r+b") as changed:
            changed.truncate(end)
            changed.seek(end)
            changed.write(end_of(values, index))
    return count


def _emptied(partial: Path) -> RecoveredTraffic:
    """Make a file without interactions of one that has no complete interaction."""
    before, begin, after = partial.read_bytes().partition(BEGIN)
    head = before + b"\n" if begin or before.endswith(b"\n") else f"{TITLE}http: {VERSION}\n".encode()
    head = head.replace(b"\n\n", b"\n") + NONE.removeprefix(b"\n")
    partial.write_bytes(head)
    return _with_end(partial, Index(len(head)), len(after))


def _with_end(partial: Path, index: Index, dropped: int) -> RecoveredTraffic:
    with partial.open("r+b") as changed:
        changed.truncate(index.end)
        changed.seek(index.end)
        changed.write(end_of({"unrecorded": [f"{AT_END}: the recorder was killed"]}, index))
        changed.flush()
        os.fsync(changed.fileno())
    return RecoveredTraffic(0, dropped, AT_END)
