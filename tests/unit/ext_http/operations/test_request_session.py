"""Operation `session`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.client.settings import Sessions
from ext_http.operations.request import SessionArgs, session
from ext_sdk import InvalidArgs
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_http import Extension


def test_settings_add_up_until_the_session_is_forgotten(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    session(validate(SessionArgs, {"name": "a", "baseUrl": "http://b/", "headers": {"X": "1"}}), context)
    result = session(validate(SessionArgs, {"name": "a", "secretHeaders": {"Y": "value-of-y"}}), context)
    assert result.message == "session 'a': baseUrl http://b/; headers X, Y"
    stored = context.state(Sessions).get("a")
    assert stored.headers == {"X": "1", "Y": "value-of-y"}
    assert stored.secret_headers == {"y"}
    assert session(validate(SessionArgs, {"name": "a", "forget": True}), context).message == "session 'a': nothing set"


def test_a_wrong_name_of_a_session_is_reported(http: Extension) -> None:
    http.ok("session", name="ada", baseUrl="http://127.0.0.1:1")
    error = http.failed("request", url="/me", session="adda").error
    assert "without a baseUrl; session 'adda' has none in this workdir and scope: did you mean 'ada'?" in error


@pytest.mark.parametrize("members", [{"baseUrl": "/a"}, {"headers": {"X": "a\nb"}}])
def test_invalid_settings_are_refused(members: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InvalidArgs):
        session(validate(SessionArgs, {"name": "a", **members}), context_in(tmp_path))
