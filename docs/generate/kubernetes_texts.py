"""Outputs, causes of failures and further examples of ext-kubernetes, for its reference page.

An output whose name ends with `?` is not always present. Tests run all examples and compare the outputs.
"""

from __future__ import annotations

from ext_kubernetes.config import ClusterArgs

# Arguments of every operation, and the section that describes them.
COMMON = ClusterArgs
COMMON_TEXT = """\
Every operation also accepts these arguments; `list-contexts`, `current-context` and `view-config` only the last two.
Operations act as the configured user, who created what the agent works on; `asUser` shows what another user may do:

```yaml
- kubernetes.get: {resource: secrets, asUser: "system:serviceaccount:web:reader"}
```

An empty `asUser`, `context` or `kubeconfig` is refused, for example if it is a reference without a value.

With `expect: {failure: forbidden}`, an operation that has this argument succeeds only if the API server refuses it, for
each of its objects; with `dryRun: true`, nothing changes if it does not. A refusal because of the test itself does not
count: your user may not act as another one, no credentials were sent, the namespace is being deleted, or the namespace
or service account does not exist.

```yaml
- kubernetes.patch:
    resource: deploy/web
    patch: {spec: {replicas: 9}}
    dryRun: true
    asUser: "system:serviceaccount:web:reader"
    expect: {failure: forbidden}
```

[`auth-can-i`](#auth-can-i) checks a permission without acting. For an agent that has the rights of a service account,
[`create-token`](#create-token) writes a kubeconfig.
"""

IDENTITY = {
    "name": "name of the object",
    "namespace": "namespace of the object; empty for a cluster-wide kind",
    "uid": "unique id of the object",
    "resourceVersion": "stored version of the object",
}
ONE = {f"{name}?": f"{text}, if there is one object" for name, text in IDENTITY.items()}
SENT = {"count": "number of objects", "resources": "each object with its result, one per line"} | ONE
APPLIED = SENT | {
    "created": "number of created objects",
    "configured": "number of changed objects",
    "unchanged": "number of unchanged objects",
}
DONE = {"done": "`true`; `false` if the time was over, with `onTimeout: ok`"}
DONE_IF_WAITED = {"done?": "as in `wait`, if it was waited for"}
LEFT = {"left?": "objects that still exist, one per line, if the wait did not succeed"}
GENERATED = (
    {"count": "number of deleted namespaces", "namespaces?": "their names, one per line, if there are any"}
    | DONE_IF_WAITED
    | LEFT
)
ACCESS = {
    "allowed?": "`true` or `false`, if a verb is given",
    "reason?": "reason given by the server, if a verb is given",
    "count?": "number of rules, if `list` is given",
    "rules?": "the rules, one per line, if `list` is given",
    "incomplete?": "`true` if the server cannot list all rules, if `list` is given",
}
FAILED = {
    "status?": "last seen state, if the wait did not succeed",
    "attempts?": "number of reads, if the wait did not succeed",
}
REPORT = {
    "reportFile?": "path of the complete failure report, if the wait did not succeed and there is an object",
    "storyFile?": "previous name of `reportFile`",
}
SECONDS = {"seconds": "duration in seconds"}
WAITED = (
    SECONDS
    | DONE
    | {"count": "number of objects at the end", "status": "last seen state", "attempts?": FAILED["attempts?"]}
    | REPORT
)
CHANGED = (
    ONE
    | {"count": "number of objects", "changed": "number of changed objects"}
    | FAILED
    | {"seconds?": "duration in seconds, if the wait did not succeed"}
    | DONE_IF_WAITED
    | REPORT
)
IGNORED = {
    "count?": "0, if the object is missing and that is ignored",
    "changed?": "0, if the object is missing and that is ignored",
}
NODES = {
    "count": "number of nodes",
    "changed": "number of nodes whose state was changed",
    "nodes": "names of the nodes, one per line",
}
CONTEXTS = {"current": "current context", "count": "number of contexts", "contexts": "their names, one per line"}
CURRENT = {
    "context": "name of the context",
    "cluster": "name of its cluster",
    "user": "name of its user",
    "namespace": "its namespace; may be empty",
}
CONFIG = {"config": "kubeconfig as YAML, with credentials redacted"}
HELM = {"stdout": "standard output of helm", "stderr": "standard error of helm, such as warnings"}
RELEASE = {
    "name": "name of the release",
    "namespace": "its namespace",
    "status": "status of the release: `deployed`",
    "revision": "revision of the release",
}
UNREADY = {
    "attempts?": FAILED["attempts?"],
    "seconds?": "duration in seconds, if the wait did not succeed",
    **DONE_IF_WAITED,
    **REPORT,
}
CHART = (
    {name: RELEASE[name] for name in ("name", "namespace")}
    | {f"{name}?": RELEASE[name] for name in ("status", "revision")}
    | {f"{name}?": f"{text}; missing while helm runs, with `onTimeout: ok`" for name, text in HELM.items()}
    | UNREADY
)
CURRENT_REVISION = {
    "chart": "chart with its version: `web-1.2.3`",
    "appVersion": "version of the application",
    "description": "description of the revision: `Upgrade complete`",
}
UNINSTALLED = {f"{name}?": f"{text}; missing while it runs" for name, text in HELM.items()} | DONE_IF_WAITED | LEFT
RELEASES = {"count": "number of releases", "names": "their names, one per line", "releases": "the releases as JSON"}

