"""Keywords and formats of JSON Schema: those that are checked, and a search for others in a schema.

The drafts let a validator ignore an unknown keyword or format: a misspelled one would check nothing.
"""

from __future__ import annotations

from ext_sdk.core.text import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DRAFTS = (
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
LATEST = len(DRAFTS) - 1
# Formats that json_schema_worker.py checks. Others are refused, those of the drafts as well.
FORMATS = frozenset(
    [
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "json-pointer",
        "regex",
        "time",
        "uri",
        "uri-reference",
        "uuid",
    ]
)
# Keywords that say nothing about the document by themselves.
SAY_NOTHING = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "example",
        "examples",
        "id",
        "readOnly",
        "title",
        "writeOnly",
    ]
)
_OF_ONE_SCHEMA = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    ]
)
_OF_SCHEMAS = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
_OF_NAMED_SCHEMAS = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)
_OF_VALUES = frozenset(
    [
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ]
)
# Keywords that not every draft has: the indexes in DRAFTS of the first and the last that has them.
_DRAFTS_OF = {
    "$dynamicRef": (4, 4),
    "$recursiveRef": (3, 3),
    "additionalItems": (0, 3),
    "const": (1, 4),
    "contains": (1, 4),
    "dependencies": (0, 2),
    "dependentRequired": (3, 4),
    "dependentSchemas": (3, 4),
    "else": (2, 4),
    "if": (2, 4),
    "maxContains": (3, 4),
    "minContains": (3, 4),
    "prefixItems": (4, 4),
    "propertyNames": (1, 4),
    "then": (2, 4),
    "unevaluatedItems": (3, 4),
    "unevaluatedProperties": (3, 4),
}


def unknown_word(schema: dict[str, object]) -> str:
    """Return the error about the first keyword or format of a schema that checks nothing; "" if there is none."""
    name = schema.get("$schema", DRAFTS[LATEST])
    plain = name.rstrip("#") if isinstance(name, str) else ""
    if plain not in DRAFTS:
        return ""  # the worker refuses the draft
    draft = DRAFTS.index(plain)
    known = {
        word
        for word in (SAY_NOTHING | _OF_ONE_SCHEMA | _OF_SCHEMAS | _OF_NAMED_SCHEMAS | _OF_VALUES)
        if (bounds := _DRAFTS_OF.get(word, (0, LATEST)))[0] <= draft <= bounds[1]
    }
    for path, subschema in _schemas(schema, "$"):
        for word in subschema:
            if word not in known and not word.startswith("x-"):
                of_another = " in this draft" if word in _DRAFTS_OF else ""
                return f"at {path}: unknown keyword {word!r:.80}{of_another}; {suggest(word, sorted(known))}"
        form = subschema.get("format")
        if isinstance(form, str) and form not in FORMATS:
            return f"at {path}.format: unknown format {form!r:.80}; known are {', '.join(sorted(FORMATS))}"
    return ""


def _schemas(schema: object, path: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield a schema and all schemas in it, each with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for word, value in schema.items():
        place = f"{path}.{word}"
        if word in _OF_ONE_SCHEMA and isinstance(value, dict):
            yield from _schemas(value, place)
        elif word in _OF_SCHEMAS and isinstance(value, list):
            for at, item in enumerate(value):
                yield from _schemas(item, f"{place}[{at}]")
        elif word in _OF_NAMED_SCHEMAS and isinstance(value, dict):
            for name, member in value.items():
                yield from _schemas(member, f"{place}.{name}")
