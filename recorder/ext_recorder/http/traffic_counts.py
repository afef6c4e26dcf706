"""Counts of HTTP traffic by endpoint: requests, and for APIs of models the calls and the tokens.

Tokens are those that the responses report. Each API names them in its own way; streams repeat or complete them from
event to event, so the largest value of each name counts.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from .interaction import ENCODINGS, TEXT_LIMIT, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .interaction import Interaction

# Paths of model APIs: Anthropic, OpenAI (and Azure, Mistral, vLLM …), Gemini and Vertex, Ollama, Bedrock.
MODEL_PATH = re.compile(
    r"/messages$|/(?:chat/)?completions$|/responses$|:(?:streamGenerateContent|generateContent|rawPredict|streamRawPredict)$"
    r"|/api/(?:chat|generate)$|/model/[^/]+/(?:invoke|converse)(?:-with-response-stream|-stream)?$"
)
# Members that count tokens; those of one group add up. Anthropic counts cached tokens separately, OpenAI and Gemini
# include them.
INPUT = (
    {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"},
    {"prompt_tokens"}, {"promptTokenCount"}, {"prompt_eval_count"}, {"inputTokens"},
)  # fmt: skip
OUTPUT = (
    {"output_tokens"}, {"completion_tokens"}, {"candidatesTokenCount", "thoughtsTokenCount"}, {"eval_count"},
    {"outputTokens"},
)  # fmt: skip
USAGE = ("usage", "usageMetadata")  # members that have these; Ollama has them at the top level
AROUND = ("message", "response")  # members of events that have such a member
SHOWN = 12  # endpoints in a summary
PORTS = {"http": ":80", "https": ":443"}


class Traffic(NamedTuple):
    """Traffic with one endpoint.

    Attributes:
        requests: of any kind.
        calls: of a model.
        input_tokens, output_tokens: of these calls, as far as their responses report them.
    """

    requests: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: object) -> Traffic:
        """Return the sum of two counts."""
        if not isinstance(other, Traffic):
            return NotImplemented
        return Traffic(*(one + two for one, two in zip(self, other, strict=True)))

    def entry(self) -> dict[str, int]:
        """Return the counts as the header of a recording has them: without those that are 0."""
        return {name: count for name, count in self._asdict().items() if count or name == "requests"}

    @property
    def model(self) -> str:
        """Return the calls and tokens of a model as text; "" if there are none."""
        if not self.calls:
            return ""
        calls = "1 model call" if self.calls == 1 else f"{self.calls:,} model calls"
        tokens = f" with {self.input_tokens:,} + {self.output_tokens:,} tokens (input + output)"
        return calls + (tokens if self.input_tokens + self.output_tokens else "")


class Traffics(NamedTuple):
    """Traffic with one endpoint: all that is recorded, what was replayed, and that of replayed children."""

    recorded: Traffic
    played: Traffic = Traffic()
    absent: Traffic = Traffic()


def endpoint_of(interaction: Interaction) -> str:
    """Return scheme, host and port of an interaction, without the port of the scheme: https://api.example.com."""
    scheme, _, rest = interaction.uri.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2].lower()
    return f"{scheme}://{place.removesuffix(PORTS.get(scheme, '::'))}"


def is_model_call(interaction: Interaction) -> bool:
    """Return True for a request to a model."""
    if interaction.method != "POST":
        return False
    return MODEL_PATH.search(re.split(r"[?#]", interaction.uri, maxsplit=1)[0]) is not None


def traffic_of(interaction: Interaction) -> Traffic:
    """Return the traffic that one interaction is."""
    if not is_model_call(interaction):
        return Traffic(1)
    most: dict[str, int] = {}
    for document in _documents(interaction):
        for values in _usages(document):
            for name, value in values.items():
                if isinstance(value, int):
                    most[name] = max(most.get(name, 0), value)
    counts = (max(sum(most.get(name, 0) for name in names) for names in groups) for groups in (INPUT, OUTPUT))
    return Traffic(1, 1, *counts)


def _documents(interaction: Interaction) -> Iterator[Mapping[str, object]]:
    """Yield the JSON objects of a response: of its body, its lines, or its server-sent events."""
    body = interaction.body
    if body is None or body.size > TEXT_LIMIT * 4:
        return
    encoding = next((value for name, value in interaction.headers if name.lower() == "content-encoding"), "")
    try:
        pieces = decoded(body.pieces(), encoding) if encoding in ENCODINGS else body.pieces()
        text = b"".join(pieces).decode("utf-8", "replace")
    except ValueError:
        return
    for part in (text, *text.splitlines()):
        document = _json(part.removeprefix("data:").strip())
        yield from [each for each in (document if isinstance(document, list) else [document]) if isinstance(each, dict)]
        if document is not None and part is text:
            return


def _json(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text) if text.startswith(("{", "[")) else None
    return None


def _usages(document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield document
    for place in (document, *(document.get(name) for name in AROUND)):
        if isinstance(place, dict):
            yield from (place[name] for name in USAGE if isinstance(place.get(name), dict))


def endpoint_lines(traffic: Mapping[str, Traffics], *, replayed: bool) -> list[str]:
    """Return a line for each endpoint, first those with the most requests."""
    lines = []
    for endpoint, (recorded, played, absent) in sorted(traffic.items(), key=lambda item: -item[1][0].requests):
        parts = []
        if not replayed:
            parts = [_requests(recorded.requests), recorded.model]
        elif recorded.requests > absent.requests:
            parts = [f"{played.requests:,} of {_requests(recorded.requests - absent.requests)}", played.model]
        if absent.requests:
            parts.append(f"{_requests(absent.requests)} by replayed children")
        lines.append(f"{endpoint}: {', '.join(filter(None, parts))}")
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more endpoints"]


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"