CREATED_NAMESPACE = (
    IDENTITY
    | {"namespace": "name of the namespace", "created": "`false` if it existed, with `ifExists: use`"}
    | DONE
    | LEFT
)

OUTPUTS = {
    "create-namespace": CREATED_NAMESPACE,
    "delete-generated-namespaces": GENERATED,
    "delete-namespace": {"namespace": "name of the namespace"} | DONE_IF_WAITED | LEFT,
    "apply": APPLIED
    | DONE_IF_WAITED
    | FAILED
    | {"seconds?": "duration in seconds, if the wait did not succeed"}
    | REPORT,
    "create": SENT,
    "replace": SENT,
    "create-secret": IDENTITY,
    "create-configmap": IDENTITY,
    "get": ONE
    | {
        "found": "`true` if there is an object",
        "count?": "number of objects, if only a kind is given",
        "names?": "names of the objects, one per line, if only a kind is given",
        "NAME?": "value of the JSONPath, if `outputs` has this name",
    },
    "patch": {f"{name}?": f"{text}, unless it was missing and ignored" for name, text in IDENTITY.items()} | IGNORED,
    "delete": {"count": "number of deleted objects", "resources": "their kinds and names, one per line"}
    | DONE_IF_WAITED
    | LEFT,
    "condition": WAITED
    | {
        "status": "status of the condition; if the wait did not succeed, the last seen state",
        "reason?": "reason of the condition, if it exists",
        "message?": "message of the condition, if it exists",
    },
    "wait": WAITED | ONE | {"value?": "the value, if `jsonPath` is given"},
    "stable": SECONDS
    | DONE
    | {"changes": "number of changes of the state", "count": "number of objects at the end"}
    | FAILED
    | REPORT,
    "snapshot": {
        "name": "name of the snapshot",
        "namespace": "the namespaces, one per line; empty for all, and for cluster-wide kinds",
        "count": "number of objects",
    },
    "assert-changes": {
        "added": "names of new objects, one per line, such as configmap/settings",
        "changed": "names of changed objects, one per line",
        "removed": "names of missing objects, one per line",
        "count": "number of all changes",
    },
    "assert": SECONDS | DONE | {"count": "number of matching objects"} | FAILED | REPORT | ONE,
    "rollout": {
        "status?": "last seen state, if it was waited for",
        "seconds?": "duration in seconds, if it was waited for",
        "replicas?": "number of pods, if it was waited for",
        "updatedReplicas?": "number of pods with the newest template, if it was waited for",
        "readyReplicas?": "number of ready pods, if it was waited for",
        "availableReplicas?": "number of available pods, if it was waited for",
        "revision?": "revision of a Deployment, if it was waited for, or undone",
        "toRevision?": "revision that was restored, if it was undone",
        "restartedAt?": "time of the restart, if it was restarted",
        "paused?": "`true` if it is paused, if it was paused or resumed",
        "revisions?": "revisions with their images, one per line, if the history was requested",
        "current?": "newest revision, if the history was requested",
        "count?": "number of revisions, if the history was requested",
        "attempts?": FAILED["attempts?"],
    }
    | DONE_IF_WAITED
    | REPORT,
    "scale": {
        "replicas?": "new number of replicas, unless the object was missing and ignored",
        "previous?": "previous number of replicas, unless the object was missing and ignored",
        "seconds?": "duration in seconds, if `wait` is true",
    }
    | DONE_IF_WAITED
    | FAILED
    | REPORT,
    "label": CHANGED,
    "annotate": CHANGED,
    "cordon": NODES,
    "uncordon": NODES,
    "taint": NODES | {"taints?": "taints of the node after the change, one per line, if there is one node"},
    "drain": NODES
    | {
        "evicted": "evicted pods as NAMESPACE/NAME, one per line",
        "left": "pods that stay on the nodes (of DaemonSets, and static ones), one per line",
        "seconds?": "duration in seconds, unless a pod must not be evicted",
        "done?": DONE["done"],
    },
    "events": {
        "count": "number of events",
        "events": "the events, one per line, the latest first; each names its object unless `resource` names it",
        "reasons": "their reasons, separated by commas",
    }
    | DONE_IF_WAITED
    | FAILED
    | {"seconds?": "duration in seconds, if the wait did not succeed"},
    "diagnostics": {
        "file": "path of the file",
        "problems": "objects that are not ready, restarted containers and warnings, one per line, up to 20",
        "objects": "number of objects, without pods and events",
        "pods": "number of pods",
        "events": "number of events",
    },
    "exec": {
        "exitCode": "exit code of the command",
        "stdout": "standard output of the command",
        "stderr": "standard error of the command",
        "pod": "name of the pod",
        "container": "name of the container",
    },
    "copy": {
        "files": "number of copied files",
        "pod": "name of the pod",
        "skipped?": "files that were left out, one per line, if they come from a container",
    },
    "port-forward": {
        "localPort?": "local port, if it was started",
        "address?": "loopback address with the local port, if it was started",
        "pod?": "name of the pod, if it was started",
        "port?": "port of the pod, if it was started",
        "count?": "number of stopped forwards, if they were stopped",
        "problems?": "last error of each forward, one per line, if they were stopped",
    },
    "logs": {
        "log": "the logs, one after the other",
        "lines": "number of lines",
        "pods": "names of the pods, one per line",
        "cut?": "containers with a log over the limit, one per line",
        "done?": "as in `wait`, with `follow`",
    },
    "run-job": {
        "name": "name of the Job",
        "namespace": "namespace of the Job",
        "pod": "name of its last pod",
        "log": "log of its last pod; empty if it cannot be read",
        "exitCode?": "exit code of its last pod, if it has ended",
        "succeeded?": "`true` if it was completed, if it has ended",
        "seconds": "duration in seconds",
    }
    | DONE
    | FAILED
    | REPORT,
    "helm-install": CHART,
    "helm-upgrade": CHART,
    "helm-status": {"found": "`true` if the release exists"}
    | {f"{name}?": f"{text}, if it exists" for name, text in (RELEASE | CURRENT_REVISION).items()}
    | {"revisions?": "all revisions, one per line, the latest last, if it exists"}
    | UNREADY,
    "helm-values": {
        "values": "the values as JSON; those with names of secrets are hidden",
        "NAME?": "value of the JSONPath, if `outputs` has this name",
    },
    "helm-rollback": CHART
    | {f"{name}?": text for name, text in CURRENT_REVISION.items()}
    | {"toRevision?": "revision that was returned to; empty if helm does not report it"},
    "helm-list": RELEASES,
    "helm-uninstall": UNINSTALLED,
    "auth-can-i": ACCESS,
    "create-token": {
        "user": "user name of the service account, for `asUser`",
        "namespace": "its namespace",
        "expires": "time at which the token expires",
        "kubeconfig?": "absolute path of the kubeconfig, if it was written",
        "token?": "the token; secret, only for later steps as `${NAME.token}`",
    },
    "list-contexts": CONTEXTS,
    "current-context": CURRENT,
    "view-config": CONFIG,
    "createNamespace": CREATED_NAMESPACE,
    "deleteGeneratedNamespaces": GENERATED,
    "authCanI": ACCESS,
    "listContexts": CONTEXTS,
    "getCurrentContext": CURRENT,
    "viewConfig": CONFIG,
    "helmInstall": CHART,
    "helmList": RELEASES,
    "helmUninstall": UNINSTALLED,
}

