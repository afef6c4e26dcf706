"""Conversation with a server of spec 4 (Kaiak), and the responses of the host to its requests for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.protocols.rules import Clause
from ext_sdk.core.wire.json_pointer import resolve

from .steps import (
    CODES,
    INVALID_PARAMS,
    ODD_ID,
    UNKNOWN_METHOD,
    Await,
    AwaitAnswer,
    Conversation,
    Say,
    Session,
    at_fault,
    call,
    expect,
    expect_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .steps import Message

NOT_FOUND, CONFIGURATION, IN_USE = -32003, -32014, -32016
_COMMAND = "workspace/executeCommand"
_SESSION = "$session"
_ASKS = "kaiak/stream/user_interaction"
# The last notification, and the response after it.
_ABOUT = tuple(expect("about", f"$/params/{name}", f"/result/{name}") for name in ("session_id", "request_id"))
_UNKNOWN = call(ODD_ID, "no/such/method")


def command(id: int, name: str, **argument: object) -> Message:
    """Return a request for one of the three commands."""
    return call(id, _COMMAND, command=f"kaiak/{name}", arguments=[argument])


def configure(id: int, folder: str) -> Message:
    """Return a request to work in a folder."""
    return command(id, "configure", configuration={"workspace": {"working_dir": folder}}, reset_existing=False)


def fix(id: int, session: str) -> Message:
    """Return a request to fix the incidents of the profile."""
    return command(id, "generate_fix", session_id=session, incidents="$incidents")


def approve(asked: Message, _: Mapping[str, object]) -> Iterator[Message]:
    """Approve an interaction. The specification does not define the message; this is that of the real server."""
    session, interaction = (resolve(asked, f"/params/{place}") for place in ("session_id", "content/interaction_id"))
    payload = {"request_id": interaction, "action": "allow_once"}
    if isinstance(session, str) and isinstance(interaction, str):
        id = f"reply to {interaction}"
        yield call(id, "kaiak/client/user_message", session_id=session, kind="approval", payload=payload)


KAIAK = Conversation(
    {"incidents": "incidents to fix, in the working directory"},
    CODES
    | {
        "configuration": Clause("1. configure", "A workspace directory that does not exist is -32014."),
        "created": Clause("Session Lifecycle", "generate_fix with an unknown session_id creates the session."),
        "about": Clause(
            "Streaming Notifications", "They name the session and the request of the call that they belong to."
        ),
        "in-use": Clause("Concurrent Access Control", "To use an active session is -32016."),
        "released": Clause("Concurrent Access Control", "A session is released after completion."),
        "not-found": Clause("3. delete_session", "To delete an unknown session is -32003."),
    },
    (
        Session(
            (
                Say(configure(1, "$workdir/no-such-folder"), (expect_error("configuration", CONFIGURATION),)),
                Say(configure(2, "$workdir"), clause="configure"),
                Say(
                    call(3, _COMMAND, command="kaiak/configure", arguments=[]),
                    (expect_error("invalid-params", INVALID_PARAMS),),
                ),
                Say(_UNKNOWN, (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Say(fix(5, _SESSION), waits=False),
                Await(_ASKS, after=5, name="asked"),
                # The session is in use while the first request waits for its approval.
                Say(fix(6, "$asked/params/session_id"), (expect_error("in-use", IN_USE),), client=2, holds=True),
                AwaitAnswer(5, (expect("created", _SESSION, "/result/session_id"), *_ABOUT)),
                Say(fix(7, _SESSION), (expect("released", _SESSION, "/result/session_id"),), clause="fix"),
                Say(command(8, "delete_session", session_id=_SESSION, force=False), clause="delete"),
                Say(
                    command(9, "delete_session", session_id="no-such-session", force=False),
                    (expect_error("not-found", NOT_FOUND),),
                ),
            ),
            replies={_ASKS: approve},
            lingers=True,
        ),
        *at_fault(probe=_UNKNOWN),
    ),
)
