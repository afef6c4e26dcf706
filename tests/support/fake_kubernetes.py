"""An API server in memory, on loopback, with faults on demand: what is needed to test a client of Kubernetes offline.

Objects of any kind of KINDS, and of definitions (CRDs) that are created; no controllers, but that a namespace has an
account at once and takes what is in it with it. What the real server answers otherwise is told by tests/live.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
import ssl
import threading
import time
import uuid
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    import trustme

Object = dict[str, Any]


class Kind(NamedTuple):
    """A kind of the server."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)

    @property
    def categories(self) -> list[str]:
        return ["all"] if self.plural in OF_CATEGORY_ALL else []

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


RBAC = "rbac.authorization.k8s.io"
OF_CATEGORY_ALL = {"pods", "services", "deployments", "replicasets", "statefulsets", "jobs"}
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]
KINDS = [
    Kind("", "v1", "Namespace", "namespaces", namespaced=False, short=("ns",)),
    Kind("", "v1", "Node", "nodes", namespaced=False, short=("no",)),
    Kind("", "v1", "ConfigMap", "configmaps", short=("cm",), subresources=()),
    Kind("", "v1", "Secret", "secrets", subresources=()),
    Kind("", "v1", "Pod", "pods", short=("po",), subresources=("status", "log", "exec")),
    Kind("", "v1", "Service", "services", short=("svc",)),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", short=("sa",), subresources=("token",)),
    Kind("", "v1", "Event", "events", short=("ev",), subresources=()),
    Kind("apps", "v1", "Deployment", "deployments", short=("deploy",), subresources=("status", "scale")),
    Kind("apps", "v1", "ReplicaSet", "replicasets", short=("rs",), subresources=("status", "scale")),
    Kind("apps", "v1", "StatefulSet", "statefulsets", short=("sts",), subresources=("status", "scale")),
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions", subresources=()),
    Kind("batch", "v1", "Job", "jobs"),
    Kind("networking.k8s.io", "v1", "Ingress", "ingresses", short=("ing",)),
    Kind(RBAC, "v1", "Role", "roles", subresources=()),
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
]

