"""Header of a cassette, the lines before the events: format version, protocol, command, time, bindings."""

from __future__ import annotations

from ext_recorder.errors import CassetteError
from ext_sdk.core import own_name
from ext_sdk.core.wire.framing import FRAMINGS

from .yaml_scalars import flow_list, flow_map, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .yaml_scalars import Flow

VERSION = 1  # of the format; a reader refuses other versions
SUFFIX = ".yaml"
NO_LINES: Mapping[str, int] = {}

_HTTP = ".http.yaml"  # suffix of files of HTTP interactions
_TITLE = "# A recorded session. Show it: ext-recorder show FILE\n"
_NUMBERS = frozenset("0123456789.:TZ-+")  # versions and times are written without quotation marks


class Header:
    """Header of a cassette.

    Attributes:
        protocol: the name of a dialect: "gevals", "jsonrpc", "raw".
        framing: "ndjson", "content-length" or "uint32".
        command: the recorded command, without secrets and machine paths, with the names of our programs as in
            `own_name`.
        environment: values of the environment variables that must match, likewise.
        recorder: version of the recorder.
        recorded: time in UTC, such as "2026-11-21T21:00:00Z".
        bindings: placeholders in the events for paths of the machine, by name, as in {"workdir": "/tmp/workdir"}. A
            second path of the same name has the suffix "-2", a third "-3", so that the header can be written before
            the session.
        redacted: redaction rules that have replaced something, if they are listed before the events; None if not. A
            recorder writes them after the events.
    """

    __slots__ = ("bindings", "command", "environment", "framing", "protocol", "recorded", "recorder", "redacted")

    def __init__(
        self,
        protocol: str,
        framing: str,
        *,
        command: tuple[str, ...] = (),
        recorder: str = "",
        recorded: str = "",
        bindings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        redacted: tuple[str, ...] | None = None,
    ) -> None:
        self.protocol = protocol
        self.framing = framing
        self.command = own_name(command)
        self.recorder = recorder
        self.recorded = recorded
        self.bindings = dict(bindings or {})
        self.environment = dict(environment or {})
        self.redacted = redacted

    def replace(self, **changes: object) -> Header:
        """Return a copy with other values of some attributes."""
        return Header(**{slot: getattr(self, slot) for slot in self.__slots__} | changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Header):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Header({', '.join(f'{slot}={getattr(self, slot)!r}' for slot in self.__slots__)})"


def encode_header(header: Header) -> bytes:
    """Return all lines up to and including `events:`."""
    lines = [f"cassette: {VERSION}"]
    if header.recorder:
        lines.append(f"recorder: {_version(header.recorder)}")
    lines += [f"protocol: {scalar(header.protocol)}", f"framing: {scalar(header.framing)}"]
    if header.command:
        lines.append(f"command: {flow_list(header.command)}")
    if header.environment:
        lines.append(f"environment: {flow_map(header.environment)}")
    if header.recorded:
        lines.append(f"recorded: {_version(header.recorded)}")
    if header.bindings:
        lines.append(f"bindings: {flow_map(header.bindings)}")
    return (_TITLE + "\n".join([*lines, "events:", ""])).encode()


def encode_trailer(redacted: tuple[str, ...]) -> bytes:
    """Return the lines after the events. `redacted` lists the rules that have replaced something."""
    return f"redacted: {flow_list(redacted)}\n".encode()


def header_of(path: str, fields: dict[str, Flow], lines: Mapping[str, int] = NO_LINES) -> Header:
    """Return the header from its keys.

    Args:
        fields: key to value.
        lines: key to the line of the file that it is on; 1 if absent.

    Raises:
        CassetteError: a value is missing or wrong.
    """
    version = fields.get("cassette")
    if version is None:
        found = ", ".join(list(fields)[:4]) or "nothing"
        advice = "it is the HTTP traffic of a session; the cassette is next to it" if str(path).endswith(_HTTP) else ""
        raise CassetteError(path, 1, f"no cassette: expected a key `cassette: {VERSION}`, found {found}", advice)
    if version != str(VERSION):
        newer = isinstance(version, str) and version.isdigit() and int(version) > VERSION
        advice = "upgrade ext-recorder, or record the session again" if newer else "record the session again"
        raise CassetteError(
            path, lines.get("cassette", 1), f"expected format version {VERSION}, found {version}", advice
        )
    command = fields.get("command", [])
    bindings, environment = fields.get("bindings", {}), fields.get("environment", {})
    framing = _text(path, fields, lines, "framing")
    if framing not in FRAMINGS:
        problem = f"expected `framing` to be one of {', '.join(FRAMINGS)}, http, found {framing!r}"
        raise CassetteError(path, lines.get("framing", 1), problem)
    redacted = fields.get("redacted")
    if not isinstance(command, list):
        raise CassetteError(path, lines.get("command", 1), "expected `command` to be a list")
    if not isinstance(bindings, dict):
        raise CassetteError(path, lines.get("bindings", 1), "expected `bindings` to be a mapping")
    if not isinstance(environment, dict):
        raise CassetteError(path, lines.get("environment", 1), "expected `environment` to be a mapping")
    if isinstance(redacted, (str, dict)):
        raise CassetteError(path, lines.get("redacted", 1), "expected `redacted` to be a list")
    return Header(
        _text(path, fields, lines, "protocol"),
        framing,
        command=tuple(command),
        recorder=_text(path, fields, lines, "recorder", ""),
        recorded=_text(path, fields, lines, "recorded", ""),
        bindings=bindings,
        environment=environment,
        redacted=None if redacted is None else tuple(redacted),
    )


def _text(path: str, fields: dict[str, Flow], lines: Mapping[str, int], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        problem = f"expected a text under the key `{name}`, found {value or 'no such key'}"
        raise CassetteError(path, lines.get(name, 1), problem)
    return value


def _version(text: str) -> str:
    return text if _NUMBERS.issuperset(text) and text[0].isdigit() else scalar(text)
