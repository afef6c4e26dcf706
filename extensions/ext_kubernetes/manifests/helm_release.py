"""Helm releases: the program helm, the revisions of a release, and the objects of its manifest.

helm installs and removes objects, and runs hooks; ext-kubernetes waits for the objects itself, so that the next step
can continue a wait, and a failure reports the state of the pods.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import check_name
from ext_kubernetes.api.errors import NotFound
from ext_kubernetes.api.kubeconfig import IMPERSONATE
from ext_kubernetes.objects.fields import text
from ext_kubernetes.objects.yaml_loader import Json, objects_of
from ext_kubernetes.program import Running
from ext_kubernetes.targets import Target, namespace_of

from .bulk import resolve_manifest, run_parallel
from .sources import Manifest

if TYPE_CHECKING:
    from ext_kubernetes.config import ClusterArgs
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.program import Ran

T = TypeVar("T")
HELM = "helm"
ADVICE = "install it from https://helm.sh, or apply the chart's manifests"
LAST_SECONDS = 1.0  # that helm has less than the operation, so that helm itself reports a timeout
NOT_FOUND = "release: not found"  # in stderr
LONGEST_SECONDS = 600  # for waits of helm if the next step may continue them
CHANGES = ("install", "upgrade", "rollback")  # commands that a timeout may leave unfinished
TIMED_OUT = ("timed out waiting for the condition", "context deadline exceeded")  # in stderr
MOST_REVISIONS = 256
MOST_NAMED = 10  # releases or revisions named in an error
KEEP = "helm.sh/resource-policy"  # annotation of objects that helm does not delete
REVISION = ("revision", "status", "chart", "appVersion", "description")  # members of a revision, as users name them


class Revision(msgspec.Struct, frozen=True):
    """A revision of a release, as `helm history` outputs it."""

    revision: int
    status: str = ""
    chart: str = ""
    app_version: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "description", " ".join(self.description.split()))

    def members(self) -> dict[str, str | int]:
        """Return the members as users name them."""
        values = (self.revision, self.status, self.chart, self.app_version, self.description)
        return dict(zip(REVISION, values, strict=True))

    def outputs(self, name: str, namespace: str) -> Outputs:
        """Return the outputs of operations on a release."""
        return {"name": name, "namespace": namespace, **self.members()}

    @property
    def state(self) -> str:
        """Return `deployed: revision 2, web-1.2.3, Upgrade complete`."""
        return f"{self.status}: {', '.join(filter(None, (f'revision {self.revision}', self.chart, self.description)))}"

    def __str__(self) -> str:
        """Return `2: deployed, web-1.2.3, Upgrade complete`."""
        return f"{self.revision}: {', '.join(filter(None, (self.status, self.chart, self.description)))}"


class Helm:
    """The program helm, for the cluster and the namespace of a call.

    Args:
        namespace: of the release; "" for the one of the task or of the configuration.
        everywhere: all namespaces.

    Attributes:
        namespace: of the release; "" for all.
    """

    def __init__(
        self, args: ClusterArgs, namespace: str, context: ext_sdk.Context, *, everywhere: bool = False
    ) -> None:
        self._context = context
        self.client = client_for(context, args)
        self.namespace = "" if everywhere else namespace_of(context, self.client, namespace)
        if not everywhere:
            check_name("namespace", self.namespace)

    def run(self, verb: str, given: list[str], *, accept: str = "") -> Ran:
        """Run helm until the deadline of the call; see `start` and `result`."""
        running = self.start(verb, given)
        try:
            running.wait(self._context.deadline)
        finally:
            ran = self.result(verb, running, accept=accept)
        return ran

    def start(self, verb: str, given: list[str], data: bytes | None = None) -> Running:
        """Start helm.

        Args:
            verb: command of helm, such as `get values`.
            given: arguments and flags of helm.
            data: standard input.

        Raises:
            ext_sdk.RequirementNotMet: helm is not installed.
        """
        source = self.client.source
        env = {} if source.in_cluster else {"KUBECONFIG": os.pathsep.join(source.files)}
        flags = [f"--namespace={self.namespace}" if self.namespace else "--all-namespaces"]
        flags += [f"--kube-context={source.context}"] if source.context else []
        # helm reads uid and extra from the kubeconfig, as kubectl does, but not the user and the groups.
        names = {f"{IMPERSONATE}User": "--kube-as-user", f"{IMPERSONATE}Group": "--kube-as-group"}
        headers = self.client.connect(self._context.deadline).headers
        flags += [f"{names[name]}={value}" for name, value in headers if name in names]
        return Running([HELM, *verb.split(), *given, *flags], env, self._context, ADVICE, data=data)

    def result(self, verb: str, running: Running, *, accept: str = "") -> Ran:
        """Return the result of helm, which is killed if it still runs.

        Args:
            accept: a failure with this text in stderr is returned, not raised; "" for none.

        Raises:
            ext_sdk.OperationFailed: helm failed or timed out.
        """
        ran = running.result()
        if ran.code == 0 or (accept and ran.in_time and accept in ran.stderr):
            return ran
        status = ran.status if ran.in_time else f"it did not end before the deadline and was stopped ({ran.status})"
        output = (ran.stderr or ran.stdout).strip() or "(empty)"
        if not ran.in_time and verb in CHANGES:
            output += "\nThe release may be left in a pending state, which helm-rollback or helm-uninstall ends"
        if verb in CHANGES and not (ran.in_time and all(reason not in output for reason in TIMED_OUT)):
            output += "\nWith `onTimeout: ok`, helm continues to run, such as for hooks, until the next step"
        raise ext_sdk.OperationFailed(
            f"helm {verb} failed: {status}",
            error=f"helm {verb} failed: {status}\nOutput: {output}",
            outputs={"stdout": ran.stdout, "stderr": ran.stderr},
        )

    def time_limit(self, on_timeout: ext_sdk.OnTimeout) -> str:
        """Return the flag that ends waits of helm, such as those for hooks; by default shortly before the deadline."""
        seconds = int(self._context.deadline.remaining() - LAST_SECONDS)
        return f"--timeout={LONGEST_SECONDS if on_timeout == 'ok' else max(1, seconds)}s"

    def read(self, verb: str, given: list[str], type: type[T]) -> T | None:
        """Run a command of helm that outputs JSON; return None for null, and if the release does not exist."""
        ran = self.run(verb, [*given, "--output=json"], accept=NOT_FOUND)
        if ran.code:
            return None
        try:
            value: T | None = msgspec.json.decode(ran.stdout, type=type | None)
        except msgspec.DecodeError as error:
            cut = "" if ran.complete else ", cut because it is too long"
            raise ext_sdk.OperationFailed(
                f"failed to parse helm {verb} output",
                error=f"expected JSON from helm {verb}, found {ran.stdout[:200]!r}{cut}",
            ) from error
        return value

    def releases(self) -> list[dict[str, Json]]:
        """Return the releases that `helm list` lists."""
        return self.read("list", [], type=list[dict[str, Json]]) or []

    def revisions(self, name: str) -> list[Revision]:
        """Return the revisions of a release, the latest last; none if the release does not exist."""
        return self.read("history", [name, f"--max={MOST_REVISIONS}"], type=list[Revision]) or []

    def current(self, name: str) -> Revision:
        """Return the latest revision of a release. Raises OperationFailed if the release does not exist."""
        if revisions := self.revisions(name):
            return revisions[-1]
        raise self.not_found(name)

    def not_found(self, name: str, revision: int = 0) -> ext_sdk.OperationFailed:
        """Return the failure of an operation whose release, or revision of it, does not exist."""
        if revision and (revisions := self.revisions(name)):
            found = "; ".join(map(str, revisions[-MOST_NAMED:]))
            return ext_sdk.OperationFailed(
                f"Helm release {name!r} has no revision {revision}",
                error=f"expected revision {revision} of the Helm release {name!r}, found {found}",
            )
        names = ", ".join(str(release.get("name")) for release in self.releases()[:MOST_NAMED])
        return ext_sdk.OperationFailed(
            f"Helm release {name!r} not found",
            error=f"expected a Helm release {name!r} in namespace {self.namespace}, found {names or 'no release'}",
        )

    def targets(self, name: str) -> list[Target]:
        """Return the objects in the manifest of the latest revision of a release; hooks are not among them."""
        return [target for target, _ in self._objects(name)]

    def uids(self, name: str) -> list[tuple[Target, str]]:
        """Return the existing objects that the uninstallation of a release deletes, and their uids."""

        def uid_of(target: Target) -> str:
            try:
                found = self.client.request("GET", target.path, deadline=self._context.deadline)
            except NotFound:
                return ""
            return text(found, "metadata", "uid")

        deleted = [
            target for target, item in self._objects(name) if text(item, "metadata", "annotations", KEEP) != "keep"
        ]
        return [(target, uid) for target, uid in zip(deleted, run_parallel(uid_of, deleted), strict=True) if uid]

    def _objects(self, name: str) -> list[tuple[Target, Object]]:
        ran = self.run("get manifest", [name], accept=NOT_FOUND)
        if not ran.complete:
            size = f"{len(ran.stdout):,} characters"
            raise ext_sdk.OperationFailed(f"the manifest of the Helm release {name!r} has more than {size}")
        objects = []
        for item, place in objects_of(ran.stdout if ran.code == 0 else "", f"manifest of release {name}"):
            namespace = text(item, "metadata", "namespace") or self.namespace
            resolved = resolve_manifest(Manifest(item, place), self._context, self.client, namespace)
            objects.append((Target(resolved.resource, resolved.namespace, resolved.name), item))
        return objects