SWITCH: Object = {  # the definition of a kind of its own
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "switches.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "switches", "kind": "Switch", "shortNames": ["sw"]},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


class Fault(NamedTuple):
    """What happens to the next `times` requests that fit, in place of an answer.

    Attributes:
        method, path: of the requests, the path as a regular expression to be found in it.
        times: how many of them.
        status, reason, message, headers: of the answer; status 0: the connection is closed.
        body: in place of a Status object.
    """

    method: str = ""
    path: str = ""
    times: int = 1
    status: int = 500
    reason: str = "InternalError"
    message: str = "a fault on demand"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


class Asked(NamedTuple):
    """A request that came; a header that came several times has its values on lines of their own."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Failure(Exception):
    """An answer that is a Status object."""

    def __init__(self, status: int, reason: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": status,
        }


class FakeApi:
    """The server; runs within the `with` block.

    Args:
        port: of loopback; 0 for any.
        authority: issues the certificate of a server with TLS; None for a server without TLS.

    Attributes:
        asked: the requests, in their order.
        faults: what goes wrong next; tests append to it.
        aggregated: whether discovery is the aggregated one.
        denied: (verb, plural) that access reviews deny.
        openapi: the document of all API versions.
        token: that requests must have; "" for none.
        logs: what containers have said, by "POD/CONTAINER"; one that is not here has not started.
        commands: what `exec` of a program answers, by its name: of its input, messages with their channels.
        before: called with each request before it is answered.
        job_exit: with which code the pods of new jobs end at once; None: jobs are never begun.
    """

    def __init__(self, port: int = 0, authority: trustme.CA | None = None) -> None:
        self.asked: list[Asked] = []
        self.faults: list[Fault] = []
        self.aggregated = True
        self.denied: set[tuple[str, str]] = set()
        self.openapi: Object = {}
        self.token = ""
        self.logs: dict[str, str] = {}
        self.commands: dict[str, Callable[[bytes], Iterable[tuple[int, bytes]]]] = {}
        self.job_exit: int | None = None
        self.before: Callable[[Asked], object] = lambda _: None
        self.kinds = list(KINDS)
        self.objects: dict[tuple[str, str, str], Object] = {}  # (plural.group, namespace, name)
        self.history: list[tuple[int, str, str, Object]] = []  # (version, event, plural.group, object)
        self.oldest = 0  # version before which watches are too old
        self.changed = threading.Condition()
        self._version = 100
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.api = self
        self._authority = authority
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            plain = self._server.socket
            self._server.socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.ended = False
        for name in ("default", "kube-system"):
            self.put("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.ended = True
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http{'s' if self._authority else ''}://127.0.0.1:{self._server.server_port}"

    def kubeconfig(self, path: Path, namespace: str = "", token: str = "", user: Object | None = None) -> Path:
        """Write a kubeconfig for it, with the context and the user `fake`, and further members of that user."""
        context = {"cluster": "fake", "user": "fake"} | ({"namespace": namespace} if namespace else {})
        cluster = {"server": self.address}
        if self._authority is not None:
            trusted = base64.b64encode(self._authority.cert_pem.bytes()).decode()
            cluster["certificate-authority-data"] = trusted
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "contexts": [{"name": "fake", "context": context}],
            "users": [{"name": "fake", "user": ({"token": token} if token else {}) | (user or {})}],
        }
        new = path.with_name(f"{path.name}.new")  # nobody reads half of one
        new.write_text(json.dumps(content))
        return new.replace(path)

    # --- What tests do behind the client's back ----------------------------------------------------------------------

    def put(self, plural: str, item: Object) -> Object:
        """Store an object as it is, as a controller would."""
        kind = self.find(plural)
        with self.changed:
            item = copy.deepcopy(item)
            metadata = item.setdefault("metadata", {})
            item.setdefault("kind", kind.kind)
            item.setdefault("apiVersion", kind.api_version)
            if kind.namespaced:
                metadata.setdefault("namespace", "default")
            found = self.objects.get(self._key(kind, metadata.get("namespace", ""), metadata["name"]))
            return self._store(kind, item, found)

    def get(self, plural: str, name: str, namespace: str = "default") -> Object | None:
        """An object, or None."""
        kind = self.find(plural)
        with self.changed:
            return self.objects.get(self._key(kind, namespace if kind.namespaced else "", name))

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        kind = self.find(plural)
        with self.changed:
            self._remove(kind, self._found(kind, namespace if kind.namespaced else "", name))

    def find(self, plural: str) -> Kind:
        return next(kind for kind in self.kinds if plural in {kind.plural, f"{kind.plural}.{kind.group}"})

    def requests(self, method: str = "", path: str = "") -> list[Asked]:
        """Those that came, by method and a part of the path."""
        return [one for one in self.asked if method in {"", one.method} and path in one.path]

    # --- The store ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _key(kind: Kind, namespace: str, name: str) -> tuple[str, str, str]:
        return (f"{kind.plural}.{kind.group}", namespace, name)

    def _store(self, kind: Kind, item: Object, found: Object | None) -> Object:
        self._version += 1
        metadata = item["metadata"]
        metadata["resourceVersion"] = str(self._version)
        if found is None:
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            metadata.setdefault("generation", 1)
        elif item.get("spec") != found.get("spec"):
            metadata["generation"] = found["metadata"].get("generation", 1) + 1
        self.objects[self._key(kind, metadata.get("namespace", ""), metadata["name"])] = item
        self._tell(kind, "ADDED" if found is None else "MODIFIED", item)
        if kind.plural == "namespaces" and found is None:
            account = {"metadata": {"name": "default", "namespace": metadata["name"]}}
            self._store(self.find("serviceaccounts"), {"apiVersion": "v1", "kind": "ServiceAccount"} | account, None)
        if kind.plural == "customresourcedefinitions" and found is None:
            self._define(item["spec"])
        if kind.plural == "jobs" and found is None and self.job_exit is not None:
            self._run_job(item, self.job_exit)
        return item

    def _run_job(self, job: Object, code: int) -> None:
        """Do what a job controller and a kubelet would: run a pod to its end."""
        name, namespace = f"{job['metadata']['name']}-x1y2z", job["metadata"]["namespace"]
        (container, *_) = job["spec"]["template"]["spec"]["containers"]
        metadata = {"name": name, "namespace": namespace, "labels": {"job-name": job["metadata"]["name"]}}
        ended = {"name": container["name"], "state": {"terminated": {"exitCode": code}}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [ended]}
        self.logs.setdefault(f"{name}/{container['name']}", "it ran\n")
        self._store(
            self.find("pods"), {"metadata": metadata, "spec": {"containers": [container]}, "status": status}, None
        )
        told = {
            "type": "Failed" if code else "Complete",
            "status": "True",
            "reason": "BackoffLimitExceeded" if code else "",
        }
        job["status"] = {"conditions": [told]}

    def log(self, asked: Asked) -> str:
        """What a container has said. Raises Failure."""
        _, namespace, name, _ = self._route([unquote(part) for part in asked.path.strip("/").split("/")])
        with self.changed:
            self._found(self.find("pods"), namespace, name)
            container = asked.query.get("container", "")
            text = self.logs.get(f"{name}/{container}")
        if text is None:
            told = f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'
            raise Failure(400, "BadRequest", told)
        lines = text.splitlines(keepends=True)
        tail = int(asked.query.get("tailLines", len(lines)))
        return "".join(lines[len(lines) - min(tail, len(lines)) :])[: int(asked.query.get("limitBytes", len(text)))]

    def _define(self, spec: Object) -> None:
        names = spec["names"]
        for version in spec["versions"]:
            short = tuple(names.get("shortNames", ()))
            scope = spec["scope"] == "Namespaced"
            self.kinds.append(Kind(spec["group"], version["name"], names["kind"], names["plural"], scope, short))

    def _tell(self, kind: Kind, event: str, item: Object) -> None:
        self.history.append((self._version, event, f"{kind.plural}.{kind.group}", copy.deepcopy(item)))
        self.changed.notify_all()

    def _remove(self, kind: Kind, item: Object) -> None:
        metadata = item["metadata"]
        if metadata.get("finalizers"):
            metadata["deletionTimestamp"] = "2026-11-21T21:00:00Z"
            self._store(kind, item, item)
            return
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        self.objects.pop(self._key(kind, metadata.get("namespace", ""), metadata["name"]), None)
        self._tell(kind, "DELETED", item)
        if kind.plural == "namespaces":
            for (plural, namespace, _), inner in list(self.objects.items()):
                if namespace == metadata["name"]:
                    self._remove(self.find(plural), inner)

    # --- Requests ----------------------------------------------------------------------------------------------------

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The fault that this request meets, if any; it is used up by one."""
        with self.changed:
            for index, fault in enumerate(self.faults):
                if fault.method in {"", method} and re.search(fault.path, path):
                    if fault.times > 1:
                        self.faults[index] = fault._replace(times=fault.times - 1)
                    else:
                        del self.faults[index]
                    return fault
        return None

    def answer(self, asked: Asked) -> tuple[int, Object]:
        """What a request is answered. Raises Failure."""
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        if asked.path in {"/api", "/apis"}:
            return 200, self._discovery(asked)
        if parts[0] == "openapi":
            return 200, self.openapi
        if parts[0] == "api" and len(parts) == 2:
            return 200, self._resources("", parts[1])
        if parts[0] == "apis" and len(parts) == 3:
            return 200, self._resources(parts[1], parts[2])
        if parts[1] == "authorization.k8s.io":
            return 201, self._review(parts[-1], asked.body)
        kind, namespace, name, sub = self._route(parts)
        with self.changed:
            return _VERBS[asked.method](self, kind, namespace, name, sub, asked)

    def _route(self, parts: list[str]) -> tuple[Kind, str, str, str]:
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        version = parts[1] if parts[0] == "api" else parts[2]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
            namespace, rest = rest[1], rest[2:]
        for kind in self.kinds:
            if (kind.group, kind.version, kind.plural) == (group, version, rest[0]):
                return kind, namespace, rest[1] if len(rest) > 1 else "", "/".join(rest[2:])
        raise Failure(404, "NotFound", "the server could not find the requested resource")

    def _found(self, kind: Kind, namespace: str, name: str) -> Object:
        found = self.objects.get(self._key(kind, namespace, name))
        if found is None:
            qualified = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
            raise Failure(404, "NotFound", f'{qualified} "{name}" not found', name=name, kind=kind.plural)
        return found

    def _get(self, kind: Kind, namespace: str, name: str, sub: str, asked: Asked) -> tuple[int, Object]:
        if name:
            return 200, self._found(kind, namespace, name)
        found = [
            one
            for (plural, where, _), one in sorted(self.objects.items())
            if plural == f"{kind.plural}.{kind.group}"
            and (not namespace or where == namespace)
            and selected(one, asked)
        ]
        metadata = {"resourceVersion": str(self._version)}
        return 200, {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": found}

    def _post(self, kind: Kind, namespace: str, name: str, sub: str, asked: Asked) -> tuple[int, Object]:
        if sub == "eviction":
            self._remove(kind, self._found(kind, namespace, name))
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        item = copy.deepcopy(asked.body)
        metadata = item.setdefault("metadata", {})
        self._check(kind, namespace, item, asked)
        if not metadata.get("name"):
            metadata["name"] = metadata.get("generateName", "") + uuid.uuid4().hex[:5]
        if self._key(kind, namespace, metadata["name"]) in self.objects:
            raise Failure(409, "AlreadyExists", f'{kind.plural} "{metadata["name"]}" already exists')
        return 201, self._kept(kind, item, None, asked)

    def _put(self, kind: Kind, namespace: str, name: str, sub: str, asked: Asked) -> tuple[int, Object]:
        found = self._found(kind, namespace, name)
        item = copy.deepcopy(asked.body)
        self._check(kind, namespace, item, asked)
        version = item["metadata"].get("resourceVersion")
        if version and version != found["metadata"]["resourceVersion"]:
            raise Failure(409, "Conflict", f'Operation cannot be fulfilled on {kind.plural} "{name}": it was modified')
        item["metadata"] = {key: found["metadata"][key] for key in ("uid", "creationTimestamp")} | item["metadata"]
        return 200, self._kept(kind, item, found, asked)

    def _patch(self, kind: Kind, namespace: str, name: str, sub: str, asked: Asked) -> tuple[int, Object]:
        content = asked.headers["content-type"]
        if content == "application/apply-patch+yaml":
            return self._apply(kind, namespace, name, asked)
        found = self._found(kind, namespace, name)
        if content.startswith("application/strategic") and kind not in KINDS:
            raise Failure(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content}")
        item = copy.deepcopy(found)
        if content.startswith("application/json-patch"):
            for operation in asked.body:
                _json_patch(item, operation)
        else:
            item = merged(item, asked.body)
        item = self._kept(kind, item, found, asked)
        if item["metadata"].get("deletionTimestamp") and not item["metadata"].get("finalizers"):
            self._remove(kind, item)
        return 200, item

    def _apply(self, kind: Kind, namespace: str, name: str, asked: Asked) -> tuple[int, Object]:
        self._check(kind, namespace, asked.body, asked)
        found = self.objects.get(self._key(kind, namespace, name))
        manager = asked.query["fieldManager"]
        owners: dict[str, str] = dict((found or {}).get("owners", {}))
        fields = {f".{key}.{inner}" for key in ("data", "spec") for inner in asked.body.get(key, {})}
        for field in sorted(fields):
            value = asked.body[field.split(".")[1]][field.split(".")[2]]
            current = (found or {}).get(field.split(".")[1], {}).get(field.split(".")[2])
            if owners.get(field, manager) != manager and value != current and asked.query.get("force") != "true":
                message = f'conflict with "{owners[field]}" using {kind.api_version}'
                cause = {"reason": "FieldManagerConflict", "message": message, "field": field}
                told = f"Apply failed with 1 conflict: {message}: {field}"
                raise Failure(409, "Conflict", told, causes=[cause])
        item = merged(copy.deepcopy(found or {}), asked.body)
        item["owners"] = owners | dict.fromkeys(fields, manager)
        if item == found:
            return 200, item
        return (200 if found else 201), self._kept(kind, item, found, asked)

    def _delete(self, kind: Kind, namespace: str, name: str, sub: str, asked: Asked) -> tuple[int, Object]:
        if not name:
            _, listed = self._get(kind, namespace, "", "", asked)
            for one in listed["items"]:
                self._remove(kind, one)
            return 200, listed
        found = self._found(kind, namespace, name)
        wanted = ((asked.body or {}).get("preconditions") or {}).get("uid")
        if wanted and wanted != found["metadata"]["uid"]:
            told = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found['metadata']['uid']}"
            raise Failure(409, "Conflict", told)
        # As the real server does: the query counts only if there is no body.
        options = asked.query if asked.body is None else asked.body
        if "dryRun" not in options:
            self._remove(kind, found)
        return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _check(self, kind: Kind, namespace: str, item: Object, asked: Asked) -> None:
        if namespace and self._key(self.find("namespaces"), "", namespace) not in self.objects:
            raise Failure(404, "NotFound", f'namespaces "{namespace}" not found')
        if asked.query.get("fieldValidation") == "Strict":
            known = {"apiVersion", "kind", "metadata", "spec", "status", "data", "binaryData", "stringData", "type"}
            for field in sorted(item.keys() - known):
                told = (
                    f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error'
                )
                raise Failure(400, "BadRequest", f'{told}: unknown field "{field}"')

    def _kept(self, kind: Kind, item: Object, found: Object | None, asked: Asked) -> Object:
        if "dryRun" in asked.query:
            return item
        return self._store(kind, item, found)

    def watch(self, asked: Asked) -> Iterator[Object]:
        """The events of a watch, as they happen, until its time is over."""
        kind, namespace, _, _ = self._route([unquote(part) for part in asked.path.strip("/").split("/")])
        since = int(asked.query.get("resourceVersion") or 0)
        until = time.monotonic() + int(asked.query.get("timeoutSeconds", "60"))
        if 0 < since < self.oldest:
            error = Failure(410, "Expired", f"too old resource version: {since} ({self.oldest})")
            yield {"type": "ERROR", "object": error.body}
            return
        if not since:
            with self.changed:
                _, listed = self._get(kind, namespace, "", "", asked)
                since = self._version
            yield from ({"type": "ADDED", "object": one} for one in listed["items"])
        while not self.ended and time.monotonic() < until:
            with self.changed:
                news = [one for one in self.history if one[0] > since and one[2] == f"{kind.plural}.{kind.group}"]
                if not news:
                    self.changed.wait(max(0.0, until - time.monotonic()))
                    continue
            for version, event, _, item in news:
                since = version
                if (not namespace or item["metadata"].get("namespace") == namespace) and selected(item, asked):
                    yield {"type": event, "object": item}

    # --- Discovery and access ----------------------------------------------------------------------------------------

    def _discovery(self, asked: Asked) -> Object:
        kinds = [kind for kind in self.kinds if bool(kind.group) == (asked.path == "/apis")]
        groups = dict.fromkeys(kind.group for kind in kinds)
        if self.aggregated and "APIGroupDiscoveryList" in asked.headers["accept"]:
            return {"kind": "APIGroupDiscoveryList", "items": [_group(name, kinds) for name in groups]}
        if asked.path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        versions = {name: list(dict.fromkeys(kind.version for kind in kinds if kind.group == name)) for name in groups}
        return {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": name,
                    "versions": [{"version": one} for one in found],
                    "preferredVersion": {"version": found[0]},
                }
                for name, found in versions.items()
            ],
        }

    def _resources(self, group: str, version: str) -> Object:
        found: list[Object] = []
        for kind in self.kinds:
            if (kind.group, kind.version) == (group, version):
                one = {"kind": kind.kind, "namespaced": kind.namespaced, "singularName": kind.kind.lower()}
                names = {"name": kind.plural, "shortNames": list(kind.short), "categories": kind.categories}
                found.append(one | names | {"verbs": VERBS})
                found += [one | {"name": f"{kind.plural}/{sub}"} for sub in kind.subresources]
        return {"kind": "APIResourceList", "resources": found}

    def _review(self, plural: str, body: Object) -> Object:
        if plural == "selfsubjectrulesreviews":
            rule = {"verbs": ["get", "list"], "resources": ["pods"], "apiGroups": [""]}
            return body | {"status": {"resourceRules": [rule], "nonResourceRules": [], "incomplete": False}}
        attributes = body["spec"].get("resourceAttributes", {})
        allowed = (attributes.get("verb"), attributes.get("resource")) not in self.denied
        return body | {"status": {"allowed": allowed, "reason": "" if allowed else "denied by the fake"}}


