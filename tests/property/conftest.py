"""How hypothesis runs here: the same examples every time, and no limit on how long one takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")
