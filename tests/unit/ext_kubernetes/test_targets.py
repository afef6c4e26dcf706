from __future__ import annotations

import pytest

from ext_kubernetes.targets import Created, OwnNamespaces
from ext_sdk import OperationFailed


def exists(_namespace: Created) -> bool:
    return True


def test_the_only_namespace_is_the_default_until_it_is_deleted() -> None:
    own = OwnNamespaces()
    assert own.implicit(exists) == ""
    own.created("a", "1", prefix="", used=True)
    own.created("b", "2", prefix="", used=False)
    assert own.implicit(exists) == "a"
    own.deleted("1", gone=True)
    with pytest.raises(OperationFailed, match="was deleted"):
        own.implicit(exists)


def test_several_namespaces_are_ambiguous_unless_others_are_gone() -> None:
    own = OwnNamespaces()
    own.created("a", "1", prefix="", used=True)
    own.created("b", "2", prefix="", used=True)
    with pytest.raises(OperationFailed, match="several namespaces"):
        own.implicit(exists)
    assert own.implicit(lambda namespace: namespace.name == "b") == "b"


def test_a_failure_makes_the_default_ambiguous_until_the_next_success() -> None:
    own = OwnNamespaces()
    own.created("a", "1", prefix="", used=True)
    own.failed("forbidden", used=True)
    with pytest.raises(OperationFailed, match="create-namespace failed: forbidden"):
        own.implicit(exists)
    own.deleted("1", gone=True)
    own.created("b", "2", prefix="", used=True)
    assert own.implicit(exists) == "b"


def test_each_server_has_namespaces_of_its_own() -> None:
    own = OwnNamespaces()
    own.created("a", "1", prefix="", used=True, server="https://one")
    own.created("b", "2", prefix="", used=True, server="https://two")
    assert own.implicit(exists, "https://one") == "a"
    assert own.implicit(exists, "https://two") == "b"
    assert own.implicit(exists, "https://three") == ""
    own.deleted_by_name("a", "https://two")
    assert own.implicit(exists, "https://one") == "a"


def test_an_adopted_namespace_stays_one_that_was_created_before() -> None:
    own = OwnNamespaces()
    own.created("a", "1", prefix="a", used=False)
    own.created("a", "1", prefix="", used=True, adopted=True)
    (created,) = own.live("")
    assert (created.prefix, created.adopted, created.used) == ("a", False, True)
