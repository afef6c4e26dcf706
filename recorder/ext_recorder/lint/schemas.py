"""What a message says, against the schema of its event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from ext_recorder.pointers import join
from ext_sdk.core.wire.json_codec import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema import ValidationError

_SHOWN_CHARS = 60  # of a value in a message for people
_SHOWN_ERRORS = 5  # of one message


class Schemas:
    """Schemas, made ready when they are first asked for."""

    def __init__(self) -> None:
        self._ready: dict[int, Draft202012Validator] = {}

    def problems(self, schema: Mapping[str, object], value: object, where: str) -> Iterator[tuple[str, str]]:
        """What is wrong with a value: (JSON pointer within the message, what was expected and found).

        Args:
            schema: a JSON Schema; kept by its identity.
            value: a JSON value.
            where: the pointer to it.
        """
        validator = self._ready.get(id(schema))
        if validator is None:
            validator = self._ready[id(schema)] = Draft202012Validator(dict(schema))
        told: set[tuple[str, str]] = set()  # a member that is missing is an error of its own for each of them
        for error in validator.iter_errors(value):
            if len(told) == _SHOWN_ERRORS:
                return
            deepest = _deepest(error)
            pointer = where
            for token in deepest.absolute_path:
                pointer = join(pointer, token)
            problem = (pointer, _told(deepest))
            if problem not in told:
                told.add(problem)
                yield problem


def _deepest(error: ValidationError) -> ValidationError:
    """Of the alternatives that a value might have fitted, the one that it came nearest to."""
    while error.validator in {"anyOf", "oneOf"} and error.context:
        error = min(error.context, key=lambda each: (each.relative_schema_path[0], -len(each.absolute_path)))
    return error


def _told(error: ValidationError) -> str:
    wanted, found = error.validator_value, _cut(dumps(error.instance))
    if error.validator == "required" and isinstance(wanted, list) and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        return f"expected the member{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}, found {found}"
    if error.validator == "type":
        return f"expected {_article(str(wanted))}, found {found}"
    if error.validator in {"enum", "const"}:
        options = wanted if isinstance(wanted, list) else [wanted]
        return f"expected {' or '.join(dumps(option) for option in options)}, found {found}"
    if error.validator == "not":
        return f"expected nothing like {_cut(dumps(wanted))}, found {found}"
    return _cut(error.message)


def _article(type: str) -> str:
    return f"{'an' if type[0] in 'aeiou' else 'a'} {type}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
