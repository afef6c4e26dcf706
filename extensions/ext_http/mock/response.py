"""From what a route answers to status, headers and body, with the parts of the request filled in."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

import ext_sdk
from ext_sdk.files import Workdir, os_errors

from .answers import WITHOUT_BODY
from .template import Filler, Unfilled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .answers import Answer
    from .request import Request

LARGEST_FILE = 64 * 1024 * 1024  # bytes of a file that is a body; it is held in memory
Pairs = list[tuple[str, str]]


class Response:
    """An answer, ready to be sent.

    Attributes:
        status: such as 200.
        headers: name and value of each; Content-Length is not among them.
        body: None where there is none, as with 204.
        answer: what it was made of, which says how it is sent; None for an answer of the mock's own.
    """

    __slots__ = ("answer", "body", "headers", "status")

    def __init__(self, status: int, headers: Pairs, body: bytes | None, answer: Answer | None = None) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.answer = answer


def reason(status: int) -> str:
    """The words of a status: `Not Found`; "" where there are none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def plain(status: int, text: str = "") -> Response:
    """Return an answer of the mock's own, as any server gives it: without a text, it does not reveal the mock.

    Args:
        status: of the answer.
        text: body; the words of the status if it is empty.
    """
    body = f"{text or reason(status)}\n".encode("utf-8", "replace")
    return Response(status, [("Content-Type", "text/plain; charset=utf-8")], body)


class Bodies:
    """The bodies that stand still: files and base64, read when the mock starts.

    Args:
        answers: all that the mock may give.
        workdir: where files are.

    Raises:
        OperationFailed: a file that can't be read, or is not in the workdir.
        InvalidArgs: what is no base64.
    """

    def __init__(self, answers: Sequence[Answer], workdir: Path) -> None:
        self._files: Mapping[str, bytes] = {
            one.file: _read(one.file, workdir) for one in answers if isinstance(one.file, str)
        }
        self._decoded: Mapping[str, bytes] = {
            one.base64: _decoded(one.base64) for one in answers if isinstance(one.base64, str)
        }

    def respond(self, answer: Answer, request: Request) -> Response:
        """The answer to a request. Raises Unfilled where it refers to what the request does not have."""
        filler = Filler(request)
        headers: Pairs = []
        for name, values in answer.headers.items():
            headers += [(name, filler.fill(one)) for one in (values if isinstance(values, list) else [values])]
        body, kind = self._body(answer, filler)
        if body is not None and kind and all(name.lower() != "content-type" for name, _ in headers):
            headers.insert(0, ("Content-Type", kind))
        return Response(answer.status, headers, body, answer)

    def _body(self, answer: Answer, filler: Filler) -> tuple[bytes | None, str]:
        """The body, and its type; "" for none."""
        if isinstance(answer.text, str):
            return filler.fill(answer.text).encode("utf-8", "replace"), "text/plain; charset=utf-8"
        if answer.json is not UNSET:
            return _json(filler.fill_json(answer.json)), "application/json"
        if isinstance(answer.file, str):
            guessed, _ = mimetypes.guess_type(answer.file)
            return self._files[answer.file], guessed or "application/octet-stream"
        if not isinstance(answer.base64, UnsetType):
            return self._decoded[answer.base64], "application/octet-stream"
        return (None if answer.status in WITHOUT_BODY else b""), ""


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (ValueError, RecursionError) as error:
        raise Unfilled(f"what the references bring in is no JSON that can be written: {error}") from error


def _read(path: str, workdir: Path) -> bytes:
    with os_errors("read", path):
        return Workdir(workdir).read(path, limit=LARGEST_FILE)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ext_sdk.InvalidArgs("routes", f"answer.base64: expected base64, found {text!r:.60}: {error}") from error