# Operations with `expect.failure`.
REFUSABLE = (
    "create-namespace createNamespace delete-namespace apply create replace create-secret create-configmap get patch "
    "delete rollout scale label annotate cordon uncordon taint drain exec copy port-forward logs run-job create-token"
)
OUTPUTS |= {
    name: OUTPUTS[name] | {"failure?": "the refusal, if `expect.failure` is given"} for name in REFUSABLE.split()
}

SERVER = "the API server refuses the request, or does not respond before the deadline"
KIND = "the kind is unknown, or the name is ambiguous"
MISSING = "the object does not exist"
IGNORABLE = f"{MISSING}, unless `ignoreNotFound` is given"
NODE = "a node does not exist, or none has the labels, unless `ignoreNotFound` is given"
NAMESPACE = "no namespace is given, and `create-namespace` failed or created several"
HOPELESS = (
    "the state cannot be reached any more, such as after a crash loop or a failed image pull; the wait ends early"
)
MANIFEST = (
    "a manifest is not valid YAML, or has fields that the kind does not have; with `expand`, a reference has no value"
)
KUBECONFIG = "the kubeconfig cannot be read, or lacks the context"
HELM_FAILS = "helm is not in PATH, or exits with an error, which is in `error`"
HOOKS = "the hooks of the chart do not end before `timeout`"
UNREADY_CHART = "with `wait`, an object of the chart is not ready before `timeout`"
POD = "no pod is running"

