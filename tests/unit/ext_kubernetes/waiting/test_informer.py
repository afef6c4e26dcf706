"""What comes late does not undo what came before."""

from __future__ import annotations

import time
from typing import Any

from ext_kubernetes.waiting.informer import ObjectCache


def item(version: int, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": str(version)}, **more}


def versions(known: ObjectCache, name: str = "") -> list[str]:
    return [str(one["metadata"]["resourceVersion"]) for one in known.objects(name)]  # type: ignore[index]  # objects


def test_what_was_found_is_known() -> None:
    known = ObjectCache()
    assert known.store(item(5))
    assert not known.store(item(5))
    assert versions(known, "a") == ["5"]
    assert versions(known, "b") == []


def test_an_event_that_is_older_than_a_look_is_no_news() -> None:
    known = ObjectCache()
    known.store(item(5))
    assert known.apply_event(item(4), deleted=False) == set()
    assert known.apply_event(item(5), deleted=False) == set()
    assert known.apply_event(item(6), deleted=False) == {"a"}
    assert versions(known) == ["6"]


def test_a_look_that_is_older_than_an_event_does_not_undo_it() -> None:
    known = ObjectCache()
    known.apply_event(item(9), deleted=False)
    known.store(item(8))
    assert versions(known) == ["9"]


def test_what_was_deleted_does_not_come_back_by_an_older_event() -> None:
    known = ObjectCache()
    known.store(item(5))
    assert known.apply_event(item(7), deleted=True) == {"a"}
    known.apply_event(item(6), deleted=False)
    assert versions(known) == []
    known.apply_event(item(8), deleted=False)
    assert versions(known) == ["8"]


def test_what_a_list_leaves_out_is_gone_if_it_is_not_newer() -> None:
    known = ObjectCache()
    known.replace([item(3, "a"), item(4, "b")], "10", time.monotonic())
    known.apply_event(item(12, "c"), deleted=False)
    assert known.replace([item(3, "a")], "11", time.monotonic()) == {"b"}
    assert sorted(versions(known)) == ["12", "3"]
    assert known.version == "11"


def test_what_a_look_did_not_find_is_gone_unless_it_was_heard_of_since() -> None:
    known = ObjectCache()
    began = time.monotonic()
    known.apply_event(item(5), deleted=False)
    assert not known.remove("a", began - 1)
    assert known.remove("a", time.monotonic() + 1)
    assert versions(known) == []


def test_objects_without_versions_are_always_new() -> None:
    known = ObjectCache()
    assert known.store({"metadata": {"name": "a"}, "v": 1})
    assert known.store({"metadata": {"name": "a"}, "v": 2})
    assert known.objects("a")[0]["v"] == 2
