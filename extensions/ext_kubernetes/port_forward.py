"""`port-forward`: a port of this machine that leads to one of a pod, until it is stopped."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.files import os_errors

from .access import refuse_unless_allowed
from .client import client_for
from .client.forward import LOOPBACK, Forward
from .containers import Pods
from .errors import doing
from .exec_ import running
from .naming import TargetArgs, telling_namespace
from .objects import members, text
from .ports import pod_port

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object

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
        doing(f"failed to forward a port of {pods.target.where}"),
        telling_namespace(pods.target, client, context.deadline),
        os_errors("listen at port", str(args.local_port)),
    ):
        pod = running(pods)
        name, port = text(pod, "metadata", "name"), _port(args, pod, pods, context, client)
        # Connections to the pod are made when somebody connects to this machine's port, and then nobody would be told.
        asked: Object = {"verb": "get", "resource": "pods", "subresource": "portforward", "name": name}
        refuse_unless_allowed(asked | {"namespace": pods.target.namespace}, context, client)
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
