"""Sessions of ext-kubernetes, with their own control plane, whose nodes and pods are simulated by kwok."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml

from cassettes.session import INITIALIZE, SHUTDOWN, Session, execute

if TYPE_CHECKING:
    from cassettes.session import Step

TASK = Path(__file__).parents[1] / "docs" / "examples" / "eval" / "create-pod" / "task.yaml"
PASSWORD = "correct-horse-battery-staple"  # noqa: S105 - a sample; a test checks that no cassette contains it
PHASES = ("setup", "verify", "cleanup")

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: nginx}
spec:
  containers:
    - {name: nginx, image: "nginx:1.29"}
"""
DEPLOYMENT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {greeting: hello}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "nginx:1.29", ports: [{containerPort: 80}]}
"""
CRASHING = """\
apiVersion: v1
kind: Pod
metadata: {name: crashing}
spec:
  containers:
    - {name: main, image: "busybox:1.36", command: [sh, -c, "echo no database; exit 3"]}
"""
SERVER = """\
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  containers:
    - {name: main, image: "busybox:1.36", command: [sh, -c, "echo ready; sleep 3600"]}
"""
KUBECONFIG = f"""\
apiVersion: v1
kind: Config
current-context: staging
clusters:
  - {{name: staging, cluster: {{server: "https://staging.example.com:6443"}}}}
  - {{name: production, cluster: {{server: "https://production.example.com:6443"}}}}
contexts:
  - {{name: staging, context: {{cluster: staging, user: ada, namespace: web}}}}
  - {{name: production, context: {{cluster: production, user: ada}}}}
users:
  - {{name: ada, user: {{token: {PASSWORD}}}}}
