"""What a mock answers: one answer, or several one after the other."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.headers import problem as header_problem
from ext_sdk.expect.base import Json  # noqa: TC001 - msgspec reads it

from .template import problem

Fault = Literal["reset", "close", "truncate", "malformed"]
Name = Annotated[str, Meta(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
WITHOUT_BODY = (204, 205, 304)
_BODIES = ("text", "json", "file", "base64")
_OURS = ("content-length", "transfer-encoding")


class Answer(ext_sdk.Args):
    """An answer, or a fault in its place.

    In `text`, `json` and `headers`, $(path.NAME), $(query.NAME), $(header.NAME), $(json/POINTER), $(body), $(method),
    $(url) and $(count) stand for parts of the request; $(query.NAME|TEXT) says what else; $$( is a literal $(.
    """

    status: Annotated[int, Meta(ge=200, le=599)] = 200
    headers: Annotated[
        dict[Name, str | list[str]], Meta(description="A list repeats one. Content-Type goes by the kind of the body")
    ] = field(default_factory=dict)
    text: Annotated[str | UnsetType, Meta(description="Body; $(path.NAME) and the like stand for the request's")] = (
        UNSET
    )
    json: Annotated[
        Json | UnsetType,
        Meta(description='Body; its texts are as `text`, and "$(json/user)" alone is that value in its own type'),
    ] = UNSET
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType, Meta(description="Body: a file of the workdir, as it is now")
    ] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Body")] = UNSET
    chunked: Annotated[bool, Meta(description="Send the body in chunks, without its length")] = False
    delay: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Before the answer")] = UNSET
    drip: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Send the body in pieces over this long")] = UNSET
    fault: Annotated[
        Fault | UnsetType,
        Meta(
            description="reset: of the connection, in place of an answer. close: of it, without a word. "
            "truncate: of the answer, after half of it. malformed: no HTTP"
        ),
    ] = UNSET
    times: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType, Meta(description="For so many calls, then the next of the list; 1")
    ] = UNSET

    def __post_init__(self) -> None:
        bodies = [name for name in _BODIES if getattr(self, name) is not UNSET]
        if len(bodies) > 1:
            raise ValueError(f"expected one body, found {' and '.join(bodies)}")
        if bodies and self.status in WITHOUT_BODY:
            raise ValueError(f"an answer with status {self.status} has no body (RFC 9110), found {bodies[0]}")
        for name, values in self.headers.items():
            if name.lower() in _OURS:
                raise ValueError(f"{name} goes by the body; `chunked` and `fault` are for others")
            for value in [values] if isinstance(values, str) else values:
                if wrong := header_problem(value):
                    raise ValueError(f"headers.{name}: {wrong}")
        for name in ("delay", "drip"):
            given = getattr(self, name)
            if isinstance(given, ext_sdk.Duration) and given.seconds < 0:
                raise ValueError(f"{name}: expected 0s or more, found {given}")
        self._refuse_faults_with_more(bodies)

    def _refuse_faults_with_more(self, bodies: list[str]) -> None:
        if self.fault in {"reset", "close", "malformed"} and (bodies or self.headers or self.drip is not UNSET):
            raise ValueError(f"`fault: {self.fault}` sends no answer, so that it has neither body nor headers")

    def problem(self, parameters: frozenset[str] | None) -> str:
        """What is wrong with the references to requests, or ""; `parameters` as in template.problem."""
        values: list[object] = list(self.headers.values())
        return next(filter(None, (problem(one, parameters) for one in (*values, self.text, self.json))), "")


# As users write it: one, or one after the other; the last one repeats.
Answers = Answer | Annotated[list[Answer], Meta(min_length=1)]


def answer_for(count: int, answers: Answers) -> Answer:
    """The answer to a call.

    Args:
        count: 1 for the first call, and so on.
        answers: one, or those one after the other.
    """
    several = answers if isinstance(answers, list) else [answers]
    for one in several:
        count -= 1 if isinstance(one.times, UnsetType) else one.times
        if count <= 0:
            return one
    return several[-1]
