"""Objects that an informer knows, by name, with the time at which they were read."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes.objects.fields import text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_kubernetes.objects.yaml_loader import Object


class _CacheEntry(NamedTuple):
    """An object, or None for one that is gone; its version; and when that was heard."""

    object: Object | None
    version: int
    heard: float


class ObjectCache:
    """The objects of one kind in one namespace, by name and namespace; safe in several threads."""

    def __init__(self) -> None:
        self.version = ""  # of the last list, for a watch to go on from
        self._entries: dict[tuple[str, str], _CacheEntry] = {}
        self._lock = threading.Lock()

    def objects(self, name: str = "") -> list[Object]:
        """Those that are there: of this name, or all."""
        with self._lock:
            entries = list(self._entries.items())
        return [entry.object for key, entry in entries if entry.object is not None and name in {"", key[1]}]

    def present(self, item: Object) -> bool:
        """A look found this. Returns whether that is new."""
        with self._lock:
            return self._take(item, version_of(item), gone=False)

    def absent(self, name: str, began: float) -> bool:
        """A look that began then found no such object. Returns whether that is new."""
        with self._lock:
            gone = [
                key
                for key, entry in self._entries.items()
                if key[1] == name and entry.object is not None and entry.heard < began
            ]
            return self._remove(gone, 0)

    def listed(self, found: Iterable[Object], version: str, began: float) -> set[str]:
        """A look that began then found all these, and no others. Returns the names of those that are new or gone."""
        self.version = version
        number = int(version) if version.isdecimal() else 0
        with self._lock:
            named = {_key(item): item for item in found}
            changed = {key[1] for key, item in named.items() if self._take(item, version_of(item), gone=False)}
            gone = [
                key
                for key, entry in self._entries.items()
                if key not in named
                and entry.object is not None
                and (entry.version <= number if number else entry.heard < began)
            ]
            self._remove(gone, number)
        return changed | {key[1] for key in gone}

    def told(self, item: Object, *, deleted: bool) -> set[str]:
        """A watch told this. Returns the name, or nothing where it was known, or is older than what is known."""
        version = version_of(item)
        with self._lock:
            known = self._entries.get(_key(item))
            if known is not None and version and version <= known.version:
                return set()
            return {_key(item)[1]} if self._take(item, version, gone=deleted) else set()

    def forget_version(self) -> None:
        """The version of the last list is too old for a watch."""
        self.version = ""

    def _take(self, item: Object, version: int, *, gone: bool) -> bool:
        key = _key(item)
        known = self._entries.get(key)
        if known is not None and version and version < known.version:
            return False
        self._entries[key] = _CacheEntry(None if gone else item, version, time.monotonic())
        if known is None or known.object is None:
            return not gone
        return gone or not version or version != known.version

    def _remove(self, keys: list[tuple[str, str]], version: int) -> bool:
        for key in keys:
            self._entries[key] = _CacheEntry(None, max(version, self._entries[key].version), time.monotonic())
        return bool(keys)


def version_of(item: Object) -> int:
    """The number that an object's version is; 0 where it is none."""
    version = text(item, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0


def _key(item: Object) -> tuple[str, str]:
    return text(item, "metadata", "namespace"), text(item, "metadata", "name")
