"""Which versions objects had before they were applied, for who wants to know what an apply has changed.

The server does not tell: it answers alike where something was changed and where nothing was. So versions are asked for
beforehand, one by one where there are few objects of a kind, else by a list of names and versions without contents.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .errors import KubernetesError, NotFound
from .objects import items, members, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ext_sdk

    from .client import Client
    from .discovery import Resource
    from .manifests import Object
    from .sending import Item

MOST_GETS = 3  # objects of a kind that are asked for one by one
PARTIAL = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


class Earlier:
    """The versions before; safe in several threads.

    Args:
        counts: how many objects of each (apiVersion, kind) are to be applied.
        context: of the call.
        client: of the server.
    """

    def __init__(self, counts: Mapping[tuple[str, str], int], context: ext_sdk.Context, client: Client) -> None:
        self._counts = counts
        self._context = context
        self._client = client
        self._lock = threading.Lock()
        self._listed: dict[tuple[Resource, str], dict[str, str] | None] = {}

    def version(self, item: Item) -> str | None:
        """The version of an object: "" where there was none, None where that can't be found out."""
        try:
            if self._counts[text(item.object, "apiVersion"), text(item.object, "kind")] > MOST_GETS:
                listed = self._list(item.resource, item.namespace)
                return None if listed is None else listed.get(item.name, "")
            found = self._get(item, PARTIAL.format(list=""))
        except NotFound:
            return ""
        except KubernetesError:  # who may apply may not be allowed to read
            return None
        return text(found, "metadata", "resourceVersion")

    def whole(self, item: Item) -> Object | None:
        """The object as it was; an empty one where there was none, None where that can't be found out."""
        try:
            return self._get(item, "application/json")
        except NotFound:
            return {}
        except KubernetesError:
            return None

    def _get(self, item: Item, accept: str) -> Object:
        return members(self._client.request("GET", item.path(), accept=accept, deadline=self._context.deadline))

    def _list(self, resource: Resource, namespace: str) -> dict[str, str] | None:
        """Versions by name; asked for once, and whoever needs them too waits for that."""
        with self._lock:
            key = (resource, namespace)
            if key not in self._listed:
                try:
                    found = self._client.request(
                        "GET",
                        resource.path(namespace),
                        accept=PARTIAL.format(list="List"),
                        deadline=self._context.deadline,
                    )
                except KubernetesError:
                    self._listed[key] = None
                else:
                    self._listed[key] = {
                        text(one, "metadata", "name"): text(one, "metadata", "resourceVersion")
                        for one in items(found, "items")
                    }
            return self._listed[key]
