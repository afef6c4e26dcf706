"""Messages to lines that every host can read.

One known host reads lines of at most 65,535 bytes and is stuck for good after a longer one, without a word.
So each line is made to fit: long texts are cut in the middle, and what was cut stands whole in a file that an
output names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from .wire import ErrorResponse, Id, Notification, Response, RpcError, dumps, encode

if TYPE_CHECKING:
    from .redaction import Redactor
    from .result import Result

LINE_LIMIT_BYTES = 65_535  # without the line feed
BUDGET_BYTES = (
    60 * 1024
)  # after JSON escaping; the rest is room for redaction, whose placeholders may be longer than a secret
ID_LIMIT_BYTES = 1_024  # of the id as JSON; it comes back in the answer, where it can't be cut
_SMALLEST_TEXT_BYTES = 200  # a text is not cut shorter than this while anything else can be left out

KeepWhole = Callable[[str, str], str]
"""Writes a text to a file, named after its output, and returns the path."""


class Fitter:
    """Makes lines that fit, without secrets.

    Args:
        redactor: what must not be seen.
        keep_whole: see KeepWhole; raises OSError where no file can be written.
    """

    def __init__(self, redactor: Redactor, keep_whole: KeepWhole) -> None:
        self._redactor = redactor
        self._keep_whole = keep_whole

    def result(self, id: Id, result: Result) -> bytes:
        """The line of an operation's result, with its line feed."""
        texts = {"message": result.message, "error": result.error}
        outputs = {name: self._redactor.redact_text(value) for name, value in result.outputs.items()}
        texts = {name: self._redactor.redact_text(value) for name, value in texts.items()}
        for budget in _budgets():
            line = self._line(encode(Response(id, self._fitted(result.success, texts, outputs, budget))))
            if len(line) <= LINE_LIMIT_BYTES + 1:
                return line
        return self.error(id, RpcError(-32603, "the result does not fit a line, however much of it is left out"))

    def log(self, level: str, message: str, data: Mapping[str, object]) -> bytes:
        """The line of a log notification, with its line feed. Data that is no JSON is written as text."""
        params: dict[str, object] = {"level": level, "message": message}
        if data:
            params["data"] = {name: _json_or_text(value) for name, value in data.items()}
        line = self._line(encode(Notification("log", params)))
        for budget in _budgets():
            if len(line) <= LINE_LIMIT_BYTES + 1:
                break
            params = {"level": level, "message": cut(message, budget // 2)}
            if data:
                params["data"] = {"cut": f"{len(data)} values that do not fit a line"}
            line = self._line(encode(Notification("log", params)))
        return line

    def error(self, id: Id, error: RpcError) -> bytes:
        """The line of an error answer, with its line feed; a text that does not fit is cut, data left out."""
        line = self._line(encode(ErrorResponse(id, error)))
        for budget in _budgets():
            if len(line) <= LINE_LIMIT_BYTES + 1:
                break
            line = self._line(encode(ErrorResponse(id, RpcError(error.code, cut(str(error.message), budget // 2)))))
        return line

    def plain(self, id: Id, result: object) -> bytes:
        """The line of an answer that is known to fit: the manifest, the answer to shutdown."""
        return self._line(encode(Response(id, result)))

    def _line(self, payload: bytes) -> bytes:
        return self._redactor.redact(payload) + b"\n"

    def _fitted(
        self, success: bool, texts: Mapping[str, str], outputs: dict[str, str], budget: int
    ) -> dict[str, object]:
        """The members of a result, with every text cut that is longer than its share of the budget."""
        sizes = [_size(text) for text in (*texts.values(), *outputs.values())]
        room = budget - sum(_size(name) + 8 for name in outputs) - 200
        if sum(sizes) <= room:
            return _members(success, texts, outputs)
        share = _share(sizes, room - 300 * sum(size > _SMALLEST_TEXT_BYTES for size in sizes))
        if share < _SMALLEST_TEXT_BYTES:
            return self._fitted(success, texts, self._moved_out(outputs, texts, budget), budget)
        cut_outputs: dict[str, str] = {}
        for name, value in outputs.items():
            cut_outputs[name] = cut(value, share)
            if cut_outputs[name] != value and f"{name}File" not in outputs:
                cut_outputs[f"{name}File"] = self._kept(name, value)
        whole = {name: self._kept(name, text) for name, text in texts.items() if cut(text, share) != text}
        named = {f"{name}File": path for name, path in whole.items() if f"{name}File" not in outputs}
        return _members(success, {name: cut(text, share) for name, text in texts.items()}, cut_outputs | named)

    def _moved_out(self, outputs: Mapping[str, str], texts: Mapping[str, str], budget: int) -> dict[str, str]:
        """So many outputs that their names alone fill the line: one file holds them all, as JSON."""
        if len(outputs) <= 1:
            return {}
        return {"outputsFile": self._kept("outputs.json", dumps(outputs))}

    def _kept(self, name: str, text: str) -> str:
        try:
            return self._keep_whole(name, text)
        except OSError as error:
            return f"(could not be written: {error})"


def _budgets() -> Iterable[int]:
    """Smaller and smaller, for the rare text in which redaction makes much longer what was cut to fit."""
    return (BUDGET_BYTES, BUDGET_BYTES // 4, BUDGET_BYTES // 32)


def _members(success: bool, texts: Mapping[str, str], outputs: Mapping[str, str]) -> dict[str, object]:
    members: dict[str, object] = {"success": success}
    members |= {name: text for name, text in texts.items() if text and not (success and name == "error")}
    if outputs:
        members["outputs"] = dict(outputs)
    return members


def _size(text: str) -> int:
    """Bytes of a text as JSON in UTF-8, quotation marks included."""
    return len(dumps(text).encode("utf-8", "backslashreplace"))


def _share(sizes: Iterable[int], room: int) -> int:
    """The largest length L such that all texts fit the room when those longer than L are cut to it."""
    waiting = sorted(sizes)
    while waiting:
        level = room // len(waiting)
        if waiting[0] > level:
            return level
        room -= waiting.pop(0)
    return room


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and end around a note of what is missing.

    Args:
        text: anything.
        limit: bytes as JSON in UTF-8, quotation marks included; below some 60 only the note is left.
    """
    size = _size(text)
    if size <= limit:
        return text
    keep = len(text)
    while True:
        keep = min(keep - 1, keep * limit // size)
        if keep <= 0:
            return f"[… {len(text)} characters]"
        head = keep * 2 // 3
        tail = keep - head
        note = f"[… {len(text) - keep} of {len(text)} characters left out …]"
        shorter = f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"
        size = _size(shorter)
        if size <= limit:
            return shorter


def _json_or_text(value: object) -> object:
    try:
        dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return value
