"""The tests on a live cluster, looked at from here: they run elsewhere and forget no operation."""

from __future__ import annotations

import ast
from pathlib import Path

from ext_kubernetes.extension import MODULES

LIVE = Path(__file__).parents[2] / "live"
CALLS = frozenset({"ok", "failed", "result", "start"})  # of tests/live/kubernetes.py


def called(path: Path) -> set[str]:
    """The operations that a module of tests calls by name."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args)
    return {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in CALLS
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


def test_every_operation_has_a_live_test() -> None:
    tested: set[str] = set().union(*map(called, LIVE.glob("test_kubernetes_*.py")))
    assert [name for name in MODULES if name not in tested] == []
