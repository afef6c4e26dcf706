"""References in texts: defaults, generated values, templates, and problems of several references at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ext_sdk import InvalidArgs
from ext_sdk.references import MOST_PROBLEMS, Expansion, NoValue, Template

if TYPE_CHECKING:
    from ext_sdk.references import Reference

VALUES = {"web.port": "80", "web.currency": "$", "web.odd": "${web.port} $${x} }"}


def kept(reference: Reference) -> str | None:
    """Return the value of a reference, as `Variables` does."""
    value = VALUES.get(reference.path)
    if value is None and reference.default is None:
        raise NoValue(f"{reference} is not known", unknown=True)
    return value


def known() -> str:
    return "known are ${web.port}"


def expand(value: object, field: str = "a", **options: object) -> object:
    expansion = Expansion(kept, known)
    expanded = expansion.expand(value, field, **options)  # type: ignore[arg-type]
    if expansion.problem:
        raise expansion.problem
    return expanded


def refused(value: object) -> str:
    with pytest.raises(InvalidArgs) as caught:
        expand(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${web.port|8080}", "80"),
        ("${web.host|localhost}:${web.port}", "localhost:80"),
        ("[${web.host|}]", "[]"),
        ("${web.host|a|b}", "a|b"),
        ('${web.body|{"a": {"b": 1}}}', '{"a": {"b": 1}}'),
        ("${web.host|${web.port}}", "80"),
        ("${web.host|${web.name|none}}", "none"),
        ("${web.host|$${x}}", "${x}"),
        ("${web.odd|x}", "${web.port} $${x} }"),
    ],
)
def test_a_default_is_used_if_the_value_is_missing(text: str, expanded: str) -> None:
    assert expand(text) == expanded


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("${now}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        ("${unixTime}", r"1\d{9}"),
        ("${uuid}", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        ("ns-${random}", r"ns-[a-z][a-z2-9]{7}"),
    ],
)
def test_generated_values_have_their_form(text: str, pattern: str) -> None:
    assert re.fullmatch(pattern, str(expand(text)))


def test_each_use_of_a_generated_value_is_new() -> None:
    uuids = str(expand("${uuid} ${uuid}")).split()
    assert len({*uuids, expand("${uuid}")}) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${web.host}", "a: ${web.host} is not known: known are ${web.port}; write $${ for a literal ${, or set `verb"),
        ("${a || b}", "a: ${a || b} is not a reference with a default, such as ${NAME.key|TEXT}: write $${ for"),
        ("${uuid|x}", "a: ${uuid|x} is not a reference with a default"),
        ("${web.host||x}", "a: ${web.host||x} is not a reference with a default"),
        ("${request.body}", "a: ${request.body} has a value in responses of mock servers only: write $${"),
        ("${web.host|{a{b{}}}}", "a: ${web.host|…: the default has no end: expected }, and in it at most two"),
        ("${web.host|${web.name}}", "a: ${web.name} is not known"),
        ("x ${web.port and more", "a: ${web.port…: the reference has no end: expected }: write $${"),
    ],
)
def test_a_wrong_reference_is_refused_with_the_reason_and_the_remedy(text: str, says: str) -> None:
    assert refused(text).startswith(says)


def test_all_wrong_references_are_listed_at_once_with_their_arguments() -> None:
    value = {"url": "http://${x.y}/${web.port}", "headers": {"X": ["${z}", "${z}"]}, "body": "${a | b}"}
    assert refused(value) == (
        "4 references without a value:\n"
        "  a.url: ${x.y} is not known\n"
        "  a.headers.X[0]: ${z} is not known\n"
        "  a.headers.X[1]: ${z} is not known\n"
        "  a.body: ${a | b} is not a reference with a default, such as ${NAME.key|TEXT}\n"
        "known are ${web.port}\n"
        "write $${ for a literal ${, or set `verbatim: true`, which leaves this call as it is"
    )
    many = refused(["${z}"] * (MOST_PROBLEMS + 5))
    assert many.count("is not known") == MOST_PROBLEMS
    assert "\n  and 5 more\n" in many


def test_computed_arguments_get_values_of_their_type() -> None:
    marks = {"port": "computed number", "mode": "computed", "ratio": "computed number"}
    expansion = Expansion(kept, known)
    value = {"port": "${web.port}", "mode": "0${web.port}", "ratio": "-0.${web.port}", "text": "${web.port}"}
    assert expansion.expand(value, marks=marks) == {"port": 80, "mode": "080", "ratio": -0.8, "text": "80"}
    assert expansion.computed == {
        "port": ("${web.port}", "80"),
        "mode": ("0${web.port}", "080"),
        "ratio": ("-0.${web.port}", "-0.80"),
    }
    assert expansion.expand(value, marks=marks, computed_only=True) == {
        "port": 80,
        "mode": "080",
        "ratio": -0.8,
        "text": "${web.port}",
    }
    assert expansion.expand({"port": "${web.host|12\n}"}, marks=marks) == {"port": 12}
    for text in ("${web.host|}", "0${web.port}", "${web.host|1e5}", "${web.host|NaN}", "1" * 310 + "${web.port}"):
        assert isinstance(expansion.expand({"port": text}, marks=marks)["port"], str)  # type: ignore[index]


def test_a_function_can_change_what_is_inserted_and_nothing_else() -> None:
    assert expand('"${web.odd}" $${x} "${web.host|"}"', insert=repr) == '"\'${web.port} $${x} }\'" ${x} "\'"\'"'


def test_a_template_has_values_except_those_of_requests() -> None:
    expansion = Expansion(kept, known)
    value = {
        "price": "${web.currency}${request.query.amount|${web.port}} $${x}",
        "id": "${uuid}",
        "kept": "${web.host|${request.host|${web.port}}}",
        "port": "${web.port} $${y}",
        "n": [1],
    }
    found = expansion.template(value)
    assert expansion.problem is None
    assert isinstance(found, dict)
    assert (found["port"], found["n"]) == ("80 ${y}", [1])
    price = found["price"]
    assert isinstance(price, Template)
    assert [reference.key for reference in price.references] == ["query.amount"]
    assert price.fill(lambda reference: "{r}" if reference.key == "query.amount" else "") == "${r} ${x}"
    assert price.fill(lambda reference: reference.default.fill(str) if reference.default else "") == "$80 ${x}"
    assert found["id"].single.path == "uuid"
    assert found["kept"].fill(lambda reference: f"{reference} {reference.default.fill(str)}") == "${request.host} 80"


def test_other_references_of_a_template_are_checked_when_it_is_read() -> None:
    marks = {"answer": {"text": "template", "file": "verbatim"}}
    value = {"answer": {"text": "${request.body} ${web.port}", "file": "${x}", "status": "${web.port}"}}
    assert expand(value, "", marks=marks) == {"answer": {**value["answer"], "status": "80"}}
    with pytest.raises(InvalidArgs, match=r"answer.text: \$\{x.y\} is not known"):
        expand({"answer": {"text": "${request.body|${x.y}}"}}, "", marks=marks)
