"""Cache of the objects of one informer: by name, with the versions and times at which they were read."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes.objects.fields import text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_kubernetes.objects.yaml_loader import Object


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
            return self._store(item, version_of(item), deleted=False)

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
            by_key = {_key(item): item for item in listed}
            changed = {key[1] for key, item in by_key.items() if self._store(item, version_of(item), deleted=False)}
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
            entry = self._entries.get(_key(item))
            if entry is not None and version and version <= entry.version:
                return set()
            return {_key(item)[1]} if self._store(item, version, deleted=deleted) else set()

    def _store(self, item: Object, version: int, *, deleted: bool) -> bool:
        key = _key(item)
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


def _key(item: Object) -> tuple[str, str]:
    return text(item, "metadata", "namespace"), text(item, "metadata", "name")
