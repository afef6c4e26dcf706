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
APPLIED = SENT | {
    "created": "how many were not there before",
    "configured": "how many were changed",
    "unchanged": "how many were so already",
}
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
SECONDS = {"seconds": "how long it took"}
WAITED = SECONDS | {
    "count": "how many objects there were at the end",
    "status": "what was seen last",
    "attempts": "where it failed: how often it was looked at",
    "storyFile": "where it failed and there is an object: the file with the whole story",
}
CHANGED = ONE | {
    "count": "how many objects there were",
    "changed": "how many were not so before",
    "status": "where it was waited for in vain: what was seen last",
    "attempts": "where it was waited for in vain: how often it was looked at",
    "seconds": "where it was waited for in vain: how long it took",
    "storyFile": "where it was waited for in vain: the file with the whole story",
}
CONTEXTS = {"current": "the current context", "count": "how many there are", "contexts": "their names, one a line"}
CURRENT = {"context": "its name", "cluster": "its cluster", "user": "its user", "namespace": "its namespace, if any"}
CONFIG = {"config": "the kubeconfig as YAML, credentials hidden"}
HELM = {"stdout": "what helm wrote", "stderr": "what helm wrote there, such as warnings"}
CHART = HELM | {"name": "of the release", "status": "of the release: `deployed`", "revision": "of the release"}
RELEASES = {
    "count": "how many there are",
    "names": "their names, one a line",
    "releases": "what helm says of them, JSON",
}

KUBERNETES: dict[str, dict[str, str]] = {
    "create-namespace": IDENTITY | {"namespace": "its name, again"},
    "delete-generated-namespaces": GENERATED,
    "delete-namespace": {"namespace": "its name"},
    "apply": APPLIED,
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
    "condition": WAITED
    | {
        "status": "where there is such a condition: its status; where it failed: what was seen last",
        "reason": "where there is such a condition: its reason",
        "message": "where there is such a condition: what it says",
    },
    "wait": WAITED | ONE | {"value": "where `jsonPath` is given: the value there"},
    "stable": SECONDS
    | {
        "changes": "how often it was another state than before",
        "count": "how many objects there were at the end",
        "status": "where it failed: what was seen last",
        "attempts": "where it failed: how often it was looked at",
        "storyFile": "where it failed and there is an object: the file with the whole story",
    },
    "assert": SECONDS
    | {
        "count": "how many objects look so",
        "status": "where it failed: what was seen last",
        "attempts": "where it failed: how often it was looked at",
        "storyFile": "where it failed and there is an object: the file with the whole story",
    }
    | ONE,
    "rollout": {
        "status": "where it was waited for: what was seen last",
        "seconds": "where it was waited for: how long it took",
        "replicas": "where it was waited for: how many pods there are",
        "updatedReplicas": "where it was waited for: how many are of the newest template",
        "readyReplicas": "where it was waited for: how many are ready",
        "availableReplicas": "where it was waited for: how many are available",
        "revision": "where it was waited for, or undone: of a Deployment, the revision",
        "restartedAt": "where it was restarted: when",
        "paused": "where it was paused or resumed: whether it is paused",
        "revisions": "where the history was asked for: the revisions and their images, one a line",
        "current": "where the history was asked for: the newest revision",
        "count": "where the history was asked for: how many revisions there are",
        "attempts": "where it failed: how often it was looked at",
        "storyFile": "where it failed: the file with the whole story",
    },
    "scale": {
        "replicas": "how many are wanted now",
        "previous": "how many were wanted before",
        "seconds": "where `wait` is true: how long it took",
        "status": "where it failed: what was seen last",
        "attempts": "where it failed: how often it was looked at",
        "storyFile": "where it failed: the file with the whole story",
    },
    "label": CHANGED,
    "annotate": CHANGED,
    "events": {
        "count": "how many there are",
        "events": "the events, one a line, the latest first",
        "reasons": "their reasons, with commas between them",
        "status": "where it failed: what was seen last",
        "attempts": "where it failed: how often it was looked at",
        "seconds": "where it failed: how long it took",
    },
    "exec": {
        "exitCode": "the exit code",
        "stdout": "what it wrote",
        "stderr": "what it wrote there",
        "pod": "the name of the pod",
        "container": "the name of the container",
    },
    "copy": {
        "files": "how many files were copied",
        "pod": "the name of the pod",
        "skipped": "where they come from a container: what was left out, one a line",
    },
    "port-forward": {
        "localPort": "where it is started: the port of this machine",
        "address": "where it is started: the same with the address of the loopback",
        "pod": "where it is started: the name of the pod",
        "port": "where it is started: the port of the pod",
        "count": "where it is stopped: how many were",
        "problems": "where it is stopped: what went wrong last at each, one a line",
    },
    "logs": {
        "log": "the logs, one after the other",
        "lines": "how many lines they have",
        "pods": "the names of the pods, one a line",
        "cut": "where a log is longer than what is read: the containers, one a line",
    },
    "run-job": {
        "name": "the name of the Job",
        "namespace": "its namespace",
        "pod": "the name of its last pod",
        "log": "what its last pod said; empty where that can't be read",
        "exitCode": "where it has ended: the exit code of its last pod",
        "succeeded": "where it has ended: whether it was complete",
        "seconds": "how long it took",
        "status": "where it failed: what was seen last",
        "attempts": "where it failed: how often it was looked at",
        "storyFile": "where it failed: the file with the whole story",
    },
    "helm-install": CHART,
    "helm-upgrade": CHART,
    "helm-list": RELEASES,
    "helm-uninstall": HELM,
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
    "helmInstall": CHART,
    "helmList": RELEASES,
    "helmUninstall": HELM,
}
