"""What the operations of ext-kubernetes put out; see `outputs`."""

from __future__ import annotations

IDENTITY = {
    "name": "the object's name",
    "namespace": "its namespace; empty for a kind that has none",
    "uid": "its unique id",
    "resourceVersion": "the version of it that was stored",
}
ONE = {name: f"where it is one object: {text}" for name, text in IDENTITY.items()}
SENT = {"count": "how many objects it was done for", "resources": "each object and what became of it, one a line"} | ONE
GENERATED = {
    "count": "how many were deleted",
    "namespaces": "where there were any: their names, one a line",
}
ACCESS = {
    "allowed": "where a verb is asked about: `true` or `false`",
    "reason": "where a verb is asked about: what the server says",
    "count": "where `list` is given: how many rules apply",
    "rules": "where `list` is given: the rules, one a line",
    "incomplete": "where `list` is given: whether the server knows of more than it can list",
}
CONTEXTS = {"current": "the current context", "count": "how many there are", "contexts": "their names, one a line"}
CURRENT = {"context": "its name", "cluster": "its cluster", "user": "its user", "namespace": "its namespace, if any"}
CONFIG = {"config": "the kubeconfig as YAML, credentials hidden"}

KUBERNETES: dict[str, dict[str, str]] = {
    "create-namespace": IDENTITY | {"namespace": "its name, again"},
    "delete-generated-namespaces": GENERATED,
    "delete-namespace": {"namespace": "its name"},
    "apply": SENT,
    "create": SENT,
    "replace": SENT,
    "create-secret": IDENTITY,
    "create-configmap": IDENTITY,
    "get": {name: f"where it is one object: {text}" for name, text in IDENTITY.items()}
    | {
        "found": "whether there is one",
        "count": "where they are all of a kind: how many",
        "names": "where they are all of a kind: their names, one a line",
        "colour": "where `outputs` has this name, as in the example: what the path found",
    },
    "patch": IDENTITY,
    "delete": {"count": "how many objects were deleted", "resources": "their kinds and names, one a line"},
    "auth-can-i": ACCESS,
    "list-contexts": CONTEXTS,
    "current-context": CURRENT,
    "view-config": CONFIG,
    "createNamespace": IDENTITY | {"namespace": "its name, again"},
    "deleteGeneratedNamespaces": GENERATED,
    "authCanI": ACCESS,
    "listContexts": CONTEXTS,
    "getCurrentContext": CURRENT,
    "viewConfig": CONFIG,
}
