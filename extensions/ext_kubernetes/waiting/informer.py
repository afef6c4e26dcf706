"""Shared informers: one list and one watch serve all waits on a kind in a namespace.

An informer polls as well: a watch only wakes its waits early, and never replaces a poll.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

import ext_sdk
from ext_kubernetes.api.errors import Forbidden, Gone, KubernetesError, NotFound, Unauthorized, Unreachable
from ext_kubernetes.config import watches
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.polling import POLLING, Pace

from .cache import ObjectCache

if TYPE_CHECKING:
    from types import TracebackType

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.api.watch import Watch
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


SLICE_SECONDS = 1.0  # after which a wait sees that it was stopped


class Watcher:
    """One who waits. Use it in a `with` block.

    Attributes:
        name: of the object; "" for all.
        news: set when something has changed that was not seen yet.
    """

    def __init__(self, feed: Informer, name: str) -> None:
        self.name = name
        self.news = threading.Event()
        self._feed = feed

    def see(self, age: float, deadline: ext_sdk.Deadline) -> list[Object]:
        """What there is: the object, or all of them; nothing where there is none.

        Args:
            age: seconds since somebody else's look, which is good enough then; 0: look now.
            deadline: for the request.

        Raises:
            KubernetesError: no answer, or none that is of use.
        """
        if not (age and self.news.is_set()):
            self._feed.look(age, deadline)
        self.news.clear()
        return self._feed.known.objects(self.name)

    def wait(self, seconds: float, deadline: ext_sdk.Deadline) -> None:
        """Wait until there are news, or for so many seconds."""
        self._feed.open_watch()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not deadline.stopped.is_set():
            if self.news.wait(min(left, SLICE_SECONDS)):
                return

    def age(self) -> float:
        """Seconds since the last look."""
        return self._feed.age()

    def pace(self) -> Pace:
        """Of the looks."""
        return self._feed.pace()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)


MOST_GETS = 3  # objects that are asked for one by one; more are listed
LOOK_SECONDS = 10.0  # for one look: others wait for it
REOPEN_SECONDS = 1.0  # before a watch that has ended is opened again
WATCHED = Pace(share=0.25, shortest=0.5, longest=5.0)
LOOKS_SHARE = 3  # a look that takes 1 s is followed by a pause of 3 s at least


class Informer:
    """See the module.

    Args:
        hub: it belongs to.
        resource: the kind.
        namespace: "" for all of them, and for kinds that have none.
        selector: of labels; "" for all objects.
    """

    def __init__(self, hub: InformerRegistry, resource: Resource, namespace: str, selector: str) -> None:
        self.key = (resource, namespace, selector)
        self.known = ObjectCache()
        self._hub = hub
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._subscriptions: set[Watcher] = set()
        self._may_list = True
        self._failure: tuple[float, KubernetesError] | None = None
        self._looked = float("-inf")
        self._cost = 0.0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None

    # --- Who waits ---------------------------------------------------------------------------------------------------

    def add(self, name: str) -> Watcher:
        """One more. A watch of one object becomes one of all."""
        subscription = Watcher(self, name)
        with self._lock:
            narrow = self._scope()
            self._subscriptions.add(subscription)
            watch = self._watch if self._scope() != narrow else None
        if watch is not None:
            watch.close()
        return subscription

    def remove(self, subscription: Watcher) -> int:
        """One less. Returns how many are left."""
        with self._lock:
            self._subscriptions.discard(subscription)
            return len(self._subscriptions)

    def leave(self, subscription: Watcher) -> None:
        """See Hub.leave."""
        self._hub.leave(self, subscription)

    def close(self) -> None:
        """End the watch."""
        self._end.set()
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.close()

    def pace(self) -> Pace:
        """Of the looks, as long as things are as they are."""
        pace = WATCHED._replace(longest=self._hub.longest()) if self._watch is not None else POLLING
        least = LOOKS_SHARE * self._cost
        return Pace(pace.share, max(pace.shortest, least), max(pace.longest, least))

    # --- Looks -------------------------------------------------------------------------------------------------------

    def age(self) -> float:
        """Seconds since the last look began that got an answer."""
        return time.monotonic() - self._looked

    def look(self, age: float, deadline: ext_sdk.Deadline) -> None:
        """Look, unless somebody has done so less than `age` seconds ago; what they were refused is refused here too.

        Raises:
            KubernetesError: no answer, or none that is of use.
        """
        since = time.monotonic() - age
        if self._is_new(since):
            return
        if not self._looking.acquire(timeout=min(LOOK_SECONDS, max(1.0, deadline.remaining()))):
            raise self._failure[1] if self._failure else self._hub_unreachable()
        try:
            if not self._is_new(since):
                self._look(deadline.limit(LOOK_SECONDS))
        finally:
            self._looking.release()

    def _is_new(self, since: float) -> bool:
        failure = self._failure
        if failure is not None and failure[0] >= since and failure[0] > self._looked:
            raise failure[1]
        return self._looked >= since

    def _look(self, deadline: ext_sdk.Deadline) -> None:
        began = time.monotonic()
        with self._lock:
            names = {subscription.name for subscription in self._subscriptions}
        try:
            listed = "" in names or (len(names) > MOST_GETS and self._may_list)
            if not (listed and self._list(names, began, deadline)):
                for name in names:
                    self._get(name, began, deadline)
        except KubernetesError as error:
            if error.retryable:
                self._failure = (began, error)
            raise
        self._cost = time.monotonic() - began
        self._looked = began

    def _list(self, names: set[str], began: float, deadline: ext_sdk.Deadline) -> bool:
        """List all; false where that is forbidden, but they may be asked for one by one."""
        resource, namespace, selector = self.key
        query = [("labelSelector", selector)] if selector else []
        try:
            answer = self._hub.client.request(
                "GET", resource.path(namespace), query=query, deadline=deadline, retry=False
            )
        except Forbidden as error:
            if "" in names or error.retryable:
                raise
            self._may_list = False
            return False
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        found = [kind | item for item in items(answer, "items")]
        self._tell(self.known.listed(found, text(answer, "metadata", "resourceVersion"), began))
        return True

    def _get(self, name: str, began: float, deadline: ext_sdk.Deadline) -> None:
        resource, namespace, _ = self.key
        try:
            path = resource.path(namespace, name)
            answer = self._hub.client.request("GET", path, deadline=deadline, retry=False)
        except NotFound:
            changed = self.known.absent(name, began)
        else:
            changed = self.known.present(members(answer))
        self._tell({name} if changed else set())

    def _tell(self, changed: set[str]) -> None:
        """Wake those whom it concerns."""
        with self._lock:
            concerned = [one for one in self._subscriptions if changed and (not one.name or one.name in changed)]
        for subscription in concerned:
            subscription.news.set()

    def _hub_unreachable(self) -> Unreachable:
        return Unreachable(self._hub.client.server, "no answer in time", LOOK_SECONDS, answered=False)

    # --- The watch ---------------------------------------------------------------------------------------------------

    def open_watch(self) -> None:
        """Watch from now on, if that is wanted and nobody does so yet."""
        with self._lock:
            if self._thread is not None or not self._hub.watch or self._end.is_set():
                return
            self._thread = threading.Thread(target=self._watching, daemon=True, name="watch")
        self._thread.start()

    def _scope(self) -> str:
        """The one object that all wait for; "" where there are several."""
        names = {subscription.name for subscription in self._subscriptions}
        return names.pop() if len(names) == 1 else ""

    def _watching(self) -> None:
        deadline = ext_sdk.Deadline(None, self._end)
        while not self._end.is_set():
            try:
                widened = self._watch_once(deadline)
            except Gone:
                self.known.forget_version()
                widened = True
            except KubernetesError as error:
                if not error.retryable and not isinstance(error, Unauthorized):
                    return  # refused: looks have to do
                widened = False
            finally:
                self._watch = None
            if not widened:
                self._end.wait(REOPEN_SECONDS)

    def _watch_once(self, deadline: ext_sdk.Deadline) -> bool:
        """Take events until the watch ends. Returns whether to open another one at once."""
        resource, namespace, selector = self.key
        with self._lock:
            scope = self._scope()
        version = "" if scope else self.known.version
        watch = self._hub.client.watch(
            resource, namespace, name=scope, selector=selector, resource_version=version, deadline=deadline
        )
        with self._lock:
            self._watch = watch
            widened = self._scope() != scope and bool(scope)
        if widened or self._end.is_set():
            watch.close()
            return widened
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        for event in watch:
            if event.type != "BOOKMARK":
                self._tell(self.known.told(kind | event.object, deleted=event.type == "DELETED"))
        with self._lock:
            return bool(scope) and self._scope() != scope


SECONDS_A_FEED = 0.1  # of the longest pause: 500 namespaces, each with a watch, are 10 looks a second together


class InformerRegistry:
    """All that is waited for on one server.

    Args:
        client: of that server.
        watch: whether to open watches.
    """

    def __init__(self, client: Client, *, watch: bool) -> None:
        self.client = client
        self.watch = watch
        self._feeds: dict[tuple[Resource, str, str], Informer] = {}
        self._lock = threading.Lock()

    def subscribe(self, resource: Resource, namespace: str, name: str = "", selector: str = "") -> Watcher:
        """Wait for an object, or with an empty name for all of the namespace (and of the label selector)."""
        key = (resource, namespace, selector)
        with self._lock:
            feed = self._feeds.get(key)
            if feed is None:
                feed = self._feeds[key] = Informer(self, *key)
            return feed.add(name)

    def leave(self, feed: Informer, subscription: Watcher) -> None:
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


class Informers:
    """The hubs of a process: one for each client."""

    def __init__(self) -> None:
        self._hubs: dict[tuple[Client, bool], InformerRegistry] = {}
        self._lock = threading.Lock()

    def get(self, client: Client, *, watch: bool) -> InformerRegistry:
        """The hub of a client, made at the first call."""
        with self._lock:
            return self._hubs.setdefault((client, watch), InformerRegistry(client, watch=watch))

    def close(self) -> None:
        """End all watches."""
        for hub in self._hubs.values():
            hub.close()


def subscribe(target: Target, context: ext_sdk.Context, client: Client, *, selector: str = "") -> Watcher:
    """Begin to wait for an object, or for all of a kind; to be used in a `with` block."""
    hub = context.extension_state(Informers).get(client, watch=watches(context))
    return hub.subscribe(target.resource, target.namespace, target.name, selector)
