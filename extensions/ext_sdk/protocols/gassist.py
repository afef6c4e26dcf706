"""The G-Assist plugin protocol, version 2 (spec 2): JSON-RPC behind four bytes of length.

`execute` and `input` are answered by a `complete` or `error` notification that names the request, after any number of
`stream`; the response to `input` only acknowledges it. `execute` may be answered by a response as well.
"""

from __future__ import annotations

from .dialect import Dialect, Form

_REQUEST_ID = "/params/request_id"
_END = Form("response", "/method", _REQUEST_ID, ("params",))

DIALECT = Dialect(
    "gassist",
    "uint32",
    "the G-Assist plugin protocol",
    forms={"complete": _END, "error": _END},
    volatile={
        "initialize": ("/params/engine_version",),
        "execute": ("/params/context", "/params/system_info"),
        "input": ("/params/timestamp",),
        "ping": ("/params/timestamp", "/result/timestamp"),
    },
    mentions={"stream": (_REQUEST_ID,), "log": (_REQUEST_ID,)},
    asides=("ping",),
    echoes={"ping": {"/params/timestamp": "/result/timestamp"}},
    unfinished={"/result/acknowledged": True},
    failed={"/result/success": False, "/params/success": False, "/method": "error"},
    subject={"execute": "/params/function"},
    # "No response expected", and it is a notification; the vendor's own engine emulator sends it as a request.
    loose={"shutdown": '{"jsonrpc":"2.0","id":%(/id)s,"result":{}}'},
    final=("shutdown",),
    # Timeouts: ping to pong, input to its acknowledgement, execute to complete.
    timeouts={"ping": 1.0, "input": 2.0, "execute": 30.0},
)
