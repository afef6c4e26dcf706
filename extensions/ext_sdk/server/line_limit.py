"""Messages as lines within the limit of all hosts.

mcpchecker reads lines of at most 65,535 bytes, and hangs without a message after a longer one. So long texts are cut in
the middle, and an output names a file with the complete text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ext_sdk.core.gevals_spec import INTERNAL_ERROR, LOG
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.redaction.secret_names import looks_secret, words
from ext_sdk.core.wire.errors import Id, RpcError
from ext_sdk.core.wire.json_codec import dumps, is_too_deep, loads
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Notification, Response, encode

if TYPE_CHECKING:
    from ext_sdk.result import Result

LINE_LIMIT_BYTES = 65_535  # without the line feed
BUDGET_BYTES = 60 * 1024  # after JSON escaping; the rest is room for the id and for long paths of files
ID_LIMIT_BYTES = 1_024  # of the id as JSON; the response repeats it, where it can't be cut
_SMALLEST_TEXT_BYTES = 200  # a text is not cut shorter than this while other members can be left out
_CERTAINLY_SHORT = BUDGET_BYTES * 2 // 3  # a result whose line is no longer is within the budget, however many outputs
_BUDGETS = (BUDGET_BYTES, BUDGET_BYTES // 4, BUDGET_BYTES // 32)  # tried in this order, for very long paths

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 and C1, except tab and line feed

SpillToFile = Callable[[str, str], str]
"""Writes a text to a file whose name ends in the first argument, and returns the path."""


def printable(text: str) -> str:
    """Return the text with control characters escaped: a program's output must not control a terminal."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def dumps_without_secrets(value: object) -> str:
    """Return a value as JSON with placeholders for all that looks secret: by its form, or by the name of its member."""

    def named(value: object) -> object:
        if isinstance(value, dict):
            secret = {name for name in value if looks_secret(name) or words(name)[:1] == ["secret"]}
            return {name: "[redacted]" if name in secret else named(member) for name, member in value.items()}
        return [named(item) for item in value] if isinstance(value, list) else value

    return Redactor(rules=True).redact_text(dumps(named(value)))


