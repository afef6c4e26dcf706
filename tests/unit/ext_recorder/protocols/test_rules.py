"""Rules: schemas in short, and the events of state machines."""

from __future__ import annotations

import jsonschema
import pytest

from ext_recorder.protocols.rules import INSTANT, JSON_RPC, TEXT, WHOLE, Clause, Rules, StateMachine, record, rules_of


def test_members_whose_name_ends_with_an_underscore_are_optional_and_others_are_allowed() -> None:
    schema = record(name=TEXT, age_=WHOLE)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({"name": "a", "age": 1, "more": None})
    assert valid({"name": "a"})
    assert not valid({"age": 1})
    assert not valid({"name": "a", "age": "1"})


@pytest.mark.parametrize(("text", "valid"), [("2026-01-02T03:04:05.678Z", True), ("2026-01-02 03:04", False)])
def test_an_instant_is_one_of_rfc_3339(text: str, valid: bool) -> None:
    assert jsonschema.Draft202012Validator(INSTANT).is_valid(text) is valid


def test_a_machine_ignores_the_events_that_no_state_names() -> None:
    machine = StateMachine("clause", "a", {"a": {"> x": "b"}, "b": {"< y": "a"}})
    assert machine.events == {"> x", "< y"}


def test_a_protocol_has_the_clauses_of_json_rpc_or_its_own_in_their_place() -> None:
    own = {"message": Clause("1", "Another form.")}
    rules = Rules("x", own, envelope={}, envelope_clause="message", messages={})
    assert rules.clauses.keys() == JSON_RPC.keys()
    assert rules.clauses["message"].section == "1"


def test_a_protocol_without_messages_has_no_rules() -> None:
    assert rules_of("raw") is None
    assert rules_of("no-such-protocol") is None
