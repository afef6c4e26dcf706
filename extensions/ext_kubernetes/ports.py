"""Which port of a pod is meant: by number or by name, its own or one of a Service in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk

from .objects import at, items, named, number, text

if TYPE_CHECKING:
    from .manifests import Object

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
