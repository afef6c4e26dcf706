"""Operation `port-forward`: forward a local port to a pod."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for, review
from ext_kubernetes.api.errors import ApiError, error_context
from ext_kubernetes.api.streams import LOOPBACK, Forward
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.objects.fields import at, items, members, named, number, text
from ext_kubernetes.pods import Pods, running_pod
from ext_kubernetes.targets import TargetArgs, TimeLimit, missing_namespace_context
from ext_sdk.files import os_errors

from . import REFUSAL

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


HEADLESS = "None"  # as clusterIP: the Service selects pods, but translates no ports


def pod_port(requested: int | str, pod: Object, service: Object | None = None) -> int:
    """Return the number of a pod's port.

    Args:
        requested: number or name of a port of the Service if there is one, else of the pod's containers.
        service: the Service that selected the pod; None if the pod was selected otherwise.

    Raises:
        ext_sdk.OperationFailed: the port does not exist; the error lists the existing ones.
    """
    if service is not None:
        ports = items(service, "spec", "ports")
        port = next((port for port in ports if requested in {text(port, "name"), number(port, "port")}), None)
        if port is None:
            raise _unknown_port(requested, service, ports, "port")
        target = at(port, "targetPort")
        if not (isinstance(target, str) and target):
            headless = text(service, "spec", "clusterIP") == HEADLESS
            return number(port, "port") if headless or not target else number(port, "targetPort")
        requested = target
    if isinstance(requested, int):
        return requested
    ports = [port for container in items(pod, "spec", "containers") for port in items(container, "ports")]
    for port in ports:
        if text(port, "name") == requested:
            return number(port, "containerPort")
    raise _unknown_port(requested, pod, ports, "containerPort")


def _unknown_port(requested: int | str, item: Object, ports: list[Object], field: str) -> ext_sdk.OperationFailed:
    known = ", ".join(f"{number(port, field)}{f' ({name})' if (name := text(port, 'name')) else ''}" for port in ports)
    owner = named({"kind": "Pod"} | item)
    return ext_sdk.OperationFailed(
        f"{owner} has no port {requested}",
        error=f"expected a port of {owner}: {known or 'it declares none'}; found {requested!r}",
    )


def require_permission(attributes: Object, context: ext_sdk.Context, client: Client) -> None:
    """Check a permission whose denial could not be reported later.

    Args:
        attributes: of the resource, and the verb.

    Raises:
        ext_sdk.OperationFailed: the server denies it.
    """
    try:
        reviewed = review("SelfSubjectAccessReview", {"resourceAttributes": attributes}, context, client)
    except ApiError:  # a user who may not create reviews may have the permission all the same
        return
    if at(reviewed, "status", "allowed") is not False:
        return
    action = f"{attributes['verb']} {attributes['resource']}/{attributes['subresource']}"
    reason = text(reviewed, "status", "reason")
    raise ext_sdk.OperationFailed(
        f"you may not {action}",
        error=f"expected the permission to {action} in namespace {attributes['namespace']}, found that it is denied"
        f"{f' ({reason})' if reason else ''}. Give the user a Role with that verb and resource",
    )


class PortForward(TargetArgs):
    """Arguments of `port-forward`."""

    action: Annotated[
        Literal["start", "stop"],
        Meta(description="start, or stop the forwarding of `localPort`; without `localPort`, stop all of the task"),
    ] = "start"
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535), ext_sdk.Computed] | Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="Number or name of the port of the pod or of the Service"),
    ] = UNSET
    local_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535), ext_sdk.Computed],
        Meta(description="Local port on 127.0.0.1; 0: any free port"),
    ] = 0
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.action == "start" and self.port is UNSET:
            raise ValueError("port is required: a port of the pod or of the Service")


class Forwards:
    """Port forwards of a workdir, by local port."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forwards: dict[int, Forward] = {}

    def add(self, forward: Forward) -> None:
        """Add a port forward."""
        with self._lock:
            self._forwards[forward.local] = forward

    def stop(self, local: int = 0) -> list[Forward]:
        """Stop the forwarding of a local port, or of all ports if it is 0; return the stopped ones."""
        with self._lock:
            ports = [port for port in self._forwards if local in {0, port}]
            stopped = [self._forwards.pop(port) for port in ports]
        for forward in stopped:
            forward.close()
        return stopped

    def close(self) -> None:
        """Stop all."""
        self.stop()


def port_forward(args: PortForward, context: ext_sdk.Context) -> ext_sdk.Result:
    """Forward a local port to a pod, or to a ready pod of a Deployment, Service etc.

    The port is open on the loopback interface until it is stopped, or until the task or the extension ends.
    """
    forwards = context.state(Forwards)
    if args.action == "stop":
        stopped = forwards.stop(args.local_port)
        problems = "\n".join(f"{forward.local}: {forward.problem}" for forward in stopped if forward.problem)
        return ext_sdk.Result.ok(
            f"Stopped {len(stopped)} port-forward(s)", outputs={"count": len(stopped), "problems": problems}
        )
    assert not isinstance(args.port, UnsetType)
    client = client_for(context, args)
    pods = Pods(args, "", context, client)
    with (
        error_context(f"failed to forward a port of {pods.target.where}"),
        missing_namespace_context(pods.target, client, context.deadline),
        os_errors("listen at port", str(args.local_port)),
    ):
        pod = running_pod(pods)
        service = None
        if pods.target.resource.kind == "Service":
            service = members(client.request("GET", pods.target.path, deadline=context.deadline))
        name, port = text(pod, "metadata", "name"), pod_port(args.port, pod, service)
        # A connection to the pod is opened for each client of the local port: too late to report a denied request.
        attributes: Object = {"verb": "get", "resource": "pods", "subresource": "portforward", "name": name}
        require_permission(attributes | {"namespace": pods.target.namespace}, context, client)
        forward = Forward(client, pods.path_of(pod, "portforward"), port, args.local_port)
    forwards.add(forward)
    address = f"{LOOPBACK}:{forward.local}"
    outputs: Outputs = {"localPort": forward.local, "address": address, "pod": name, "port": port}
    message = f"Forwarding {address} to port {port} of pod {name}"
    chosen = () if args.local_port else ("localPort", "address")
    return ext_sdk.Result.ok(message, outputs=outputs, chosen=chosen)


OPERATIONS = (
    ext_sdk.Operation(
        "port-forward",
        port_forward,
        {"resource": "pod/nginx", "port": 80},
        outputs=(
            {
                "localPort?": "local port, if it was started",
                "address?": "loopback address with the local port, if it was started",
                "pod?": "name of the pod, if it was started",
                "port?": "port of the pod, if it was started",
                "count?": "number of stopped forwards, if they were stopped",
                "problems?": "last error of each forward, one per line, if they were stopped",
            }
            | REFUSAL
        ),
        title="Forward port",
        destructive=False,
    ),
)
