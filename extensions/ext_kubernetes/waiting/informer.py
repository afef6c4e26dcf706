"""Shared informers: one LIST and one watch serve all waits on a kind in a namespace.

An informer polls as well: a watch only wakes its waits early, and never replaces a poll.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Self

import ext_sdk
from ext_kubernetes.api.errors import Forbidden, Gone, KubernetesError, NotFound, Unauthorized, Unreachable
from ext_kubernetes.config import KubernetesConfig
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.polling import POLLING, Pace
from ext_sdk.polling import interruptible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from ext_kubernetes.api.client import Client, Watch
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target

    InformerKey = tuple[Client, bool, Resource, str, str]  # client, watch?, kind, namespace, label selector


class CacheEntry(NamedTuple):
    """An object, or None if it was deleted; its version; and the time at which it was read."""

    object: Object | None
    version: int
    read_at: float


class ObjectCache:
    """Objects of one kind in one namespace, by namespace and name; thread-safe.

    Responses and watch events may arrive out of order: an older version never replaces a newer one.

    Attributes:
        version: resourceVersion of the last list, at which a watch can start; "" for none.
    """

    def __init__(self) -> None:
        self.version = ""
        self._entries: dict[tuple[str, str], CacheEntry] = {}
        self._lock = threading.Lock()

    def objects(self, name: str = "") -> list[Object]:
        """Return the existing objects, all or those of a name."""
        with self._lock:
            entries = list(self._entries.items())
        return [entry.object for key, entry in entries if entry.object is not None and name in {"", key[1]}]

    def store(self, item: Object) -> bool:
        """Store an object that was read. Return True if that is a change."""
        with self._lock:
            return self._store(item, deleted=False)

    def remove(self, name: str, began: float) -> bool:
        """Remove the object that a request begun at `began` did not find. Return True if that is a change."""
        with self._lock:
            deleted = [
                key
                for key, entry in self._entries.items()
                if key[1] == name and entry.object is not None and entry.read_at < began
            ]
            self._remove(deleted, 0)
            return bool(deleted)

    def replace(self, listed: Iterable[Object], version: str, began: float) -> set[str]:
        """Replace all objects by a list whose request began at `began`. Return the names of changed objects."""
        self.version = version
        number = int(version) if version.isdecimal() else 0
        with self._lock:
            by_key = {_key_of(item): item for item in listed}
            changed = {key[1] for key, item in by_key.items() if self._store(item, deleted=False)}
            deleted = [
                key
                for key, entry in self._entries.items()
                if key not in by_key
                and entry.object is not None
                and (entry.version <= number if number else entry.read_at < began)
            ]
            self._remove(deleted, number)
        return changed | {key[1] for key in deleted}

    def apply_event(self, item: Object, *, deleted: bool) -> set[str]:
        """Apply a watch event. Return the name of the object, or nothing if the event is known or out of date."""
        version = version_of(item)
        with self._lock:
            entry = self._entries.get(_key_of(item))
            if entry is not None and version and version <= entry.version:
                return set()
            return {_key_of(item)[1]} if self._store(item, deleted=deleted) else set()

    def _store(self, item: Object, *, deleted: bool) -> bool:
        key, version = _key_of(item), version_of(item)
        previous = self._entries.get(key)
        if previous is not None and version and version < previous.version:
            return False
        self._entries[key] = CacheEntry(None if deleted else item, version, time.monotonic())
        if previous is None or previous.object is None:
            return not deleted
        return deleted or not version or version != previous.version

    def _remove(self, keys: list[tuple[str, str]], version: int) -> None:
        for key in keys:
            self._entries[key] = CacheEntry(None, max(version, self._entries[key].version), time.monotonic())


def version_of(item: Object) -> int:
    """Return the resourceVersion of an object as a number; 0 if it is not one."""
    version = text(item, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0


def _key_of(item: Object) -> tuple[str, str]:
    return text(item, "metadata", "namespace"), text(item, "metadata", "name")


class Watcher:
    """A wait's handle on a shared informer; use as a context manager.

    Attributes:
        name: of the object; "" for all.
        changed: set if an object has changed since the last `get`.
        woken: ends `wait`: the same as `changed`, unless several watchers share it.
        data_age: returns the seconds since the last successful poll began.
        pace: returns the pace of polls.
    """

    def __init__(self, informer: Informer, name: str) -> None:
        self.name = name
        self.changed = self.woken = threading.Event()
        self.data_age = informer.data_age
        self.pace = informer.pace
        self._informer = informer

    def get(self, age: float, deadline: ext_sdk.Deadline) -> list[Object]:
        """Return the object, or all of them; an empty list if there is none.

        Args:
            age: maximum age in seconds of data that a concurrent wait has read; 0 requires a request.

        Raises:
            KubernetesError: the request failed.
        """
        if not (age and self.changed.is_set()):
            self._informer.refresh(age, deadline)
        self.changed.clear()
        return self._informer.cache.objects(self.name)

    def wait(self, seconds: float, deadline: ext_sdk.Deadline) -> bool:
        """Wait until an object changes, and return True; or return False after the given seconds."""
        self.open_watch()
        return interruptible(self.woken.wait, deadline)(seconds)

    def open_watch(self) -> None:
        """Start the watch that ends `wait`."""
        self._informer.open_watch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._informer.leave(self)


class Watchers:
    """A wait's handle on the informers of several kinds, with the methods of a Watcher."""

    def __init__(self, watchers: list[Watcher]) -> None:
        self._watchers = watchers
        self._woken = threading.Event()
        for watcher in watchers:
            watcher.woken = self._woken

    def data_age(self) -> float:
        """Return the seconds since the oldest of the last successful polls began."""
        return max(watcher.data_age() for watcher in self._watchers)

    def pace(self) -> Pace:
        """Return the slowest pace."""
        return max((watcher.pace() for watcher in self._watchers), key=lambda pace: pace.shortest)

    def get(self, age: float, deadline: ext_sdk.Deadline) -> list[Object]:
        """Return the objects of all kinds; see Watcher."""
        self._woken.clear()  # before the first read, so that no change during the others is missed
        return [item for watcher in self._watchers for item in watcher.get(age, deadline)]

    def wait(self, seconds: float, deadline: ext_sdk.Deadline) -> bool:
        """Wait until an object of any kind changes; see Watcher."""
        for watcher in self._watchers:
            watcher.open_watch()
        return interruptible(self._woken.wait, deadline)(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watcher in self._watchers:
            watcher.__exit__(kind, error, trace)


MOST_GETS = 3  # objects that are read one by one; more are listed
POLL_SECONDS = 10.0  # for one poll: concurrent waits wait for it
REOPEN_SECONDS = 1.0  # before a watch that has ended is opened again
WATCHED = Pace(share=0.25, shortest=0.5, longest=5.0)  # of polls while a watch is open
PAUSE_FACTOR = 3  # a poll that takes 1 s is followed by a pause of at least 3 s


class Informer:
    """Shared informer for one kind, namespace and label selector.

    Args:
        namespace: "" for all namespaces, and for cluster-scoped kinds.
        selector: label selector; "" for all objects.
    """

    def __init__(self, owner: Informers, key: InformerKey) -> None:
        self.key = key
        self.cache = ObjectCache()
        self._owner = owner
        self._client, self._watches, self._resource, self._namespace, self._selector = key
        self._lock = threading.Lock()
        self._polling = threading.Lock()
        self._watchers: set[Watcher] = set()
        self._may_list = True
        self._failure: tuple[float, KubernetesError] | None = None
        self._polled_at = float("-inf")
        self._poll_seconds = 0.0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None

    def add(self, name: str) -> Watcher:
        """Add a watcher. A watch of a single other object is closed, and opened again for all objects."""
        watcher = Watcher(self, name)
        with self._lock:
            watch = self._watch
            if watch is not None and self._scope() in {"", name}:
                watch = None
            self._watchers.add(watcher)
        if watch is not None:
            watch.close()
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Remove a watcher; the last one closes the informer."""
        with self._owner.lock:
            with self._lock:
                self._watchers.discard(watcher)
                if self._watchers:
                    return
            self._owner.informers.pop(self.key, None)
            self.close()

    def close(self) -> None:
        """End the watch."""
        self._end.set()
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.close()

    def pace(self) -> Pace:
        """Return the pace of polls: slower while a watch is open, and for slow responses."""
        pace = POLLING
        if self._watch is not None:
            pace = WATCHED._replace(longest=self._owner.longest_pause(self._client))
        least = PAUSE_FACTOR * self._poll_seconds
        return Pace(pace.share, max(pace.shortest, least), max(pace.longest, least))

    def data_age(self) -> float:
        """Return the seconds since the last successful poll began."""
        return time.monotonic() - self._polled_at

    def refresh(self, age: float, deadline: ext_sdk.Deadline) -> None:
        """Poll, unless a concurrent wait has done so less than `age` seconds ago; its failure is raised here, too.

        Raises:
            KubernetesError: the request failed.
        """
        since = time.monotonic() - age
        if age and self._is_fresh(since):
            return
        if not self._polling.acquire(timeout=min(POLL_SECONDS, max(1.0, deadline.remaining()))):
            timed_out = Unreachable(self._client.server, "no response in time", POLL_SECONDS, answered=False)
            raise self._failure[1] if self._failure else timed_out
        try:
            if not self._is_fresh(since):
                self._poll(deadline.limit(POLL_SECONDS))
        finally:
            self._polling.release()

    def _is_fresh(self, since: float) -> bool:
        failure = self._failure
        if failure is not None and failure[0] >= since and failure[0] > self._polled_at:
            raise failure[1]
        return self._polled_at >= since

    def _poll(self, deadline: ext_sdk.Deadline) -> None:
        began = time.monotonic()
        with self._lock:
            names = {watcher.name for watcher in self._watchers}
        try:
            listed = "" in names or (len(names) > MOST_GETS and self._may_list)
            if not (listed and self._list(names, began, deadline)):
                for name in names:
                    path = self._resource.path(self._namespace, name)
                    try:
                        item = members(self._client.request("GET", path, deadline=deadline, retry=False))
                    except NotFound:
                        changed = self.cache.remove(name, began)
                    else:
                        changed = self.cache.store(item)
                    if changed:
                        self._notify({name})
        except KubernetesError as error:
            if error.retryable:
                self._failure = (began, error)
            raise
        self._poll_seconds = time.monotonic() - began
        self._polled_at = began

    def _list(self, names: set[str], began: float, deadline: ext_sdk.Deadline) -> bool:
        """List the objects. Return False if that is forbidden, but the objects may be read one by one."""
        query = [("labelSelector", self._selector)] if self._selector else []
        path = self._resource.path(self._namespace)
        try:
            listed = self._client.request("GET", path, query=query, deadline=deadline, retry=False)
        except Forbidden as error:
            if "" in names or error.retryable:
                raise
            self._may_list = False
            return False
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}  # items of a list have neither
        objects = [kind | item for item in items(listed, "items")]
        self._notify(self.cache.replace(objects, text(listed, "metadata", "resourceVersion"), began))
        return True

    def _notify(self, changed: set[str]) -> None:
        """Wake the waits on changed objects."""
        if not changed:
            return
        with self._lock:
            watchers = [watcher for watcher in self._watchers if not watcher.name or watcher.name in changed]
        for watcher in watchers:
            watcher.changed.set()
            watcher.woken.set()

    def open_watch(self) -> None:
        """Start the watch, if it is configured and not running."""
        with self._lock:
            if self._thread is not None or not self._watches or self._end.is_set():
                return
            self._thread = threading.Thread(target=self._run_watch, daemon=True, name="watch")
        self._thread.start()

    def _scope(self) -> str:
        """Return the name of the object that all waits are on; "" if there are several."""
        names = {watcher.name for watcher in self._watchers}
        return names.pop() if len(names) == 1 else ""

    def _run_watch(self) -> None:
        deadline = ext_sdk.Deadline(None, self._end)
        while not self._end.is_set():
            try:
                reopen = self._watch_once(deadline)
            except Gone:
                self.cache.version = ""  # too old for a watch
                reopen = True
            except KubernetesError as error:
                if not error.retryable and not isinstance(error, Unauthorized):
                    return  # rejected: polls have to suffice
                reopen = False
            finally:
                self._watch = None
            if not reopen:
                self._end.wait(REOPEN_SECONDS)

    def _watch_once(self, deadline: ext_sdk.Deadline) -> bool:
        """Apply events until the watch ends. Return True if another one is to be opened at once, with a wider scope."""
        with self._lock:
            scope = self._scope()
        version = "" if scope else self.cache.version
        watch = self._client.watch(
            self._resource,
            self._namespace,
            name=scope,
            selector=self._selector,
            resource_version=version,
            deadline=deadline,
        )
        with self._lock:
            self._watch = watch
            widened = self._scope() != scope and bool(scope)
        if widened or self._end.is_set():
            watch.close()
            return widened
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        for event in watch:
            if event.type != "BOOKMARK":
                self._notify(self.cache.apply_event(kind | event.object, deleted=event.type == "DELETED"))
        with self._lock:
            return bool(scope) and self._scope() != scope


# Seconds of the longest pause: 500 namespaces, each with a watch, are 10 polls a second in all.
PAUSE_PER_INFORMER = 0.1


class Informers:
    """All informers of a process.

    Attributes:
        informers: by key; access them with the lock.
    """

    def __init__(self) -> None:
        self.informers: dict[InformerKey, Informer] = {}
        self.lock = threading.Lock()

    def watch(self, key: InformerKey, name: str) -> Watcher:
        """Return a watcher of an object, or with an empty name of all objects."""
        with self.lock:
            informer = self.informers.get(key)
            if informer is None:
                informer = self.informers[key] = Informer(self, key)
            return informer.add(name)

    def longest_pause(self, client: Client) -> float:
        """Return the seconds of the longest pause between polls of a server while a watch is open."""
        informers = sum(key[0] is client for key in list(self.informers))
        return max(WATCHED.longest, PAUSE_PER_INFORMER * informers)

    def close(self) -> None:
        """End all watches."""
        with self.lock:
            informers, self.informers = self.informers, {}
        for informer in informers.values():
            informer.close()


def subscribe(target: Target, context: ext_sdk.Context, client: Client, *, selector: str = "") -> Watcher | Watchers:
    """Return a watcher of an object, or of all objects of the kinds; use it as a context manager."""
    # A recorder of HTTP traffic sets the variable: it can't record endless responses.
    watches = context.config_as(KubernetesConfig).watch and not os.environ.get("EXT_RECORDER_HTTP")
    informers = context.extension_state(Informers)

    def watch(one: Target) -> Watcher:
        namespace = one.namespace if one.resource.namespaced else ""
        return informers.watch((client, watches, one.resource, namespace, selector), one.name)

    return Watchers(list(map(watch, target.each))) if target.others else watch(target)
