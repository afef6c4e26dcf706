"""Descriptions of the outputs of ext-http's operations, by name."""

from __future__ import annotations

RESPONSE = {
    "status": "status code, such as `200`",
    "body": "text of the body; beginning and end of a long one. A later step gets the complete text",
    "bodyFile": "if `body` is shortened: path of a file with the complete body",
    "duration": "elapsed time, such as `12ms`",
    "url": "URL of the last request; after a redirect, that of the redirect's target",
    "attempts": "number of requests sent",
    "NAME": "if `capture` contains NAME: the captured value",
}

RECEIVED = {
    "calls": "number of requests received",
    "unmatched": "number of requests that no route matched",
    "journalFile": "path of a file with all requests, one line of JSON each, redacted",
}

HTTP = {
    "request": RESPONSE,
    "wait": RESPONSE,
    "download": {
        "path": "absolute path of the file",
        "size": "size of the file in bytes",
        "sha256": "SHA-256 of the file in hex",
        "status": RESPONSE["status"],
        "duration": "elapsed time, such as `1.2s`",
        "url": RESPONSE["url"],
        "attempts": RESPONSE["attempts"],
    },
    "graphql": RESPONSE
    | {
        "data": "member `data` of the response, as JSON",
        "errors": "if the response has errors: its member `errors`, as JSON",
    },
    "session": {"name": "name of the session"},
    "mock-start": {
        "name": "name of the mock",
        "url": "base URL, such as `http://127.0.0.1:40711`",
        "port": "port that the mock listens on",
        "caFile": "if `tls` is set: path of the CA certificate that clients must trust",
        "journalFile": RECEIVED["journalFile"],
    },
    "mock-verify": RECEIVED,
    "mock-stop": RECEIVED | {"routes": "number of requests that each route matched, as JSON"},
}
