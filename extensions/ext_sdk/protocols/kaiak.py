"""Kaiak's agent API (spec 4): three commands of LSP's `workspace/executeCommand`, seven stream notifications."""

from __future__ import annotations

from .dialect import Dialect

COMMAND = "workspace/executeCommand"
_SESSION = "/params/arguments/0/session_id"
STREAMS = ("progress", "ai_response", "tool_call", "user_interaction", "file_modification", "error", "system")

DIALECT = Dialect(
    "kaiak",
    "content-length",
    "Kaiak's agent API",
    bound={COMMAND: {"workspace": "/params/arguments/0/configuration/workspace/working_dir"}},
    volatile={
        COMMAND: (
            "/result/timestamp", "/result/completed_at", "/result/deleted_at", "/result/created_at",
            "/error/data/in_use_since",
        ),
        "*": ("/params/timestamp", "/params/message_id"),
        "kaiak/stream/ai_response": ("/params/content/text", "/params/content/tokens", "/params/content/confidence"),
        "kaiak/stream/tool_call": ("/params/content/result/execution_time",),
        "kaiak/stream/file_modification": ("/params/content/diff",),
    },
    # A client may bring its session's id, or leave it to the server; requests, interactions and proposals are the
    # server's.
    minted={COMMAND: (_SESSION,)},
    names={
        "": ("/result/session_id", "/result/request_id", "/error/data/session_id"),
        COMMAND: (_SESSION,),
        "kaiak/stream/user_interaction": ("/params/content/interaction_id",),
        "kaiak/stream/file_modification": ("/params/content/proposal_id",),
        "kaiak/client/user_message": ("/params/payload/request_id",),
        "*": ("/params/session_id", "/params/request_id"),
    },
    works={COMMAND: (_SESSION,)},
    steers={"kaiak/client/user_message": ("/params/payload/request_id",)},
    subject={COMMAND: "/params/command"},
    final=("exit",),  # a server that follows LSP that far
)  # fmt: skip
