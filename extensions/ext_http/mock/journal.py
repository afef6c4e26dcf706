"""What a mock was asked: in memory for checks, and in a file for people, without secrets."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.expect.format import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ext_sdk import Secrets

    from .request import Request

MOST_BYTES = 64 * 1024 * 1024  # of bodies that are kept, all together
SHOWN_BODY = 4096  # characters of a body in the file
LOOKED_AT = 64 * 1024  # bytes of a body in which secrets are looked for, before it is cut
MOST_FILE = 32 * 1024 * 1024  # bytes of the file
SHOWN_TARGET = 300  # characters of a request's target in a failure
_WORD_AT_END = re.compile(r"[\w+/=.~%:@-]+\Z")


class Call:
    """One call.

    Attributes:
        number: 1 for the first.
        seconds: since the mock was started.
        request: what was asked.
        route: the label of the route that took it; "" for none.
        answer: what it got: a status, or the name of a fault.
        problem: why the answer failed; "" if it did not.
        miss: why no route took it; None if one did.
    """

    __slots__ = ("answer", "miss", "number", "problem", "request", "route", "seconds")

    def __init__(
        self, request: Request, route: str, answer: str, *, problem: str = "", miss: Miss | None = None
    ) -> None:
        self.number = 0
        self.seconds = 0.0
        self.request = request
        self.route = route
        self.answer = answer
        self.problem = problem
        self.miss = miss


class Miss(NamedTuple):
    """Reason why no route took a call, without secrets.

    Attributes:
        nearest: label of the nearest route.
        differences: expectations of that route that the call does not meet.
    """

    nearest: str
    differences: Sequence[str]

    def __str__(self) -> str:
        return f"the nearest is {self.nearest}: {'; '.join(self.differences)}"


class Journal:
    """All calls of one mock. For any thread.

    Args:
        path: of the file; it is there already, and private.
        secrets: what must not be seen; whatever looks like a secret is hidden, too.
        most_calls: number of calls that are kept; later ones are only counted.
    """

    def __init__(self, path: Path, secrets: Secrets, most_calls: int) -> None:
        self.path = path
        self.most_calls = most_calls
        self._secrets = secrets
        self._rules = Redactor(rules=True)
        self._changed = threading.Condition()
        self._calls: list[Call] = []
        self._count = self._unmatched = 0
        self._room = MOST_BYTES
        self._problems: list[str] = []
        self._begun = time.monotonic()
        self._file: BinaryIO | None = None
        self._file_room = MOST_FILE

    def redact(self, text: str) -> str:
        """A text as it may be shown."""
        return self._rules.redact_text(self._secrets.redact(text))

    def add(self, call: Call) -> None:
        """Note a call, before it is answered: whoever has an answer finds its call here."""
        with self._changed:
            self._count += 1
            self._unmatched += not call.route
            call.number, call.seconds = self._count, time.monotonic() - self._begun
            self._write(self._line(call))
            if len(self._calls) < self.most_calls:
                self._room -= len(call.request.body)
                if self._room < 0:
                    call.request.body, call.request.truncated = b"", True
                self._calls.append(call)
            self._changed.notify_all()

    def note(self, problem: str) -> None:
        """Note what came and was no request."""
        with self._changed:
            self._problems = [*self._problems[-9:], self.redact(problem)]
            self._write({"at": _seconds(time.monotonic() - self._begun), "problem": problem})
            self._changed.notify_all()

    @property
    def calls(self) -> Sequence[Call]:
        """The calls so far, in the order in which they were read to their end."""
        with self._changed:
            return list(self._calls)

    @property
    def count(self) -> int:
        """How many there were, those that were not kept included."""
        return self._count

    @property
    def unmatched(self) -> int:
        """How many of them no route took."""
        return self._unmatched

    @property
    def problems(self) -> Sequence[str]:
        """What came last and was no request, without secrets."""
        with self._changed:
            return self._problems

    @property
    def whole(self) -> bool:
        """Whether all calls were kept."""
        return self._count <= self.most_calls

    def wait(self, known: int, seconds: float) -> bool:
        """Wait until there are more calls than these, or the time is over; return whether there are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count > known, seconds)

    def told(self, call: Call) -> str:
        """Return method, target and answer of a call on one line, without secrets."""
        request = call.request
        target = self.redact(request.target)
        target = target if len(target) <= SHOWN_TARGET else f"{target[:SHOWN_TARGET]} …"
        text = f"#{call.number} {request.method} {target} got {call.answer} from {call.route or 'no route'}"
        return self.redact(text)

    def paragraph(self, call: Call, reasons: Sequence[str] = ()) -> str:
        """Return a call on several indented lines, without secrets: the reasons come first, then its body.

        Args:
            call: one of the journal.
            reasons: why the call is shown, without secrets.
        """
        lines = [f"  {self.told(call)}", *(f"    {reason}" for reason in reasons)]
        if call.problem:
            lines.append(f"    the answer failed: {self.redact(call.problem)}")
        if call.request.body:
            text = call.request.body[:LOOKED_AT].decode("utf-8", "replace")
            lines.append(f"    body: {quoted(text, self.redact)}")
        return "\n".join(lines)

    def close(self) -> None:
        """Close the file."""
        with self._changed, suppress(OSError):
            if self._file:
                self._file.close()
            self._file_room = 0

    def _line(self, call: Call) -> dict[str, object]:
        request = call.request
        headers: dict[str, object] = {}
        for name, value in request.headers:
            known = headers.get(name)
            headers[name] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
        entry: dict[str, object] = {
            "n": call.number,
            "at": _seconds(call.seconds),
            "method": request.method,
            "target": request.target,
            "headers": headers,
            "route": call.route or None,
            "answer": call.answer,
            "bodyBytes": len(request.body),
            "body": self._short(request.body),
        }
        if call.miss:
            entry |= {"nearest": call.miss.nearest, "differences": call.miss.differences}
        return entry | ({"problem": call.problem} if call.problem else {})

    def _short(self, body: bytes) -> str:
        """The text of a body; a long one is cut between words, when no secret is left that could be cut in two."""
        text = body[:LOOKED_AT].decode("utf-8", "backslashreplace")
        if len(text) <= SHOWN_BODY:
            return text
        return _WORD_AT_END.sub("", self.redact(text)[:SHOWN_BODY]) + " …"

    def _write(self, entry: dict[str, object]) -> None:
        """Append a line. A disk that is full is no reason to answer nothing."""
        line = self.redact(json.dumps(entry, ensure_ascii=False)).encode("utf-8", "backslashreplace") + b"\n"
        self._file_room -= len(line)
        if self._file_room < 0:
            return
        with suppress(OSError):
            self._file = self._file or self.path.open("wb", buffering=0)
            self._file.write(line)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}s"
