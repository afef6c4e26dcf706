"""A test with a recorded child. It is recorded by: pytest --record-mode=once docs/examples/test_greeter.py."""

import pytest

from ext_recorder.plugin.child import RecordedChild


@pytest.mark.recorded("python", "docs/examples/greeter.py")
def test_somebody_is_greeted(recorded_child: RecordedChild) -> None:
    recorded_child.request("initialize", {"protocolVersion": "0.0.1"})
    params = {"operation": "greet", "args": {"name": "Ada"}, "context": {"workdir": ".", "phase": "setup"}}
    assert recorded_child.request("execute", params) == {
        "success": True,
        "message": "Hello, Ada!",
        "outputs": {"name": "Ada", "letters": "3"},
    }
