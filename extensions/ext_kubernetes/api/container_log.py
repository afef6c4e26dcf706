"""Log of one container, read up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes.objects.fields import text
from ext_sdk.expect import Check

from .discovery import core_path
from .errors import KubernetesError

if TYPE_CHECKING:
    import ext_sdk
    from ext_kubernetes.objects.yaml_loader import Object

    from .client import Client


MEBIBYTE = 1024 * 1024
MOST_BYTES = 8 * MEBIBYTE  # of one container's log


class Log(NamedTuple):
    """Log of a container; `cut`: its end was not read."""

    text: str
    cut: bool


def too_long(place: str) -> Check:
    """Return the failed check of a log that was not read completely."""
    return Check.failed("to be checked completely", f"more than {MOST_BYTES // MEBIBYTE} MiB of {place}", where="log")


def read_log(
    pod: Object, container: str, query: list[tuple[str, str]], context: ext_sdk.Context, client: Client
) -> Log:
    """Read the log of a container; bytes that are not UTF-8 are replaced. Raises KubernetesError.

    Args:
        query: parameters of the log request.
    """
    metadata = ("metadata", "namespace"), ("metadata", "name")
    namespace, name = (text(pod, *path) for path in metadata)
    path = core_path("pods", namespace, name, "log")
    limit = MOST_BYTES + 1  # one byte more shows that the log is longer
    query = [("container", container), ("limitBytes", str(limit)), *query]
    try:
        data = client.raw(path, query=query, deadline=context.deadline, limit=limit)
    except KubernetesError as error:
        error.error = f"{error.error} (container {container} of pod {name} in namespace {namespace})"
        raise
    return Log(data[:MOST_BYTES].decode("utf-8", "replace"), cut=len(data) > MOST_BYTES)
