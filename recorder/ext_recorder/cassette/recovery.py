"""Recovery of a cassette from the partial file of a killed recorder.

Events are appended in complete lines, so only the last line may be cut off; it is dropped. Any other invalid line is an
error, since a crash of the recorder cannot cause it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.errors import CassetteError, UsageError
from ext_sdk.core.atomic import atomic_write

from .fast_parser import parse_line
from .git_patch import file_of
from .header import encode_trailer
from .paths import partial_of, target_of
from .reader import Reader, read_header
from .writer import hold
from .yaml_parser import load_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RECORD = "record the session again, and remove this file"
_OPEN, _CLOSE = b"[redacted:", b"]"


class Recovered(NamedTuple):
    """Result of the recovery of a partial cassette."""

    path: Path
    events: int
    dropped: int  # size in bytes of the last line, if it was cut off


def recover(partial: Path, cassette: Path | None = None, *, replace: bool = False) -> Recovered:
    """Write a cassette from the partial file of a killed recorder.

    Args:
        partial: NAME.partial, or NAME.partial.1 if a later recorder has renamed it; it is removed at the end. Or a
            truncated cassette.
        cassette: the file to write; None for NAME, or the truncated cassette itself.
        replace: replace an existing cassette.

    Raises:
        UsageError: `partial` does not exist, or is complete, or the cassette exists.
        CassetteInUse: a recorder is writing it.
        CassetteError: it is not a partial cassette.
        OSError: a file cannot be written.
    """
    path = type(partial)(target_of(str(cassette or name_of(partial))))
    if not partial.exists():
        left = partial_of(partial)
        hint = f"ext-recorder recover {left}" if left.exists() else "a killed recorder leaves NAME.partial next to NAME"
        raise UsageError(f"{partial}: no such file; {hint}")
    is_cassette = name_of(partial) == partial
    if is_cassette:
        with suppress(CassetteError), Reader(partial) as reader:
            for _ in reader:
                pass
            raise UsageError(f"{partial}: a complete cassette, nothing to recover")
    if path.exists() and not replace and (cassette or not is_cassette):
        raise UsageError(f"{path} exists already: choose another name by -o, or replace it by --force")
    with hold(partial):
        scanned = _Scan(partial)
        with atomic_write(str(path)) as file:
            file.writelines(scanned)
        if not is_cassette:
            patches = type(partial)(f"{file_of(str(name_of(partial)))}.partial")
            if patches.exists():
                patches.replace(file_of(str(path)))
            partial.unlink()
    return Recovered(path, scanned.events, scanned.dropped)


def name_of(partial: Path) -> Path:
    """Return NAME for NAME.partial, and any other name as it is."""
    name, dot, rest = partial.name.rpartition(".partial")
    if not dot or not name or (rest and not rest[1:].isdigit()):
        return partial
    return partial.with_name(name)


class _Scan:
    """Lines of the cassette, made from those of the partial file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = 0
        self.dropped = 0
        self._rules: set[str] = set()

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            parsed = read_header(str(self.path), file)
            if parsed is None:
                problem = "the lines above the events are not those of a recording"
                raise CassetteError(self.path, 0, problem, "complete them by hand, or record the session again")
            start = parsed[1]
            file.seek(0)
            for number, line in enumerate(file, 1):
                if number <= start:
                    yield line
                elif line.startswith(b"redacted: ") and line.endswith(b"\n"):
                    break  # it was killed between its last line and the rename
                elif not line.endswith(b"\n"):
                    self.dropped = len(line)
                elif parse_line(line) is None and load_line(str(self.path), line) is None:
                    advice = "correct or remove this line; only a last line that is cut off is dropped"
                    raise CassetteError(self.path, number, "not an event line of ext-recorder", advice)
                else:
                    self.events += 1
                    for piece in line.split(_OPEN)[1:]:
                        rule, hash_, count = piece.partition(_CLOSE)[0].rpartition(b"#")
                        if hash_ and count.isdigit():
                            self._rules.add(rule.decode("utf-8", "replace"))
                    yield line
        if not self.events:
            raise CassetteError(self.path, 0, "holds no complete event: there is nothing to recover", _RECORD)
        yield encode_trailer(tuple(sorted(self._rules)))
