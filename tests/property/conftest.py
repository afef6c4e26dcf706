"""How hypothesis runs here: the same examples every time, and no limit on how long one takes, or takes to be made."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
