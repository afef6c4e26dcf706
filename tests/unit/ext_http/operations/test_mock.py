"""Arguments of the mock operations, and what a mock that cannot be started reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.operations.mock import MockStart, MockStop, MockVerify, create_mock, mock_stop
from ext_sdk import InvalidArgs, OperationFailed
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

ROUTE = {"path": "/a", "answer": {}}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"routes": [ROUTE, ROUTE]}, "occurs twice"),
        ({"routes": [ROUTE], "otherwise": {"text": "$(path.a)"}}, "otherwise: "),
        ({"routes": []}, "routes"),
    ],
)
def test_routes_must_be_distinct_and_templates_valid(arguments: object, problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem):
        validate(MockStart, arguments)


def test_an_order_requires_two_calls() -> None:
    with pytest.raises(InvalidArgs, match="expected two or more calls"):
        validate(MockVerify, {"inOrder": True, "calls": [{"path": "/a"}]})


def test_a_port_in_use_is_reported_with_the_mock_that_holds_it(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    first = create_mock(validate(MockStart, {"routes": [ROUTE]}), context)
    try:
        with pytest.raises(OperationFailed) as failed:
            create_mock(validate(MockStart, {"routes": [ROUTE], "port": first.server.port}), context)
        assert f"mock 'mock' of workdir {tmp_path} listens on it" in failed.value.error
    finally:
        first.close()


def test_a_missing_mock_can_be_ignored(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    assert mock_stop(validate(MockStop, {"ignoreMissing": True}), context).success
    with pytest.raises(OperationFailed, match="mock 'mock' is not running"):
        mock_stop(validate(MockStop, {}), context)