"""


def steps_of(task: Path, agent: dict[str, str], work: list[Step]) -> list[Step]:
    """Return the requests of an eval task, in the order in which a host sends them.

    Args:
        task: file, in the form of mcpchecker.
        agent: its prompt and output, sent in verify.
        work: steps between setup and verify: those of the agent.
    """
    spec = yaml.safe_load(task.read_text())["spec"]
    found: dict[str, list[Step]] = {phase: [] for phase in PHASES}
    for phase in PHASES:
        context = {"agent": agent} if phase == "verify" else {}
        for step in spec[phase]:
            ((name, args),) = step.items()
            found[phase].append(execute(name.removeprefix("kubernetes."), args, phase=phase, **context))
    return [INITIALIZE, *found["setup"], *work, *found["verify"], *found["cleanup"], SHUTDOWN]


def prompt_of(task: Path) -> str:
    """Return the prompt of an eval task."""
    return cast("str", yaml.safe_load(task.read_text())["spec"]["prompt"]["inline"])


def on_cluster(*steps: Step, namespace: str, files: dict[str, str] | None = None) -> Session:
    """Return a session on a cluster, in a namespace that is created first and deleted at the end."""
    begin = execute("create-namespace", {"name": namespace})
    end = execute("delete-namespace", {"name": namespace, "timeout": "25s"}, phase="cleanup")
    return Session([INITIALIZE, begin, *steps, end, SHUTDOWN], files or {}, cluster=True)


SESSIONS = {
    # The task of docs/kubernetes-tasks.md. The second `apply` acts as the agent and creates a pod.
    "kubernetes/create-pod": Session(
        steps_of(
            TASK,
            {"prompt": prompt_of(TASK), "output": "The pod nginx runs in test-ns."},
            [execute("apply", {"file": "pod.yaml"})],
        ),
        {"pod.yaml": POD},
        cluster=True,
    ),
    # Operations on objects in the middle of a task.
    "kubernetes/objects": on_cluster(
        execute("apply", {"file": "web.yaml", "wait": True, "timeout": "25s"}),
        execute("get", {"resource": "deploy/web", "outputs": {"replicas": ".status.readyReplicas"}, "as": "web"}),
        execute("patch", {"resource": "cm/settings", "patch": {"data": {"greeting": "ready: ${web.replicas}"}}}),
        execute("assert", {"resource": "cm/settings", "expected": {"data": {"greeting": "ready: 2"}}}, phase="verify"),
        execute("scale", {"resource": "deploy/web", "replicas": 3, "timeout": "25s"}),
        execute("rollout", {"resource": "deploy/web", "action": "restart", "timeout": "25s"}),
        execute("rollout", {"resource": "deploy/web", "action": "status", "timeout": "25s"}, phase="verify"),
        execute("wait", {"resource": "pods", "selector": "app=web", "for": "ready", "timeout": "25s"}, phase="verify"),
        execute("label", {"resource": "deploy/web", "labels": {"checked": "yes"}}),
        execute("delete", {"resource": "deploy/web", "timeout": "25s"}, phase="cleanup"),
        execute("assert", {"resource": "deploy/web", "absent": True}, phase="verify"),
        namespace="objects",
        files={"web.yaml": DEPLOYMENT},
    ),
    # All failures that the author of a task meets, with their messages.
    "kubernetes/failing": on_cluster(
        execute("apply", {"file": "crashing.yaml"}),
        execute("condition", {"resource": "pod/crashing", "conditionType": "Ready", "timeout": "3s"}, phase="verify"),
        execute("wait", {"resource": "pod/crashing", "for": "ready", "timeout": "25s"}, phase="verify"),
        execute("condition", {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "300ms"}, phase="verify"),
        execute("get", {"resource": "deployment/web"}, phase="verify"),
        execute("get", {"resource": "deplyoment/web"}, phase="verify"),
        execute("create", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {"b": "c"}}),
        execute(
            "apply", {"manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"node": "n"}}}
        ),
        execute(
            "auth-can-i",
            {"verb": "delete", "resource": "nodes", "as": "ada", "expect": {"allowed": True}},
            phase="verify",
        ),
        execute("aply", {"file": "crashing.yaml"}),
        namespace="failing",
        files={"crashing.yaml": CRASHING},
    ),
    # A password that is created, read and checked, and never written to disk.
    "kubernetes/secrets": on_cluster(
        execute("create-secret", {"name": "login", "literals": {"user": "ada", "password": PASSWORD}}),
        execute("create-secret", {"name": "files", "files": ["password.txt"]}),
        execute(
            "get",
            {
                "resource": "secret/login",
                "outputs": {"password": {"path": ".data.password", "decode": "base64"}, "type": ".type"},
                "as": "login",
            },
        ),
        execute("create-configmap", {"name": "notes", "literals": {"user": "ada"}}),
        execute("assert", {"resource": "secret/login", "expected": {"type": "Opaque"}}, phase="verify"),
        namespace="secrets",
        files={"password.txt": PASSWORD},
    ),
    # Containers of pods. Pods of kwok run commands, and their logs are the output of their `echo` commands.
    "kubernetes/pods": on_cluster(
        execute("apply", {"file": "server.yaml", "wait": True, "timeout": "25s"}),
        execute(
            "exec",
            {
                "resource": "pod/server",
                "command": ["sort"],
                "stdin": "milk\nbread\n",
                "expect": {"stdout": {"equals": "bread\nmilk\n"}},
                "as": "list",
            },
        ),
        execute("exec", {"resource": "pod/server", "script": "exit 3", "expect": {"exitCode": 3}}, phase="verify"),
        execute("logs", {"resource": "pod/server", "expect": {"contains": "ready"}, "timeout": "5s"}, phase="verify"),
        execute(
            "run-job",
            {"name": "sum", "image": "busybox:1.36", "command": ["sh", "-c", "echo 4; exit 0"], "timeout": "25s"},
            phase="verify",
        ),
        execute("events", {"resource": "pod/server", "reason": "Scheduled", "count": 1}, phase="verify"),
        namespace="pods",
        files={"server.yaml": SERVER},
    ),
    # Used by `make test` with the real extension and without a cluster: its HTTP traffic is recorded, too.
    "kubernetes/offline": Session(
        [
            INITIALIZE,
            execute("create-namespace", {"name": "offline"}),
            execute("apply", {"file": "web.yaml"}),
            execute("condition", {"resource": "deploy/web", "conditionType": "Available", "timeout": "25s"}),
            execute("get", {"resource": "deploy/web", "outputs": {"replicas": ".status.readyReplicas"}, "as": "web"}),
            execute("patch", {"resource": "cm/settings", "patch": {"data": {"greeting": "ready: ${web.replicas}"}}}),
            execute("assert", {"resource": "cm/settings", "expected": {"data": {"greeting": "ready: 2"}}}),
            execute("condition", {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "300ms"}),
            execute("create-secret", {"name": "login", "literals": {"user": "ada", "password": PASSWORD}}),
            execute("wait", {"resource": "pods", "selector": "app=web", "for": "ready", "timeout": "25s"}),
            execute("delete", {"resource": "deploy/web", "timeout": "25s"}, phase="cleanup"),
            execute("assert", {"resource": "deploy/web", "absent": True}, phase="cleanup"),
            execute("delete-namespace", {"name": "offline", "wait": False}, phase="cleanup"),
            SHUTDOWN,
        ],
        {"web.yaml": DEPLOYMENT},
        cluster=True,
        http=True,
    ),
    # A task that was written for mcpchecker's own extension, unchanged.
    "kubernetes/drop-in": Session(
        [
            INITIALIZE,
            execute("createNamespace", {"prefix": "eval"}),
            execute(
                "create",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "nginx", "namespace": "default"},
                    "spec": {"containers": [{"name": "nginx", "image": "nginx:1.29"}]},
                },
            ),
            execute(
                "wait",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "nginx", "namespace": "default"},
                    "condition": "Ready",
                    "timeout": "25s",
                },
                phase="verify",
            ),
            execute(
                "authCanI",
                {"verb": "get", "resource": "pods", "namespace": "default", "as": "system:serviceaccount:default:ada"},
                phase="verify",
            ),
            execute(
                "delete",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "nginx", "namespace": "default"},
                    "ignoreNotFound": True,
                },
                phase="cleanup",
            ),
            execute("deleteGeneratedNamespaces", None, phase="cleanup"),
            SHUTDOWN,
        ],
        cluster=True,
    ),
    # Contexts and clusters: no cluster is contacted, and credentials are not shown.
    "kubernetes/contexts": Session(
        [
            INITIALIZE,
            execute("listContexts", None),
            execute("getCurrentContext", {}),
            execute("viewConfig", {"minify": True}),
            execute("list-contexts", {}),
            execute("current-context", {}),
            execute("view-config", {}),
            SHUTDOWN,
        ],
        kubeconfig=KUBECONFIG,
    ),
    "kubernetes/one-shot": Session(
        [execute("get", {"resource": "ns/default", "outputs": {"phase": ".status.phase"}})], cluster=True
    ),
}
