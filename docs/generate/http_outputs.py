"""What the operations of ext-http put out, by name."""

from __future__ import annotations

ANSWER = {
    "status": "of the answer, such as `200`",
    "body": "the text of the answer; of a long one the beginning and the end; a later step gets all of it",
    "bodyFile": "where `body` does not say it all: the file that does",
    "duration": "how long it took, such as `12ms`",
    "url": "that was asked last: another than the given one after a redirect",
    "attempts": "how often it was asked",
    "NAME": "where `capture` has this name: what was captured",
}

MOCK = {
    "calls": "how often it was asked",
    "unmatched": "how many of these calls no route took",
    "journalFile": "the file that has every call, as a line of JSON, without secrets",
}

HTTP = {
    "request": ANSWER,
    "wait": ANSWER,
    "download": {
        "path": "the absolute path of the file",
        "size": "of the file, in bytes",
        "sha256": "of the file, in hex",
        "status": "of the answer, such as `200`",
        "duration": "how long it took, such as `1.2s`",
        "url": "that was asked last: another than the given one after a redirect",
        "attempts": "how often it was asked",
    },
    "graphql": ANSWER
    | {
        "data": "the member of this name, as JSON",
        "errors": "where there are any: the member of this name, as JSON",
    },
    "session": {"name": "of the session"},
    "mock-start": {
        "name": "of the mock",
        "url": "of its root, such as `http://127.0.0.1:40711`",
        "port": "at which it listens",
        "caFile": "where `tls` is given: the certificate of the authority to trust",
        "journalFile": MOCK["journalFile"],
    },
    "mock-verify": MOCK,
    "mock-stop": MOCK | {"routes": "how many calls each route took, as JSON"},
}
