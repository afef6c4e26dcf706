"""The dialect of Kaiak's later server: methods of their own, one notification for all that it streams."""

from __future__ import annotations

from .dialect import Dialect

_SESSION = "/params/session_id"

DIALECT = Dialect(
    "kaiak-head",
    "content-length",
    "Kaiak's agent API, as its later server speaks it",
    bound={"kaiak/generate_fix": {"workspace": "/params/agent_config/workspace/working_dir"}},
    volatile={
        "kaiak/generate_fix": ("/result/created_at",),
        "kaiak/delete_session": ("/result/deleted_at", "/result/cleanup_results"),
        "kaiak/client/user_message": ("/params/timestamp", "/result/notification_id"),
        "kaiak/generate_fix/data": ("/params/timestamp", "/params/message_id", "/params/payload"),
    },
    minted={"kaiak/generate_fix": (_SESSION,), "kaiak/delete_session": (_SESSION,)},
    names={
        "": ("/result/session_id", "/result/request_id", "/error/data/session_id"),
        "kaiak/generate_fix/data": ("/params/payload/id",),
        "*": (_SESSION, "/params/request_id", "/params/payload/request_id"),
    },
    works={"kaiak/generate_fix": (_SESSION,)},
    steers={"kaiak/client/user_message": ("/params/payload/request_id",)},
    subject={"kaiak/generate_fix/data": "/params/kind", "kaiak/client/user_message": "/params/kind"},
)
