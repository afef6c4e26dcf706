"""The members of an object, and where each of them stands in the text."""

from __future__ import annotations

from ext_sdk.core.wire.json_codec import scan


def test_scan_gives_each_member_with_its_spelling() -> None:
    envelope = scan('  { "id" : 1.00 , "\\u0061" : "\\u0062" , "list":[ 1 , 2 ], "id2":0.1e1 } ')
    assert {name: envelope.member_text(name) for name in envelope.members} == {
        "id": "1.00",
        "a": '"\\u0062"',
        "list": "[ 1 , 2 ]",
        "id2": "0.1e1",
    }
    assert envelope.value("a") == "b"
    assert envelope.value("missing") is None
    assert envelope.member_text("missing") is None


def test_scan_takes_names_given_twice_and_tells_them() -> None:
    envelope = scan('{"a":1,"b":2,"a":3,"a":4}')
    assert envelope.value("a") == 4
    assert envelope.member_text("a") == "4"
    assert envelope.duplicates == ("a", "a")


def test_scan_of_an_empty_object_has_no_members() -> None:
    envelope = scan(" { } ")
    assert (envelope.members, envelope.duplicates) == ({}, ())


def test_scan_keeps_the_last_of_a_name_given_twice_within_a_member() -> None:
    assert scan('{"params":{"a":1,"a":2}}').value("params") == {"a": 2}
