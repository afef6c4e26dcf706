"""Every way to call an operation with `dryRun`, on a namespace with the ConfigMap and the Secret `one`."""

from __future__ import annotations

Args = dict[str, object]

CONFIG: Args = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
SECRET: Args = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": "b"}}
CHANGED: Args = CONFIG | {"data": {"a": "c"}}
NEW: Args = CONFIG | {"metadata": {"name": "new"}}
DRY_RUNS: list[tuple[str, Args]] = [
    ("apply", {"manifest": [CHANGED, NEW], "force": True}),
    ("create", {"manifest": NEW}),
    ("create", NEW),
    ("replace", {"manifest": CHANGED}),
    ("replace", CHANGED),
    ("patch", {"resource": "cm/one", "patch": {"data": {"a": "c"}}}),
    ("patch", {"resource": "cm/one", "patch": [{"op": "remove", "path": "/data"}]}),
    ("create-secret", {"name": "new", "literals": {"a": "c"}}),
    ("create-secret", {"name": "one", "literals": {"a": "c"}, "replace": True}),
    ("create-configmap", {"name": "new", "literals": {"a": "c"}}),
    ("create-configmap", {"name": "one", "literals": {"a": "c"}, "replace": True}),
    ("delete", {"resource": "cm/one"}),
    ("delete", {"resource": "cm/one", "gracePeriod": 0, "propagation": "Orphan"}),
    ("delete", {"kind": "ConfigMap", "metadata": {"name": "one"}, "wait": True}),
    ("delete", {"resource": "cm", "all": True}),
    ("delete", {"resource": "cm", "fieldSelector": "metadata.name=one"}),
    ("delete", {"manifest": [CONFIG, SECRET]}),
]
