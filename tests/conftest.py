"""Options of the whole test suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/conformance."""
    group = parser.getgroup("conformance")
    group.addoption("--extension", metavar="COMMAND", help="ask this extension for the clauses of the protocol")
    group.addoption("--profile", metavar="FILE", help="what may be asked of it, as JSON (tests/conformance/profiles)")
