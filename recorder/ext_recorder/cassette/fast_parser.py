"""Parser for event lines, the inner loop of the reader: some fifty times as fast as a YAML loader.

It only supports the forms that `writer` writes, with the same results as PyYAML. It returns None for any other form,
which PyYAML then parses.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from operator import itemgetter

from .events import PLAIN_BYTES, Data, Mark
from .yaml_scalars import holds, unescaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .events import Event, MarkKind, Stream

CUT_OFF = "a file that was cut off: ext-recorder recover"  # the advice, before its path
_SEAMS = frozenset({b"in: ", b"out: ", b"err: "})
_LETTER = itemgetter(-4)  # of a seam: identifies its stream
_LETTERS: dict[int, Stream] = {b"in: "[-4]: "in", b"out: "[-4]: "out", b"err: "[-4]: "err"}
IN, OUT = bytes([b"in: "[-4]]), bytes([b"out: "[-4]])
_STREAMS: dict[bytes, Stream] = {b"in": "in", b"out": "out", b"err": "err"}
_MARKS: dict[bytes, MarkKind] = {
    b"eof": "eof",
    b"exit": "exit",
    b"signal": "signal",
    b"open": "open",
    b"omitted": "omitted",
    b"files": "files",
    b"http": "http",
}
# Changes all bytes but plain ones: if it changes nothing, the bytes need no parser.
_MARKED = bytes(byte if byte in PLAIN_BYTES else byte ^ 1 for byte in range(256))
_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+")
_LATEST = 1e9  # seconds; 31 years. Refuses inf and nan, too.
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_SECONDS = frozenset(b"0" * count for count in range(1, 10))  # digits before the point, below _LATEST


class Block:
    """Usual lines of a cassette, cut and checked, from which events are created one by one.

    A usual line is a message of the only connection, of printable ASCII without quotation marks.

    Attributes:
        kinds: a letter for each event: IN, OUT, or that of stderr.
        line: the number of the line above the first one.
        payloads: of each event.
        position: of the next event.
    """

    __slots__ = ("_seams", "kinds", "line", "payloads", "position")

    def __init__(self, seams: list[bytes], payloads: list[bytes], kinds: bytes) -> None:
        self._seams = seams
        self.payloads = payloads
        self.kinds = kinds
        self.line = 0
        self.position = 0

    def __len__(self) -> int:
        return len(self.payloads)

    def take(self) -> Data:
        """Return the next event."""
        at = self.position
        self.position = at + 1
        return Data(_LETTERS[self.kinds[at]], self.time(at), self.payloads[at])

    def time(self, at: int) -> float:
        """Return the time of an event, in seconds."""
        seam = self._seams[at]
        return float(seam[8 : seam.find(b",", 8)])


def cut(block: bytes) -> Block | None:
    """Cut whole lines at their quotation marks; return None unless each of them is a usual one.

    The seams between the messages have few forms once their digits are set to 0, and each form is checked once. Each
    seam ends a line, and the block has no other lines, so nothing else needs a check.
    """
    pieces = block.split(b"'")
    payloads = pieces[1::2]
    pieces[0] = b"}\n" + pieces[0]
    seams = pieces[::2]
    if seams.pop() != b"}\n" or len(seams) != len(payloads) or not seams:
        return None
    text = b"".join(payloads)
    if text.translate(_MARKED) != text:
        return None
    if not all(map(_is_usual_seam, set(b"'".join(seams).translate(_ZEROS).split(b"'")))):
        return None
    return Block(seams, payloads, bytes(map(_LETTER, seams)))


def _is_usual_seam(form: bytes) -> bool:
    """Return True if this is the text between two messages, with zeros for its digits."""
    stamp, _, name = form.partition(b", ")
    whole, _, fraction = stamp[8:].partition(b".")
    return name in _SEAMS and stamp[:8] == b"}\n- {t: " and fraction == b"000000" and whole in _SECONDS


def parse_line(line: bytes) -> Event | None:
    """Return the event on a line, which includes its line feed; None for a form that `writer` does not write."""
    head, _, body = line.partition(b": '")
    stamp, _, name = head.partition(b", ")
    stream = _STREAMS.get(name)
    if stream is None or body[-3:] != b"'}\n" or stamp[:6] != b"- {t: ":
        return _other_line(line)
    try:
        time = float(stamp[6:])
    except ValueError:
        return None
    if not 0 <= time < _LATEST:
        return None
    payload = body[:-3]
    if payload.translate(_MARKED) == payload:
        return Data(stream, time, payload)
    unquoted = _unquoted(payload)
    return None if unquoted is None else Data(stream, time, unquoted)


def _other_line(line: bytes) -> Event | None:
    """Parse raw bytes, marks, further connections and header lines, which are few in most cassettes."""
    try:
        _, _, stamp, key, body = line.split(b" ", 4)
        time = float(stamp[:-1])
    except ValueError:
        return None
    if not line.startswith(b"- {t: ") or stamp[-1:] != b"," or not 0 <= time < _LATEST:
        return None
    conn = 1
    if key == b"conn:":
        number, _, rest = body.partition(b", ")
        key, _, body = rest.partition(b" ")
        if not number.isdigit() or (number.startswith(b"0") and number != b"0"):
            return None
        conn = int(number)
    if not body.endswith(b"}\n") or key[-1:] != b":":
        return None
    body = body[:-2]
    if stream := _STREAMS.get(key[:-1]):
        return _data(stream, time, body, conn)
    kind = _MARKS.get(key[:-1])
    if kind is None or not body or not (_WORD | {0x20}).issuperset(body):
        return None
    return mark_of(kind, time, body.decode(), conn)


def _unquoted(body: bytes) -> bytes | None:
    """Return the text between quotation marks; None if it has a single one, or characters that YAML refuses."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    if not holds(text) or "'" in text.replace("''", ""):
        return None
    return body.replace(b"''", b"'")


