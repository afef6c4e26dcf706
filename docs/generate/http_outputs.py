"""What the operations of ext-http put out, by name."""

from __future__ import annotations

ANSWER = {
    "status": "of the answer, such as `200`",
    "body": "the text of the answer; of a long one the beginning and the end",
    "bodyFile": "where `body` does not say it all: the file that does",
    "duration": "how long it took, such as `12ms`",
    "url": "that was asked last: another than the given one after a redirect",
    "attempts": "how often it was asked",
    "NAME": "where `capture` has this name: what was captured",
}

HTTP = {
    "request": ANSWER,
}
