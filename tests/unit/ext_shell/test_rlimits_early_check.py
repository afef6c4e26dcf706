"""The check of limits before the manifest is the one of the arguments."""

from __future__ import annotations

import pytest

from ext_shell import check_limits


@pytest.mark.parametrize("cpu", ["0s", "-1s"])
def test_no_cpu_time_is_refused(cpu: str) -> None:
    with pytest.raises(ValueError, match="cpu: expected a duration over 0"):
        check_limits({"cpu": cpu})
    check_limits({"cpu": "1ms"})
    check_limits({"memory": 5})