def mark_of(kind: MarkKind, time: float, word: str, conn: int) -> Mark | None:
    """Return a mark with its value; None if the value is not valid for its kind."""
    if kind in {"exit", "files"} and word.isdigit() and (len(word) == 1 or word[0] != "0") and len(word) <= 10:
        return Mark(kind, time, int(word), conn)
    if kind in {"exit", "signal"}:
        return Mark(kind, time, word, conn) if word.startswith("SIG") and " " not in word else None
    if kind == "files":
        return None
    if kind == "omitted":
        size, _, rest = word.partition(" ")
        known = size.isdigit() and len(size) <= 15 and rest in {"bytes of in", "bytes of out"}
        return Mark(kind, time, word, conn) if known else None
    if kind == "http":
        method, _, rest = word.partition(" ")
        is_exchange = method in {"GET", "POST", "DELETE"} and rest.partition(" ")[0].isdigit() and len(word) < 80
        return Mark(kind, time, word, conn) if is_exchange else None
    return Mark(kind, time, word, conn) if word in {"in", "out", "err"} else None


def _data(stream: Stream, time: float, body: bytes, conn: int) -> Data | None:
    if body.startswith(b"{raw: '") and body.endswith(b"'}"):
        wire = raw_bytes(body[7:-2])
        return None if wire is None else Data(stream, time, wire, raw=True, conn=conn)
    if body.startswith(b"{text: ") and body.endswith(b"}"):
        wire = _text_bytes(body[7:-1])
        return None if wire is None else Data(stream, time, wire, raw=True, conn=conn)
    head: tuple[str, ...] = ()
    if body.endswith(b"']"):
        body, _, lines = body.rpartition(b", head: [")
        if lines[:1] != b"'" or len(lines) < 3:
            return None
        items = [_unquoted(item) for item in lines[1:-2].split(b"', '")]
        if any(item is None or b"'" in item for item in items):
            return None  # an item with a quotation mark may not be split at the right places
        head = tuple(item.decode() for item in items if item is not None)
    payload = _text_bytes(body)
    return None if payload is None else Data(stream, time, payload, head=head, conn=conn)


def _text_bytes(scalar: bytes) -> bytes | None:
    """Return the bytes of a text, from its YAML scalar; None for a form that `writer` does not write."""
    if len(scalar) < 2 or scalar[:1] != scalar[-1:]:
        return None
    body = scalar[1:-1]
    if scalar[:1] == b"'":
        return _unquoted(body)
    try:
        escaped = body.decode()
    except UnicodeDecodeError:
        return None
    is_valid = scalar[:1] == b'"' and holds(escaped)
    if not is_valid or '"' in escaped.replace("\\\\", "").replace('\\"', ""):
        return None
    text = unescaped(escaped)
    return None if text is None else text.encode()


def raw_bytes(text: bytes) -> bytes | None:
    """Return the bytes of a text in base64; None if it is not valid."""
    try:
        return a2b_base64(text, strict_mode=True)
    except Base64Error:
        return None
