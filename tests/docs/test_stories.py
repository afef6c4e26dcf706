"""The errors that docs/kubernetes-tasks.md shows are those that are recorded."""

from __future__ import annotations

import re

import yaml

from tests.docs.pages import ROOT, agrees, blocks

PAGE = "docs/kubernetes-tasks.md"
NUMBER = re.compile(r"\d+(\.\d+)?")


def story(start: str) -> str:
    return next(block.text for block in blocks() if block.page == PAGE and block.text.startswith(start))


def errors(cassette: str) -> list[str]:
    events = yaml.safe_load((ROOT / "cassettes" / cassette).read_text())["events"]
    answers = [yaml.safe_load(event["out"]) for event in events if "out" in event]
    return [answer["result"].get("error", "") for answer in answers if "result" in answer]


def test_the_story_of_a_crashing_pod_is_that_of_the_session_that_is_named() -> None:
    shown = NUMBER.sub("1", story("expected pod/crashing"))
    assert any(agrees(shown, NUMBER.sub("1", error)) for error in errors("kubernetes/failing.yaml"))