FAILURES = {
    "create-namespace": (
        "the namespace exists, unless `ifExists` is `use` or `replace`",
        "an existing namespace is not gone before `timeout`; the error names its pods",
        SERVER,
    ),
    "delete-generated-namespaces": (
        "there are several namespaces, and neither `name`, `names` nor `prefix` is given",
        "a given name was not generated by `create-namespace` in this workdir and scope",
        "with `wait`, a namespace still exists at the deadline; the error names its pods",
        SERVER,
    ),
    "delete-namespace": (
        "the namespace does not exist, unless `ignoreNotFound` is given",
        "with `wait`, it still exists at the deadline; the error names its pods",
        SERVER,
    ),
    "apply": (
        MANIFEST,
        "another field manager owns a field, unless `force` or `clientSide` is given",
        "with `clientSide`: the last applied manifest is not JSON, or the server has no schema (OpenAPI v3)",
        "with `clientSide`: an item of a list lacks the member that identifies it, such as `name` of a container",
        "with `wait`, an object is not ready before the deadline",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "create": (MANIFEST, "an object exists", KIND, NAMESPACE, SERVER),
    "replace": (
        MANIFEST,
        MISSING,
        "`metadata.resourceVersion` is given, and the object has changed",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "create-secret": ("it exists, unless `replace` is given", "a file cannot be read", NAMESPACE, SERVER),
    "create-configmap": ("it exists, unless `replace` is given", "a file cannot be read", NAMESPACE, SERVER),
    "get": (
        f"{MISSING}, unless `ignoreNotFound` is given",
        "a JSONPath finds nothing, and the output has no default",
        "the number of objects does not match `count`, or it is 0 and the namespace does not exist",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "patch": (IGNORABLE, "the patch does not apply", KIND, NAMESPACE, SERVER),
    "delete": (
        f"{MISSING}, unless `ignoreNotFound` is given",
        "an object still exists at the deadline",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "condition": ("the condition does not hold before `timeout`", HOPELESS, KIND, NAMESPACE, SERVER),
    "wait": ("the state is not reached before `timeout`", HOPELESS, KIND, NAMESPACE, SERVER),
    "stable": (
        "the state does not hold for the duration before `timeout`",
        "with `absent`, the namespace does not exist",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "snapshot": (
        "the namespace does not exist",
        "there are more than 20,000 objects, or 64 MiB of them",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "assert-changes": (
        "an object was added, changed or removed that no pattern of `only` or `required` matches",
        "a pattern of `required` matches no change",
        "the snapshot does not exist, or is one of another cluster",
        SERVER,
    ),
    "assert": (
        "the object does not match before `timeout`; the error lists the differences",
        "no object exists, as expected, but neither does the namespace",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "rollout": (
        "the rollout is not complete before `timeout`",
        f"{IGNORABLE}, which `action: status` refuses, because it waits for the object",
        HOPELESS,
        "the previous revision, or the given one, does not exist",
        "it is paused, and a restart or undo is requested",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "scale": (
        IGNORABLE,
        "the kind has no subresource scale",
        "`currentReplicas` is given, and differs",
        "with `wait`, the replicas are not ready before `timeout`",
        KIND,
        NAMESPACE,
        SERVER,
    ),
    "label": (IGNORABLE, "a label has another value, and `overwrite` is false", KIND, NAMESPACE, SERVER),
    "annotate": (IGNORABLE, "an annotation has another value, and `overwrite` is false", KIND, NAMESPACE, SERVER),
    "cordon": (NODE, SERVER),
    "uncordon": (NODE, SERVER),
    "taint": (NODE, "a taint has another value, and `overwrite` is false", "a taint to remove does not exist", SERVER),
    "drain": (
        "a pod has no controller, or data in an emptyDir volume, and `force` or `deleteEmptyDirData` is not given",
        "pods are left before `timeout`, such as those that a disruption budget protects",
        NODE,
        SERVER,
    ),
    "events": (
        "with `count`, the number of events does not match before `timeout`",
        "with `count`, no event exists, as expected, but neither does the namespace",
        NAMESPACE,
        SERVER,
    ),
    "diagnostics": ("the namespace does not exist", "`file` leads out of the workdir", NAMESPACE, SERVER),
    "exec": (
        POD,
        "the exit code is not 0, or the result does not match `expect`",
        "the command cannot be started",
        NAMESPACE,
        SERVER,
    ),
    "copy": (
        POD,
        "tar is missing in the container",
        "the files exceed 64 MiB",
        "a local path leads outside of the workdir",
        NAMESPACE,
    ),
    "port-forward": (POD, "the local port is in use", "the pod has no such port", NAMESPACE, SERVER),
    "logs": (
        "no pods are found",
        "the log does not match `expect`, or does not match before `timeout` with `follow`",
        NAMESPACE,
        SERVER,
    ),
    "run-job": (
        "the result does not match `expect`",
        "a Job of the given name exists, and is not that of a previous step with `onTimeout: ok`",
        "the CronJob in `from` does not exist",
        "the Job is not complete before `timeout`",
        HOPELESS,
        NAMESPACE,
        SERVER,
    ),
    "helm-install": (HELM_FAILS, "the release exists", HOOKS, UNREADY_CHART, HOPELESS, NAMESPACE),
    "helm-upgrade": (
        HELM_FAILS,
        "the release does not exist, unless `install` is given",
        HOOKS,
        UNREADY_CHART,
        HOPELESS,
        NAMESPACE,
    ),
    "helm-status": (
        HELM_FAILS,
        "the release does not exist, unless `absent` is given",
        "the latest revision does not match `expected`, or with `wait` does not match before `timeout`",
        "with `wait`, the last installation, upgrade or rollback has failed, unless `expected` has another status",
        UNREADY_CHART,
        HOPELESS,
        NAMESPACE,
    ),
    "helm-values": (
        HELM_FAILS,
        "the release or the revision does not exist",
        "a JSONPath finds nothing",
        "the values do not match `expected`",
        NAMESPACE,
    ),
    "helm-rollback": (
        HELM_FAILS,
        "the release or the revision does not exist",
        HOOKS,
        UNREADY_CHART,
        HOPELESS,
        NAMESPACE,
    ),
    "helm-list": (HELM_FAILS, NAMESPACE),
    "helm-uninstall": (
        HELM_FAILS,
        "the release does not exist, unless `ignoreNotFound` is given",
        "with `wait`, an object still exists at the deadline",
        NAMESPACE,
    ),
    "create-token": (
        "the service account does not exist",
        "`writeKubeconfig` leads out of the workdir",
        NAMESPACE,
        SERVER,
    ),
    "auth-can-i": (
        "the result differs from `expect`",
        "with `expect`, the server does not have the kind, subresource or verb, which no permission could allow",
        "with `expect: {allowed: false}`, the namespace or service account does not exist",
        SERVER,
    ),
    "list-contexts": (KUBECONFIG,),
    "current-context": (KUBECONFIG,),
    "view-config": (KUBECONFIG,),
}

MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: colours
data:
  main: blue
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: sizes
data:
  main: large
"""

CHART_URL = "oci://registry.example.com/charts/web"
EXPANDED = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: copy}
data: {main: "${old.main}", run: "${random.run}"}
"""

EXAMPLES: dict[str, dict[str, list[tuple[str, dict[str, object]]]]] = {
    "apply": {
        "Several objects, as text": [("apply", {"manifest": MANIFESTS, "namespace": "web"})],
        "As `kubectl apply` does, for an agent that changes the objects with it": [
            ("apply", {"manifest": MANIFESTS, "namespace": "web", "clientSide": True})
        ],
        "References in a manifest": [
            (
                "get",
                {"resource": "configmap/colours", "namespace": "web", "outputs": {"main": ".data.main"}, "as": "old"},
            ),
            ("apply", {"manifest": EXPANDED, "namespace": "web", "expand": True}),
        ],
    },
    "get": {
        "JSONPath of RFC 9535, a default, and a variable for later steps": [
            (
                "get",
                {
                    "resource": "configmap/settings",
                    "outputs": {
                        "colour": "$.data.colour",
                        "sizes": {"path": "$.data.sizes", "default": "none"},
                    },
                    "as": "settings",
                },
            ),
            ("assert", {"resource": "configmap/settings", "expected": {"data": {"colour": "${settings.colour}"}}}),
        ],
        "The number of objects with a label": [
            ("get", {"resource": "pods", "selector": "app=other", "count": 0}),
        ],
        "A part of a value: the registry of an image, and a date as seconds": [
            (
                "get",
                {
                    "resource": "pod/nginx",
                    "outputs": {
                        "registry": {"path": "$.spec.containers[0].image", "filters": [{"split": "/", "index": 0}]},
                        "started": {
                            "path": "$.status.startTime",
                            "filters": [{"date": "rfc3339", "to": "unix"}],
                        },
                    },
                },
            ),
        ],
    },
    "logs": {
        "JSON lines in a log": [
            (
                "logs",
                {
                    "resource": "pod/nginx",
                    "expect": {
                        "format": "jsonLines",
                        "extract": "first",
                        "json": [{"path": "$[?@.level == 'error']", "count": 0}],
                    },
                },
            ),
        ]
    },
    "wait": {
        "A value by JSONPath, and several objects by label": [
            ("wait", {"resource": "pod/nginx", "jsonPath": "{.status.phase}", "value": "Running", "timeout": "20s"}),
        ],
        "Objects of several kinds, or of a category such as `all`": [
            ("wait", {"resource": "deploy,pods", "for": "ready", "timeout": "20s"}),
            ("wait", {"resource": "all", "selector": "app=old", "for": "deleted", "timeout": "20s"}),
        ],
    },
    "assert": {
        "Comparison operators, and an object that must not exist": [
            (
                "assert",
                {
                    "resource": "deploy/web",
                    "expected": {"status": {"readyReplicas": {"$gte": 1}, "updatedReplicas": {"$in": [1, 2]}}},
                },
            ),
            ("assert", {"resource": "pod/missing", "absent": True}),
            ("assert", {"resource": "deploy,svc", "selector": "app=old", "absent": True}),
        ],
        "Length of a list; `containers: []` matches any list, because an empty list is a part of each": [
            ("assert", {"resource": "pod/nginx", "expected": {"spec": {"containers": {"$length": 1}}}}),
        ],
        "Quantities, compared by their amount": [
            (
                "assert",
                {
                    "resource": "node/worker",
                    "expected": {"status": {"allocatable": {"memory": "1024Mi", "cpu": "4000m"}}},
                },
            ),
        ],
    },
    "patch": {
        "An object that may be missing": [
            (
                "patch",
                {"resource": "configmap/optional", "patch": {"data": {"colour": "green"}}, "ignoreNotFound": True},
            ),
        ]
    },
    "assert-changes": {
        "Changes of several namespaces; a snapshot of chosen kinds with another name": [
            ("snapshot", {"name": "before", "namespace": ["web", "default"], "resource": "cm,svc"}),
            ("assert-changes", {"since": "before", "only": ["web/**"]}),
        ]
    },
    "stable": {
        "An object that must not come back": [
            ("stable", {"resource": "pod/missing", "absent": True, "for": "1s", "timeout": "20s"}),
        ]
    },
    "taint": {
        "Remove a taint that may not exist": [
            ("taint", {"node": "worker", "taints": ["dedicated-"], "ignoreNotFound": True}),
        ]
    },
    "drain": {
        "As a setup for a task: the pods of a test cluster may be lost": [
            ("drain", {"node": "worker", "force": True, "deleteEmptyDirData": True, "gracePeriod": 0}),
            ("uncordon", {"selector": "kubernetes.io/os=linux"}),
        ]
    },
    "events": {
        "Events of the pods with a label, whose names are generated": [
            ("events", {"resource": "pods", "selector": "app=web", "type": "Warning", "count": 0, "timeout": "0s"}),
        ]
    },
    "helm-upgrade": {
        "A wait that takes longer than a call may": [
            ("helm-upgrade", {"chart": CHART_URL, "name": "web", "wait": True, "timeout": "25s", "onTimeout": "ok"}),
            ("helm-upgrade", {"chart": CHART_URL, "name": "web", "wait": True, "timeout": "25s"}),
        ]
    },
    "helm-status": {
        "After an agent has upgraded a chart: the objects must be ready, too": [
            (
                "helm-status",
                {"name": "web", "expected": {"chart": {"$matches": "^web-1"}}, "wait": True, "timeout": "25s"},
            ),
        ]
    },
    "helm-values": {
        "A value for later steps": [
            ("helm-values", {"name": "web", "all": True, "outputs": {"replicas": "$.replicas"}, "as": "chart"}),
            ("helm-values", {"name": "web", "expected": {"replicas": {"$gte": 2}}}),
        ]
    },
    "rollout": {
        "Wait for an image that is pulled only at a second attempt": [
            ("rollout", {"resource": "deploy/web", "failFast": False, "timeout": "25s"}),
        ]
    },
}
