"""Rules of a recording: proposed only for what looks volatile, and added to a header that people edit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from ext_recorder.errors import CassetteError
from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.request_matching import RequestRules, Subject, different
from ext_recorder.run.learn import Learner, Rule, block_of, request_rules, rules_of, with_rules

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """\
# A recorded run of a command.
recording: 1
command: [agent]  # ours
"""
ID, OTHER_ID = "6f9619ff-8b86-4011-b42d-00c04fc964ff", "0d5f3ad8-9e7c-4f0b-9e56-5a1d1f0f7a55"


def post(body: object, uri: str = "http://h/v1/jobs") -> Interaction:
    return Interaction("POST", uri, [("Content-Type", "application/json")], Body(json.dumps(body).encode()))


def learned(folder: Path, recorded: Interaction, live: Interaction) -> list[Rule]:
    """Return the rules that are written for two requests; check that they make them equal."""
    header = folder / "recording.yaml"
    header.write_text(HEADER)
    one, other = Subject(recorded, RequestRules()), Subject(live, RequestRules())
    learner = Learner(header, ())
    is_learned = learner.learn(1, one, other, different(one, other))
    lines = learner.save()
    if not is_learned:
        assert lines == []
        assert header.read_text() == HEADER
        return []
    text = header.read_text()
    assert text.startswith(HEADER)
    rules = rules_of(yaml.safe_load(text)["rules"], header)
    matching = request_rules(rules)
    assert Subject(recorded, matching).key() == Subject(live, matching).key()
    assert f"written to {header}: review" in lines[-1]
    return list(rules)


VOLATILE: dict[str, tuple[object, object, list[str]]] = {
    "a UUID": ({"id": ID}, {"id": OTHER_ID}, ["ignore: 'POST /v1/jobs /body/id'"]),
    "UUIDs of items": (
        {"of": [{"id": ID}, {"id": OTHER_ID}]},
        {"of": [{"id": OTHER_ID}, {"id": ID}]},
        ["ignore: 'POST /v1/jobs /body/of/*/id'"],
    ),
    "a date in a prompt": (
        {"system": "Today is 2026-11-22. Be brief."},
        {"system": "Today is 2027-01-02. Be brief."},
        ["mask: '@date'"],
    ),
    "a date in English": (
        {"system": "Today's date: Sun Nov 22 2026\n"},
        {"system": "Today's date: Mon Nov 23 2026\n"},
        ["mask: '@date'"],
    ),
    "a temporary folder": (
        {"system": "cwd: /tmp/task-x1, files in /tmp/task-x1/src"},
        {"system": "cwd: /tmp/task-k8, files in /tmp/task-k8/src"},
        ["path: '@tmp'"],
    ),
    "a folder elsewhere": (
        {"system": "Working directory: /srv/a/b\nShell: sh"},
        {"system": "Working directory: /builds/c\nShell: sh"},
        [r"path: '(?<=\AWorking directory: )/[^\s\""],
    ),
    "random hex in a text": (
        {"out": "Chunk ID: 230eea\ndone"},
        {"out": "Chunk ID: 2316e6\ndone"},
        [r"mask: '(?<=\AChunk ID: )[0-9a-fA-F]{6}'"],
    ),
    "a counter in a text": (
        {"out": "started process 4711 of 3"},
        {"out": "started process 52 of 3"},
        [r"mask: '(?<=\Astarted process )\d+'"],
    ),
    "random text in a name": (
        {"s": "session ses_df6bece5dffeBX is open"},
        {"s": "session ses_1a4bQce5dffe7z is open"},
        [r"mask: '(?<=\Asession ses_)[0-9A-Za-z]{14}'"],
    ),
    "a Unix time": ({"at": 1795451503}, {"at": 1795459999}, ["ignore: 'POST /v1/jobs /body/at'"]),
    "a counter": ({"requestSeq": 1}, {"requestSeq": 7}, ["ignore: 'POST /v1/jobs /body/requestSeq'"]),
}


@pytest.mark.parametrize("name", VOLATILE)
def test_a_rule_is_proposed_for_what_looks_volatile(name: str, tmp_path: Path) -> None:
    recorded, live, expected = VOLATILE[name]
    rules = learned(tmp_path, post(recorded), post(live))
    assert [str(rule)[: len(text)] for rule, text in zip(rules, expected, strict=True)] == expected


def test_a_path_and_a_port_are_learned(tmp_path: Path) -> None:
    one = post({}, "http://127.0.0.1:8000/jobs/17f3a2/logs")
    other = post({}, "http://127.0.0.1:9123/jobs/80bb1c/logs")
    rules = learned(tmp_path, one, other)
    assert [str(rule) for rule in rules] == ["ignore: 'POST /port'", r"mask: '(?<=\A/jobs/)[0-9a-fA-F]{6}'"]


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ({"prompt": "list the pods"}, {"prompt": "list the nodes"}),
        ({"max_tokens": 100}, {"max_tokens": 200}),
        ({"stream": True}, {"stream": False}),
        ({"id": ID}, {"id": OTHER_ID, "more": 1}),
        ({"id": ID, "prompt": "a"}, {"id": OTHER_ID, "prompt": "b"}),
        ({"text": "two words"}, {"text": "now three words"}),
        ({"url": "https://a.example/x"}, {"url": "https://b.example/x"}),
        ({"a": "1"}, {"a": 1}),
    ],
)
def test_nothing_is_proposed_if_anything_else_differs(recorded: object, live: object, tmp_path: Path) -> None:
    assert learned(tmp_path, post(recorded), post(live)) == []


def test_rules_are_added_to_those_of_the_file_and_comments_are_kept() -> None:
    rule, reason = Rule("mask", "it's @x"), "POST /a: a UUID"
    for text in (
        HEADER,
        HEADER.rstrip("\n"),
        f"{HEADER}rules:\n",
        f"{HEADER}rules: []\n",
        f"{HEADER}rules:\n# why\n- ignore: /port\n\n# end\nexit: 0\n",
        f"rules:\n  # why\n  - ignore: /port\n{HEADER}",
    ):
        added = with_rules(text, [(rule, reason)])
        before, after = yaml.safe_load(text), yaml.safe_load(added)
        known = before.pop("rules", None) or []
        assert after.pop("rules") == [*known, {"mask": "it's @x"}]
        assert after == before
        assert "# POST /a: a UUID\n" in added
        assert all(line in added for line in text.splitlines() if line.lstrip().startswith("#"))
        assert with_rules(added, [(rule, reason)]).count("it''s @x") == 2
        assert block_of(added).startswith("rules:")
        assert "recording" not in block_of(added)


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ("all", "expected a list of `ignore: POINTER`, `mask: PATTERN` and `path: PATTERN`"),
        (["/body/id"], "found /body/id"),
        ([{"ignore": "/body/id", "mask": "x"}], "found"),
        ([{"skip": "/body/id"}], "found"),
        ([{"mask": "("}], "not a regular expression"),
        ([{"path": "@uid"}], "expected a regular expression or one of"),
        ([{"ignore": "body/id"}], "--ignore"),
    ],
)
def test_rules_that_are_not_valid_are_refused_with_the_file(values: object, cause: str, tmp_path: Path) -> None:
    with pytest.raises(CassetteError) as failed:
        rules_of(values, tmp_path / "recording.yaml")
    assert "recording.yaml" in str(failed.value)
    assert cause in str(failed.value)


def test_a_header_without_rules_has_none(tmp_path: Path) -> None:
    assert rules_of(None, tmp_path) == rules_of([], tmp_path) == ()
    assert block_of(HEADER) == ""
