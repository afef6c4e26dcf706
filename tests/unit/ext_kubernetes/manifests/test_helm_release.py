"""Revisions in the output of helm; tests/unit/ext_kubernetes/operations/test_helm.py runs a program."""

from __future__ import annotations

import msgspec

from ext_kubernetes.manifests.helm_release import Revision


def test_a_revision_is_read_from_the_output_of_helm_history() -> None:
    output = (
        '[{"revision":1,"updated":"2026-01-01T00:00:00Z","status":"superseded","chart":"web-1.2.2","app_version":"8",'
        '"description":"Install complete"},{"revision":2,"status":"pending-upgrade","chart":"web-1.2.3"}]'
    )
    first, second = msgspec.json.decode(output, type=list[Revision])
    assert str(first) == "1: superseded, web-1.2.2, Install complete"
    assert first.outputs("web", "shop") == {
        "name": "web",
        "namespace": "shop",
        "status": "superseded",
        "revision": 1,
        "chart": "web-1.2.2",
        "appVersion": "8",
        "description": "Install complete",
    }
    assert second.state == "pending-upgrade: revision 2, web-1.2.3"
    assert str(second) == "2: pending-upgrade, web-1.2.3"
