"""What is known of one kind in one namespace, for all who wait there: they share its looks and its watch."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import ext_sdk

from .errors import Forbidden, Gone, KubernetesError, NotFound, Unauthorized, Unreachable
from .known import Known
from .objects import items, members, text
from .subscription import Subscription
from .waiting import POLLING, Pace

if TYPE_CHECKING:
    from .client import Watch
    from .discovery import Resource
    from .hub import Hub

MOST_GETS = 3  # objects that are asked for one by one; more are listed
LOOK_SECONDS = 10.0  # for one look: others wait for it
REOPEN_SECONDS = 1.0  # before a watch that has ended is opened again
WATCHED = Pace(share=0.25, shortest=0.5, longest=5.0)
LOOKS_SHARE = 3  # a look that takes 1 s is followed by a pause of 3 s at least


class Feed:
    """See the module.

    Args:
        hub: it belongs to.
        resource: the kind.
        namespace: "" for all of them, and for kinds that have none.
        selector: of labels; "" for all objects.
    """

    def __init__(self, hub: Hub, resource: Resource, namespace: str, selector: str) -> None:
        self.key = (resource, namespace, selector)
        self.known = Known()
        self._hub = hub
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self._may_list = True
        self._failure: tuple[float, KubernetesError] | None = None
        self._looked = float("-inf")
        self._cost = 0.0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None

    # --- Who waits ---------------------------------------------------------------------------------------------------

    def add(self, name: str) -> Subscription:
        """One more. A watch of one object becomes one of all."""
        subscription = Subscription(self, name)
        with self._lock:
            narrow = self._scope()
            self._subscriptions.add(subscription)
            watch = self._watch if self._scope() != narrow else None
        if watch is not None:
            watch.close()
        return subscription

    def remove(self, subscription: Subscription) -> int:
        """One less. Returns how many are left."""
        with self._lock:
            self._subscriptions.discard(subscription)
            return len(self._subscriptions)

    def leave(self, subscription: Subscription) -> None:
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
