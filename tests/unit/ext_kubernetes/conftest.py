from __future__ import annotations

from tests.support.ext_kubernetes import _shared, api, kube, own_kube, start

__all__ = ["_shared", "api", "kube", "own_kube", "start"]