_VERBS = {
    "GET": FakeApi._get,
    "POST": FakeApi._post,
    "PUT": FakeApi._put,
    "PATCH": FakeApi._patch,
    "DELETE": FakeApi._delete,
}


def _group(name: str, kinds: list[Kind]) -> Object:
    versions: dict[str, list[Object]] = {}
    for kind in kinds:
        if kind.group == name:
            versions.setdefault(kind.version, []).append({
                "resource": kind.plural,
                "responseKind": {"group": "", "version": "", "kind": kind.kind},
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "singularResource": kind.kind.lower(),
                "shortNames": list(kind.short),
                "categories": kind.categories,
                "verbs": VERBS,
                "subresources": [{"subresource": sub} for sub in kind.subresources],
            })  # fmt: skip
    return {
        "metadata": {"name": name},
        "versions": [{"version": version, "resources": found} for version, found in versions.items()],
    }


def selected(item: Object, asked: Asked) -> bool:
    """Whether an object is of the label and field selectors of a request."""
    labels = item["metadata"].get("labels") or {}
    fields = {"metadata.name": item["metadata"]["name"], "metadata.namespace": item["metadata"].get("namespace", "")}
    fields["status.phase"] = (item.get("status") or {}).get("phase", "")
    fields["spec.nodeName"] = (item.get("spec") or {}).get("nodeName", "")
    for term, value in (item.get("involvedObject") or {}).items():
        fields[f"involvedObject.{term}"] = value
    terms = [(term, labels) for term in re.split(r",(?![^(]*\))", asked.query.get("labelSelector", ""))]
    terms += [(term, fields) for term in asked.query.get("fieldSelector", "").split(",")]
    return all(_fits(term.strip(), known) for term, known in terms if term.strip())


