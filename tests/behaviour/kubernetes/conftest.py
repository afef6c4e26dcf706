from __future__ import annotations

from tests.support.ext_kubernetes import api, kube, start

__all__ = ["api", "kube", "start"]