class LineLimiter:
    """Encoder of messages within the line limit, without secrets.

    Values of the extension are redacted before they are cut (half a secret would not be found). The id and the words of
    the protocol are not: a secret may well be `1234` or `code`.

    Args:
        spill_to_file: see SpillToFile; raises OSError if the file can't be written.
    """

    def __init__(self, redactor: Redactor, spill_to_file: SpillToFile) -> None:
        self._redactor = redactor
        self._spill_to_file = spill_to_file

    def result(self, id: Id, result: Result) -> bytes:
        """Return the line of an operation's result, with its line feed."""
        message, error, outputs, length = self._redacted(result)
        if length <= _CERTAINLY_SHORT:
            line = encode(Response(id, _members(result.success, message, error, outputs)))
            if len(line) <= _CERTAINLY_SHORT:
                return line + b"\n"
        texts = {"message": message, "error": error}
        for budget in _BUDGETS:
            line = encode(Response(id, self._fitted(result.success, texts, outputs, budget)))
            if len(line) <= LINE_LIMIT_BYTES:
                return line + b"\n"
        return self.error(id, RpcError(INTERNAL_ERROR, "the result does not fit on a line, even shortened"))

    def members(self, result: Result) -> dict[str, object]:
        """Return the members of an operation's result (gevals 0.0.1, "Result Fields"), redacted and within the budget.

        For protocols without a limit of lines: `success`, and those of `message`, `error` and `outputs` with a value.
        """
        message, error, outputs, length = self._redacted(result)
        if length <= BUDGET_BYTES // 6:  # an escape has at most 6 bytes
            return _members(result.success, message, error, outputs)
        return self._fitted(result.success, {"message": message, "error": error}, outputs, BUDGET_BYTES)

    def _redacted(self, result: Result) -> tuple[str, str, dict[str, str], int]:
        """Return message, error and outputs without secrets, and their length in characters before that."""
        message, error, outputs = result.message, "" if result.success else result.error, result.outputs
        # Nearly no result has a secret: one search shows that.
        joined = "\0".join((message, error, *outputs.values()))
        if self._redactor.redact_text(joined) is not joined:
            message, error = self._redactor.redact_text(message), self._redactor.redact_text(error)
            outputs = {name: self._redactor.redact_text(value) for name, value in outputs.items()}
        return message, error, outputs, len(joined)

    def log(self, level: str, message: str, data: Mapping[str, object]) -> bytes:
        """Return the line of a log notification, with its line feed. Data that is not JSON is written as text."""
        return self._log(level, message, data)[1] + b"\n"

    def log_params(self, level: str, message: str, data: Mapping[str, object]) -> dict[str, object]:
        """Return the params of a log notification (gevals 0.0.1, "Log"), redacted and within the budget."""
        return self._log(level, message, data)[0]

    def _log(self, level: str, message: str, data: Mapping[str, object]) -> tuple[dict[str, object], bytes]:
        """Return the params of a log notification, and the notification."""
        params: dict[str, object] = {"level": level, "message": printable(self._redactor.redact_text(message))}
        if data:
            params["data"] = self.value({name: _json_or_text(value) for name, value in data.items()})
        line = encode(Notification(LOG, params))
        if len(line) > BUDGET_BYTES:
            params["message"] = cut(str(params["message"]), BUDGET_BYTES // 2)
            values = params.get("data")
            if isinstance(values, dict):  # each value as text, cut to an equal share, if that is long enough
                share = (BUDGET_BYTES // 2 - 200) // len(values) - max(map(_size, values)) - 2
                texts = {name: value if isinstance(value, str) else dumps(value) for name, value in values.items()}
                params["data"] = {"cut": f"{len(values)} values that do not fit a line"}
                if share >= _SMALLEST_TEXT_BYTES:
                    params["data"] = {name: cut(text, share) for name, text in texts.items()}
            line = encode(Notification(LOG, params))
        return params, line

    def value(self, value: object) -> object:
        """Return a JSON value without secrets; the same object if it has none. Raises TypeError or ValueError."""
        encoded = dumps(value).encode("utf-8", "backslashreplace")
        redacted = self._redactor.redact(encoded)
        return value if redacted is encoded else loads(redacted.decode())

    def text(self, text: str) -> str:
        """Return a text without secrets and control characters, cut to the budget."""
        return cut(printable(self._redactor.redact_text(text)), BUDGET_BYTES)

    def error(self, id: Id, error: RpcError) -> bytes:
        """Return the line of an error response, with its line feed: code and message, which is cut if needed.

        An id that is too long for the response becomes null, like one that could not be read (JSON-RPC 2.0, section 5).
        """
        message = cut(self._redactor.redact_text(error.message), BUDGET_BYTES)
        return encode(ErrorResponse(id if id_fits(id) else None, RpcError(error.code, message))) + b"\n"

    def plain(self, id: Id, result: object) -> bytes:
        """Return the line of a response that fits and has no secret: the manifest, the response to shutdown."""
        return encode(Response(id, result)) + b"\n"

    def _fitted(
        self, success: bool, texts: Mapping[str, str], outputs: dict[str, str], budget: int
    ) -> dict[str, object]:
        """Return the members of a result, with every text cut that is longer than its share of the budget."""
        sizes = [_size(text) for text in (*texts.values(), *outputs.values())]
        room = budget - sum(_size(name) + 8 for name in outputs) - 200
        if sum(sizes) <= room:
            return _members(success, texts["message"], texts["error"], outputs)
        # The largest share with which all texts fit the room when those that are longer are cut to it.
        room -= 300 * sum(size > _SMALLEST_TEXT_BYTES for size in sizes)
        remaining = sorted(sizes)
        while remaining[0] <= (share := room // len(remaining)):  # ends: all together do not fit
            room -= remaining.pop(0)
        if share < _SMALLEST_TEXT_BYTES:
            # So many outputs that their names alone fill the line: one file has them all, as JSON.
            spilled = {} if "outputsFile" in outputs else {"outputsFile": self._spill("outputs.json", dumps(outputs))}
            return self._fitted(success, texts, spilled, budget)
        cut_outputs: dict[str, str] = {}
        for name, value in outputs.items():
            cut_outputs[name] = cut(value, share)
            if cut_outputs[name] != value and f"{name}File" not in outputs:
                cut_outputs[f"{name}File"] = self._spill(f"{name}.txt", value)
        paths = {name: self._spill(f"{name}.txt", text) for name, text in texts.items() if cut(text, share) != text}
        named = {f"{name}File": path for name, path in paths.items() if f"{name}File" not in outputs}
        message, error = (cut(texts[name], share) for name in ("message", "error"))
        return _members(success, message, error, cut_outputs | named)

    def _spill(self, name: str, text: str) -> str:
        try:
            return self._spill_to_file(name, text)
        except OSError as error:
            return f"(could not be written: {error})"


def _members(success: bool, message: str, error: str, outputs: dict[str, str]) -> dict[str, object]:
    members: dict[str, object] = {"success": success}
    if message:
        members["message"] = message
    if error:
        members["error"] = error
    if outputs:
        members["outputs"] = outputs
    return members


def _size(text: str) -> int:
    """Return the bytes of a text as JSON in UTF-8, quotation marks included."""
    return len(dumps(text).encode("utf-8", "backslashreplace"))


def readable(members: dict[str, object]) -> str:
    """Return the members of a result as text: message, error, and one line or block for each output."""
    message, error, outputs = (members.get(name) for name in ("message", "error", "outputs"))
    summary, (first, _, rest) = str(message or ""), str(error or "").partition("\n")
    # The message often ends with the first line of the error, or is the beginning of it.
    lines = [summary, rest] if summary.endswith(first) else [first, rest] if first.startswith(summary) else []
    lines = lines or [summary, first, rest]
    for name, value in outputs.items() if isinstance(outputs, dict) else ():
        text = value.rstrip("\n")
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(filter(None, lines)) or ("done" if members["success"] else "failed")


def cut(text: str, limit: int) -> str:
    """Return the text, or its beginning and end with a note between them.

    Args:
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


def id_fits(id: Id) -> bool:
    """Return True if an id fits in a response. Raises nothing for an id that `parse` returns."""
    if isinstance(id, float) or id is None:
        return True
    text = str(id)
    return 6 * len(text) + 2 <= ID_LIMIT_BYTES or _size(text) <= ID_LIMIT_BYTES  # an escape has at most 6 bytes


def _json_or_text(value: object) -> object:
    try:
        dumps(value)
    except (TypeError, ValueError):
        return str(value)
    except RecursionError:
        pass
    else:
        if not is_too_deep(value):
            return value
    return f"a {type(value).__name__} that is nested too deeply"
