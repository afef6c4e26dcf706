"""Parser, with PyYAML, for cassettes that a person or a formatter has edited.

It only composes nodes, never Python objects, so that a file cannot name a class to construct. Every value is read as
text, so that YAML's types (dates, `no`, `1e5`) are not applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import yaml

from ext_recorder.errors import CassetteError

from .events import MARKS, STREAMS, Data
from .fast_parser import CUT_OFF, mark_of, raw_bytes
from .header import VERSION

if TYPE_CHECKING:
    from .events import Event
    from .yaml_scalars import Flow

_LOADER: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Fields = dict[str, yaml.Node]


_LISTS = {"command", "redacted"}
_MAPS = {"bindings", "environment"}
_TEXTS = {"cassette", "protocol", "framing", "recorder", "recorded"}


class File(NamedTuple):
    """Content of a file."""

    header: dict[str, Flow]  # the known keys except `events`; unknown ones are ignored: newer versions may add them
    lines: dict[str, int]  # line of each key
    events: list[tuple[int, Event]] | None  # events with their lines; None without that key


def load(path: str, data: bytes) -> File:
    """Read a whole file. Raises CassetteError."""
    fields = _mapping(path, _compose(path, data), "the file")
    listed = fields.pop("events", None)
    header: dict[str, Flow] = {}
    for name, node in fields.items():
        if name in _LISTS:
            header[name] = list(_texts(path, node, f"`{name}`"))
        elif name in _TEXTS:
            header[name] = _text(path, node, f"`{name}`")
        elif name in _MAPS:
            header[name] = {key: _text(path, value, key) for key, value in _mapping(path, node, name).items()}
    lines = {name: _line(node) for name, node in fields.items()}
    if listed is None:
        return File(header, lines, None)
    if isinstance(listed, yaml.ScalarNode) and listed.value in {"", "null", "~"}:
        return File(header, lines, [])
    if not isinstance(listed, yaml.SequenceNode):
        advice = "each event is a line: - {t: 0.1, in: '…'}"
        raise CassetteError(path, _line(listed), "`events` is not a list", advice)
    return File(header, lines, [(_line(item), _event(path, item)) for item in listed.value])


def load_line(path: str, line: bytes) -> Event | None:
    """Return the event on a line; None if the complete file is needed to parse it or to report the error."""
    try:
        root = yaml.compose(line, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(root, yaml.SequenceNode) or len(root.value) != 1:
        return None
    try:
        return _event(path, root.value[0])
    except CassetteError:
        return None


def _text(path: str, node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise CassetteError(path, _line(node), f"{what} is not a text", "put it in quotation marks")
    return str(node.value)


def _texts(path: str, node: yaml.Node, what: str) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise CassetteError(path, _line(node), f"{what} is not a list")
    return tuple(_text(path, item, f"an item of {what}") for item in node.value)


def _compose(path: str, data: bytes) -> yaml.Node:
    try:
        root = yaml.compose(data, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "broken"
        # An unterminated value is reported at its start; so is an event that an unmatched quotation mark made too long.
        begun = error.context_mark and ("end of stream" in problem or "flow" in (error.context or ""))
        mark = error.context_mark if begun else error.problem_mark
        if b"cassette" not in data[:_HEAD_BYTES]:
            advice = f"a cassette begins with the line `cassette: {VERSION}`"
        elif data.rstrip().rpartition(b"\n")[2].startswith(b"redacted:"):
            advice = "a quotation mark in a message is written twice: ''"
        else:
            advice = f"{CUT_OFF} {path}"
        raise CassetteError(path, mark.line + 1 if mark else 0, f"not YAML: {problem}", advice) from None
    except yaml.YAMLError as error:  # a character that YAML does not have
        position = getattr(error, "position", None)
        line = data.count(b"\n", 0, position) + 1 if isinstance(position, int) else 0
        raise CassetteError(
            path, line, f"not YAML: {_one_line(error)}", "keep such bytes as {raw: '<base64>'}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise CassetteError(path, 0, f"not YAML: {_one_line(error)}") from None
    if root is None:
        raise CassetteError(path, 0, "an empty file is not a cassette", "record the session again")
    return root


_HEAD_BYTES = 4_096


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _mapping(path: str, node: yaml.Node, what: str) -> Fields:
    if not isinstance(node, yaml.MappingNode):
        raise CassetteError(path, _line(node), f"{what} is not a mapping of keys to values")
    fields: Fields = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if not isinstance(name, str) or name in fields:
            raise CassetteError(path, _line(key), f"{what} has a key that is not a string or is given twice")
        fields[name] = value
    return fields


def _event(path: str, node: yaml.Node) -> Event:
    line = _line(node)
    fields = _mapping(path, node, "an event")
    kinds = [key for key in fields if key in STREAMS or key in MARKS]
    unknown = fields.keys() - {"t", "conn", "head", *kinds}
    if len(kinds) != 1 or unknown:
        found = ", ".join(f"`{key}`" for key in [*kinds, *sorted(unknown)]) or "none"
        known = ", ".join([*STREAMS, *MARKS])
        raise CassetteError(path, line, f"expected one of {known} in an event, found {found}")
    kind = kinds[0]
    time, conn = _time_and_conn(path, line, fields)
    if kind in MARKS:
        word = _text(path, fields[kind], f"`{kind}`")
        mark = mark_of(MARKS[MARKS.index(kind)], time, word, conn) if word.isascii() else None
        if mark is None:
            expected = _WORDS.get(kind, "in, out or err")
            raise CassetteError(path, line, f"expected `{kind}` to be {expected}, found {word!r}")
        return mark
    stream = STREAMS[STREAMS.index(kind)]
    value = fields[kind]
    head = _texts(path, fields["head"], "`head`") if "head" in fields else ()
    if isinstance(value, yaml.MappingNode):
        return Data(stream, time, _raw(path, line, value), raw=True, conn=conn)
    if not isinstance(value, yaml.ScalarNode):
        raise CassetteError(path, line, f"`{kind}` is not a text", "put the message in single quotation marks")
    return Data(stream, time, str(value.value).encode("utf-8", "surrogatepass"), head=head, conn=conn)


def _time_and_conn(path: str, line: int, fields: Fields) -> tuple[float, int]:
    node = fields.get("t")
    text = node.value if isinstance(node, yaml.ScalarNode) else None
    try:
        time = float(text or "")
    except ValueError:
        time = -1.0
    if not 0 <= time < 1e9:
        raise CassetteError(path, line, f"expected `t` in seconds, found {text or 'nothing'}")
    node = fields.get("conn")
    if node is None:
        return time, 1
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if not (text.isascii() and text.isdigit() and int(text) < 1_000_000):
        raise CassetteError(path, line, f"expected `conn` to be a number, found {text or 'none'}")
    return time, int(text)


_WORDS = {
    "exit": "an exit code, or a signal as in SIGKILL",
    "signal": "a signal as in SIGTERM",
    "omitted": "as in 70000000 bytes of out",
    "files": "the number of a patch",
    "http": "a method and a number, as in GET 3 405",
}


def _raw(path: str, line: int, node: yaml.MappingNode) -> bytes:
    fields = _mapping(path, node, "a message in braces")
    if fields.keys() == {"text"}:
        return _text(path, fields["text"], "`text`").encode("utf-8", "surrogatepass")
    if fields.keys() != {"raw"}:
        problem = "expected a message to be a text, {text: '<exact bytes>'} or {raw: '<base64>'}"
        raise CassetteError(path, line, problem, "put the message in single quotation marks")
    text = _text(path, fields["raw"], "`raw`")
    wire = raw_bytes("".join(text.split()).encode("utf-8", "replace"))
    if wire is None:
        raise CassetteError(path, line, "`raw` is not base64")
    return wire
