"""What many who wait have in common: one look for all who wait in a namespace, and one watch that wakes them.

A thousand waits for pods of one namespace are one LIST now and then; a single one is a GET of its pod. Whoever is due
looks, in their own thread and within their own deadline; what was seen is everybody's. While a watch lives, looks are
rare, for it tells what changes; where it is refused or breaks, they are as frequent as without it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .config import watches
from .feed import WATCHED, Feed

if TYPE_CHECKING:
    import ext_sdk

    from .client import Client
    from .discovery import Resource
    from .naming import Target
    from .subscription import Subscription

SECONDS_A_FEED = 0.1  # of the longest pause: 500 namespaces, each with a watch, are 10 looks a second together


class Hub:
    """All that is waited for on one server.

    Args:
        client: of that server.
        watch: whether to open watches.
    """

    def __init__(self, client: Client, *, watch: bool) -> None:
        self.client = client
        self.watch = watch
        self._feeds: dict[tuple[Resource, str, str], Feed] = {}
        self._lock = threading.Lock()

    def subscribe(self, resource: Resource, namespace: str, name: str = "", selector: str = "") -> Subscription:
        """Wait for an object, or with an empty name for all of the namespace (and of the label selector)."""
        key = (resource, namespace, selector)
        with self._lock:
            feed = self._feeds.get(key)
            if feed is None:
                feed = self._feeds[key] = Feed(self, *key)
            return feed.add(name)

    def leave(self, feed: Feed, subscription: Subscription) -> None:
        """The wait is over; the last one ends the watch."""
        with self._lock:
            if not feed.remove(subscription):
                self._feeds.pop(feed.key, None)
                feed.close()

    def longest(self) -> float:
        """Seconds of the longest pause while a watch lives."""
        return max(WATCHED.longest, SECONDS_A_FEED * len(self._feeds))

    def close(self) -> None:
        """End all watches."""
        with self._lock:
            feeds, self._feeds = self._feeds, {}
        for feed in feeds.values():
            feed.close()


class Hubs:
    """The hubs of a process: one for each client."""

    def __init__(self) -> None:
        self._hubs: dict[tuple[Client, bool], Hub] = {}
        self._lock = threading.Lock()

    def get(self, client: Client, *, watch: bool) -> Hub:
        """The hub of a client, made at the first call."""
        with self._lock:
            return self._hubs.setdefault((client, watch), Hub(client, watch=watch))

    def close(self) -> None:
        """End all watches."""
        for hub in self._hubs.values():
            hub.close()


def subscribe(target: Target, context: ext_sdk.Context, client: Client, *, selector: str = "") -> Subscription:
    """Begin to wait for an object, or for all of a kind; to be used in a `with` block."""
    hub = context.extension_state(Hubs).get(client, watch=watches(context))
    return hub.subscribe(target.resource, target.namespace, target.name, selector)
