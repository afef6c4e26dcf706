"""The Pi extension protocol, version 1.0 (spec 1): an envelope with a type, calls in both directions.

The specification names no transport; a message a line is what Pi's own RPC mode does. A call is known by the `call_id`
of its payload; a slash command has none, so that only the envelope's `id` can name it.
"""

from __future__ import annotations

from .dialect import Dialect, Form

_CALL_ID = "/payload/call_id"
_PAYLOAD = ("payload",)

DIALECT = Dialect(
    "pi",
    "ndjson",
    "the Pi extension protocol",
    tag="type",
    forms={
        "register": Form("notification", "/type", "", _PAYLOAD),
        "tool_call": Form("request", "/type", _CALL_ID, _PAYLOAD),
        "tool_result": Form("response", "/type", _CALL_ID, _PAYLOAD),
        "slash_command": Form("request", "/type", "/id", _PAYLOAD),
        "slash_result": Form("response", "/type", "/id", _PAYLOAD),
        "event_hook": Form("notification", "/type", "", _PAYLOAD),
        "host_call": Form("request", "/type", _CALL_ID, _PAYLOAD),
        "host_result": Form("response", "/type", _CALL_ID, _PAYLOAD),
        "log": Form("notification", "/type", "", _PAYLOAD),
        "error": Form("notification", "/type", "", _PAYLOAD),
    },
    bound={"tool_call": {"cwd": "/payload/context/cwd"}},
    volatile={
        "log": (
            "/payload/ts", "/payload/source/pid", "/payload/source/host", "/payload/correlation/run_id",
            "/payload/correlation/session_id", "/payload/correlation/artifact_id", "/payload/correlation/trace_id",
            "/payload/correlation/span_id",
        ),
        "*": ("/id", "/payload/cancel_token"),
    },
    # `id`: "Correlation id for request/response". An answer, or the report of an error, may repeat it.
    minted={"*": ("/id",)},
    echoed={"tool_result": ("/id",), "slash_result": ("/id",), "error": ("/id",)},
    mentions={
        "log": ("/payload/correlation/tool_call_id", "/payload/correlation/slash_command_id"),
        "error": ("/payload/details/call_id",),
    },
    unfinished={"/payload/chunk/is_last": False},
    failed={"/payload/is_error": True},
    subject={
        "tool_call": "/payload/name", "slash_command": "/payload/name", "host_call": "/payload/method",
        "event_hook": "/payload/event",
    },
    refusals={
        "tool_call": '{"id":%(/id)s,"version":"1.0","type":"tool_result","payload":{"call_id":%(/payload/call_id)s,'
        '"output":{"error":%(message)s,"data":%(data)s},"is_error":true}}',
        "slash_command": '{"id":%(/id)s,"version":"1.0","type":"slash_result","payload":'
        '{"output":{"error":%(message)s,"data":%(data)s},"is_error":true}}',
    },
)  # fmt: skip
