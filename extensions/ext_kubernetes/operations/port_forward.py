"""Operation `port-forward`: forward a local port to a pod."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.access_review import require_permission
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.api.port_forward import LOOPBACK, Forward
from ext_kubernetes.objects.fields import at, items, members, named, number, text
from ext_kubernetes.targets import Pods, TargetArgs, missing_namespace_context, running_pod
from ext_sdk.files import os_errors

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


HEADLESS = "None"  # as clusterIP: the Service only finds pods, and translates no ports


def pod_port(wanted: int | str, pod: Object, service: Object | None = None) -> int:
    """The number of a port of a pod.

    Args:
        wanted: number or name, of a port of the Service where there is one, else of the pod's containers.
        pod: as it was seen.
        service: through which the pod was found; None for another way.

    Raises:
        ext_sdk.OperationFailed: there is no such port; those that are there are told.
    """
    if service is None:
        return wanted if isinstance(wanted, int) else _container_port(wanted, pod)
    for port in items(service, "spec", "ports"):
        if wanted in {text(port, "name"), number(port, "port")}:
            return _behind(port, pod, headless=text(service, "spec", "clusterIP") == HEADLESS)
    raise _unknown(wanted, service, items(service, "spec", "ports"), "port")


def _behind(port: Object, pod: Object, *, headless: bool) -> int:
    """The port of the pod behind one of a Service; it is the same one where the Service does not say."""
    target = at(port, "targetPort")
    if isinstance(target, str) and target:
        return _container_port(target, pod)
    return number(port, "port") if headless or not target else number(port, "targetPort")


def _container_port(name: str, pod: Object) -> int:
    ports = [port for container in items(pod, "spec", "containers") for port in items(container, "ports")]
    for port in ports:
        if text(port, "name") == name:
            return number(port, "containerPort")
    raise _unknown(name, pod, ports, "containerPort")


def _unknown(wanted: int | str, item: Object, ports: list[Object], field: str) -> ext_sdk.OperationFailed:
    known = ", ".join(f"{number(port, field)}{f' ({name})' if (name := text(port, 'name')) else ''}" for port in ports)
    what = named({"kind": "Pod"} | item)
    return ext_sdk.OperationFailed(
        f"{what} has no port {wanted}",
        error=f"expected a port of {what}: {known or 'it declares none'}; found {wanted!r}",
    )


Port = Annotated[int, Meta(ge=0, le=65535)]


class PortForward(TargetArgs):
    """Which port of what; or which one to stop."""

    action: Annotated[
        Literal["start", "stop"], Meta(description="stop: the one at `localPort`, or all of the task")
    ] = "start"
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="Number or name: of the pod, or of the Service, which leads to one of the pod"),
    ] = UNSET
    local_port: Annotated[Port, Meta(description="Of this machine's loopback; 0: one that is free")] = 0
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.action == "start" and self.port is UNSET:
            raise ValueError("expected `port`, a port of the pod or of the Service")


class Forwards:
    """Those of one workdir, by local port."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forwards: dict[int, Forward] = {}

    def add(self, forward: Forward) -> None:
        """Keep one."""
        with self._lock:
            self._forwards[forward.local] = forward

    def stop(self, local: int = 0) -> list[Forward]:
        """End the one at a port, or all; give those that were ended."""
        with self._lock:
            ports = [port for port in self._forwards if local in {0, port}]
            found = [self._forwards.pop(port) for port in ports]
        for forward in found:
            forward.close()
        return found

    def close(self) -> None:
        """End all."""
        self.stop()


def port_forward(args: PortForward, context: ext_sdk.Context) -> ext_sdk.Result:
    """Forward a port of this machine to one of a pod, or of a ready pod of a Deployment, Service and the like.

    It is on loopback alone, until it is stopped, or until the task or the extension ends.
    """
    forwards = context.state(Forwards)
    if args.action == "stop":
        found = forwards.stop(args.local_port)
        problems = "\n".join(f"{one.local}: {one.problem}" for one in found if one.problem)
        return ext_sdk.Result.ok(
            f"Stopped {len(found)} port-forward(s)", outputs={"count": len(found), "problems": problems}
        )
    client = client_for(context)
    pods = Pods(args, "", context, client)
    with (
        error_context(f"failed to forward a port of {pods.target.where}"),
        missing_namespace_context(pods.target, client, context.deadline),
        os_errors("listen at port", str(args.local_port)),
    ):
        pod = running_pod(pods)
        name, port = text(pod, "metadata", "name"), _port(args, pod, pods, context, client)
        # Connections to the pod are made when somebody connects to this machine's port, and then nobody would be told.
        asked: Object = {"verb": "get", "resource": "pods", "subresource": "portforward", "name": name}
        require_permission(asked | {"namespace": pods.target.namespace}, context, client)
        forward = Forward(client, pods.path_of(pod, "portforward"), port, args.local_port)
    forwards.add(forward)
    address = f"{LOOPBACK}:{forward.local}"
    outputs: dict[str, str | int | bool] = {"localPort": forward.local, "address": address, "pod": name, "port": port}
    return ext_sdk.Result.ok(f"{address} leads to port {port} of pod {name}", outputs=outputs)


def _port(args: PortForward, pod: Object, pods: Pods, context: ext_sdk.Context, client: Client) -> int:
    """The pod's port that is meant. Raises OperationFailed where there is none."""
    assert not isinstance(args.port, UnsetType)
    if pods.target.resource.kind != "Service":
        return pod_port(args.port, pod)
    service = members(client.request("GET", pods.target.path, deadline=context.deadline))
    return pod_port(args.port, pod, service)


OPERATIONS = (ext_sdk.Operation("port-forward", port_forward, {"resource": "pod/nginx", "port": 80}),)