def _fits(term: str, known: dict[str, str]) -> bool:
    if match := re.fullmatch(r"([^!=\s]+)\s*(!?=)=?\s*(.*)", term):
        return (known.get(match[1]) == match[3]) == (match[2] == "=")
    if match := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", term):
        return (known.get(match[1]) in [one.strip() for one in match[3].split(",")]) == (match[2] == "in")
    return (term.removeprefix("!") in known) == (not term.startswith("!"))


def merged(item: Object, patch: Object) -> Object:
    """The object with a merge patch (RFC 7386) applied."""
    for key, value in patch.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict):
            item[key] = merged(item[key] if isinstance(item.get(key), dict) else {}, value)
        else:
            item[key] = copy.deepcopy(value)
    return item


def _json_patch(item: Object, operation: Object) -> None:
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    target: Any = item
    for part in path:
        target = target[int(part)] if isinstance(target, list) else target.setdefault(part, {})
    if operation["op"] == "remove":
        del target[int(last) if isinstance(target, list) else last]
    elif operation["op"] == "test":
        if target.get(last) != operation["value"]:
            raise Failure(422, "Invalid", f"the test of {operation['path']} failed")
    elif isinstance(target, list):
        target.insert(len(target) if last == "-" else int(last), operation["value"])
    else:
        target[last] = operation["value"]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1000
    api: FakeApi


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle_request(self) -> None:
        if self.server.api.ended:
            self.close_connection = True
            return
        url = urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): "\n".join(self.headers.get_all(name, ())) for name in self.headers}
        asked = Asked(self.command, url.path, dict(parse_qsl(url.query)), headers, json.loads(data or b"null"))
        self.server.api.asked.append(asked)
        self.server.api.before(asked)
        if (fault := self.server.api.fault_for(asked.method, asked.path)) is not None:
            self._fail(fault)
        elif not self._is_authorized(headers.get("authorization", "")):
            self._json(401, Failure(401, "Unauthorized", "Unauthorized").body)
        elif asked.query.get("watch") == "true":
            self._watch(asked)
        elif headers.get("upgrade") == "websocket" and asked.path.endswith("/portforward"):
            self._forward(asked)
        elif headers.get("upgrade") == "websocket":
            self._execute(asked, [value for name, value in parse_qsl(url.query) if name == "command"])
        else:
            try:
                if asked.path.endswith("/log"):
                    self._send(200, self.server.api.log(asked).encode())
                else:
                    self._json(*self.server.api.answer(asked))
            except Failure as failure:
                self._json(failure.status, failure.body)

    def _is_authorized(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        wanted = self.server.api.token
        return not wanted or (scheme.lower(), token) == ("bearer", wanted)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815  (as the library calls them)

    def _fail(self, fault: Fault) -> None:
        if not fault.status:
            self.close_connection = True
            return
        body = fault.body
        if body is None:
            body = json.dumps(Failure(fault.status, fault.reason, fault.message).body).encode()
        self._send(fault.status, body, fault.headers)

    def _json(self, status: int, value: Object) -> None:
        self._send(status, json.dumps({key: one for key, one in value.items() if key != "owners"}).encode())

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        usual = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in (usual | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # nobody has to read it all
            self.wfile.write(body)

    def _execute(self, asked: Asked, command: list[str]) -> None:
        """Speak the websocket protocol v5.channel.k8s.io, as far as one command needs it."""
        self._upgrade(asked, "v5.channel.k8s.io")
        stdin = b""
        while asked.query.get("stdin") == "true" and (message := self._message()) != b"\xff\x00":
            stdin += message[1:]
        self.close_connection = True
        with suppress(OSError):  # the client may end it at any time
            for channel, data in self.server.api.commands[command[0]](stdin):
                self._say(channel, data)
            self.wfile.write(b"\x88\x02\x03\xe8")
            self.rfile.read(1)  # until the client ends it, too

    def _forward(self, asked: Asked) -> None:
        """Say what is heard at port 80; refuse all others."""
        self._upgrade(asked, "v4.channel.k8s.io")
        port = int(asked.query["ports"]).to_bytes(2, "little")
        self.close_connection = True
        try:
            self._say(0, port)
            self._say(1, port)
            if asked.query["ports"] != "80":
                self._say(1, b"connection refused")
            while message := self._message():
                self._say(message[0], message[1:])
        except OSError:  # the client has gone
            return

    def _upgrade(self, asked: Asked, protocol: str) -> None:
        key = asked.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()  # as RFC 6455 has it
        self.send_response(101)
        told = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}
        for name, value in (told | {"Sec-WebSocket-Protocol": protocol}).items():
            self.send_header(name, value)
        self.end_headers()

    def _say(self, channel: int, data: bytes) -> None:
        payload = bytes([channel]) + data
        self.wfile.write(b"\x82\x7e" + len(payload).to_bytes(2, "big") + payload)

    def _message(self) -> bytes:
        """A message of the client, which masks what it sends; nothing at its end."""
        head = self.rfile.read(2)
        if len(head) < 2:
            return b""
        length = head[1]
        size = length & 127
        if size == 126:
            size = int.from_bytes(self.rfile.read(2), "big")
        mask = self.rfile.read(4)
        return bytes(byte ^ mask[index % 4] for index, byte in enumerate(self.rfile.read(size)))

    def _watch(self, asked: Asked) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in self.server.api.watch(asked):
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the client has gone
            self.close_connection = True
