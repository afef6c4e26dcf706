"""Outputs of earlier operations in later arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk import InvalidArgs, NotKept
from ext_sdk.context import Place
from ext_sdk.server.variables import LONGEST_VALUE, MOST_KEPT, Variables

if TYPE_CHECKING:
    from pathlib import Path

HERE, ELSEWHERE = Place("/here"), Place("/elsewhere")


def expand(variables: Variables, place: Place, value: object) -> object:
    """Return a value with its references replaced. Raises InvalidArgs."""
    expansion = variables.expansion(place)
    expanded = expansion.expand(value)
    if expansion.problem:
        raise expansion.problem
    return expanded


@pytest.fixture
def variables() -> Variables:
    variables = Variables()
    variables.keep(HERE, "login", {"token": "t0ken", "expires-in": "60", "empty": "", "odd": "${login.token} $${x}"})
    variables.keep(HERE, "log", {"in.token": "another"})
    return variables


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("plain", "plain"),
        ("${login.token}", "t0ken"),
        ("Bearer ${login.token}!", "Bearer t0ken!"),
        ("${login.token}${login.expires-in}", "t0ken60"),
        ("[${login.empty}]", "[]"),
        ("$${login.token}", "${login.token}"),
        ("$${anything at all}", "${anything at all}"),
        ("$$${login.token}", "$${login.token}"),
        ("$$$${login.token}", "$$${login.token}"),
        ("$${login.token}${login.token}", "${login.token}t0ken"),
        ("${login.odd}", "${login.token} $${x}"),  # what a value brings in is never looked at
        ("$${unfinished", "${unfinished"),
        ("$${a${login.token}}", "${at0ken}"),
        ("$login.token {login.token} $ { } ${", "$login.token {login.token} $ { } ${"),
        ("${{login.token}}", "${{login.token}}"),
        ("cost: 5$", "cost: 5$"),
        ("${log.in.token}", "another"),
    ],
)
def test_a_text_is_expanded_once(variables: Variables, text: str, expanded: str) -> None:
    assert expand(variables, HERE, {"field": text}) == {"field": expanded}


def test_strings_are_found_in_any_depth_and_nothing_else_is_touched(variables: Variables) -> None:
    args = {"a": ["${login.token}", 1, None, {"b": "${login.expires-in}", "${login.token}": True}], "c": 1.5}
    assert expand(variables, HERE, args) == {"a": ["t0ken", 1, None, {"b": "60", "${login.token}": True}], "c": 1.5}
    assert args["a"] == ["${login.token}", 1, None, {"b": "${login.expires-in}", "${login.token}": True}]


@pytest.mark.parametrize(
    ("value", "field", "says"),
    [
        (
            "${login.tokn}",
            "a",
            "${login.tokn} is not known in this workdir: did you mean '${login.token}'?; write $${ ",
        ),
        ("${zzz}", "a", "known are ${log.in.token}, ${login.empty}, ${login.expires-in}, "),
        ("${}", "a", "${} is not known"),
        # Names of generated values, and an output without the name of its step.
        ("${Now}", "a", "${Now} is not known in this workdir: did you mean '${now}'?; write"),
        ("${uid}", "a", "did you mean '${uuid}'?"),
        ("${rand.run}", "a", "did you mean '${random.run}'?"),
        ("${token}", "a", "did you mean '${log.in.token}'?"),
        ("${HOME}/bin", "a", "write $${ for a literal ${"),
        (["x", {"b": "${x.y}"}], "a[1].b", "${x.y} is not known"),
        ("${" + "x" * 1_000_000 + "}", "a", "${" + "x" * 80 + "…} is not known"),
    ],
)
def test_an_unknown_reference_is_refused_with_the_nearest_one(
    variables: Variables, value: object, field: str, says: str
) -> None:
    with pytest.raises(InvalidArgs) as caught:
        expand(variables, HERE, {"a": value})
    assert caught.value.field == field
    assert says in caught.value.message
    assert len(caught.value.message) < 500


def test_where_nothing_is_kept_the_error_says_how_to_keep_something() -> None:
    with pytest.raises(InvalidArgs, match="no operation has been called with `as: NAME` here"):
        expand(Variables(), HERE, {"a": "${x.y}"})


def test_each_workdir_has_its_own(variables: Variables) -> None:
    with pytest.raises(InvalidArgs, match="not known in this workdir"):
        expand(variables, ELSEWHERE, {"a": "${login.token}"})
    variables.keep(ELSEWHERE, "login", {"token": "other"})
    assert expand(variables, ELSEWHERE, {"a": "${login.token}"}) == {"a": "other"}
    assert expand(variables, HERE, {"a": "${login.token}"}) == {"a": "t0ken"}


def test_a_workdir_is_the_same_by_any_of_its_names(variables: Variables, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    variables.keep(Place.of(tmp_path / "link"), "a", {"b": "c"})
    assert expand(variables, Place.of(tmp_path), {"x": "${a.b}"}) == {"x": "c"}


def test_a_workdir_that_is_a_loop_of_links_is_a_workdir(variables: Variables, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    variables.keep(Place.of(tmp_path / "loop"), "a", {"b": "c"})
    assert expand(variables, Place.of(tmp_path / "loop"), {"x": "${a.b}"}) == {"x": "c"}


def test_a_later_call_of_the_same_name_replaces_all_of_it(variables: Variables) -> None:
    variables.keep(HERE, "login", {"user": "ada"})
    assert expand(variables, HERE, {"a": "${login.user} ${log.in.token}"}) == {"a": "ada another"}
    with pytest.raises(InvalidArgs):
        expand(variables, HERE, {"a": "${login.token}"})


def test_a_generated_value_with_a_name_is_the_same_for_all_steps_of_a_place(variables: Variables) -> None:
    first = expand(variables, HERE, "${uuid.a} ${random.a}")
    assert expand(variables, HERE, "${uuid.a} ${random.a}") == first
    assert str(expand(variables, HERE, "${uuid.b}")) not in str(first)
    assert str(expand(variables, ELSEWHERE, "${uuid.a}")) not in str(first)


def test_a_default_stands_for_what_is_missing_or_failed_and_not_for_what_was_too_long(variables: Variables) -> None:
    variables.fail(HERE, "log", "run")
    variables.keep(HERE, "page", {"body": NotKept("binary")})
    assert expand(variables, HERE, "${login.tokn|a} ${log.in.token|b}") == "a b"
    with pytest.raises(InvalidArgs, match="was not kept: binary"):
        expand(variables, HERE, "${page.body|c}")


def test_a_value_that_is_not_available_is_refused_with_the_reason(variables: Variables) -> None:
    variables.keep(HERE, "page", {"body": NotKept("binary: 3 bytes; download it"), "status": "200"})
    assert expand(variables, HERE, {"a": "${page.status}"}) == {"a": "200"}
    with pytest.raises(InvalidArgs) as caught:
        expand(variables, HERE, {"a": ["${page.body}"]})
    assert str(caught.value) == "a[0]: the value of ${page.body} was not kept: binary: 3 bytes; download it"


def test_a_long_value_is_kept_complete_or_not_at_all(variables: Variables) -> None:
    longest = "x" * LONGEST_VALUE
    variables.keep(HERE, "page", {"body": longest, "more": longest + "y"})
    assert expand(variables, HERE, {"a": "${page.body}"}) == {"a": longest}
    with pytest.raises(InvalidArgs, match=r"\$\{page.more\} was not kept: it has 16,777,217 characters, and at most"):
        expand(variables, HERE, {"a": "${page.more}"})


def test_the_oldest_long_values_are_dropped_and_short_ones_never(variables: Variables) -> None:
    """A process that serves hundreds of tasks keeps a bounded amount, whatever workdir the values are of."""
    long = "x" * LONGEST_VALUE
    variables.keep(ELSEWHERE, "first", {"body": long, "status": "200"})
    for number in range(MOST_KEPT // LONGEST_VALUE):
        variables.keep(HERE, f"page{number}", {"body": long})
    assert expand(variables, HERE, {"a": "${page0.body}"}) == {"a": long}
    assert expand(variables, ELSEWHERE, {"a": "${first.status}"}) == {"a": "200"}
    with pytest.raises(InvalidArgs, match=r"\$\{first.body\} was not kept: its 16,777,216 characters were dropped"):
        expand(variables, ELSEWHERE, {"a": "${first.body}"})


def test_a_replaced_value_takes_no_room(variables: Variables) -> None:
    long = "x" * LONGEST_VALUE
    variables.keep(HERE, "first", {"body": long})
    for _ in range(2 * MOST_KEPT // LONGEST_VALUE):
        variables.keep(HERE, "again", {"body": long})
    assert expand(variables, HERE, {"a": "${first.body}"}) == {"a": long}


def test_a_name_of_another_scope_is_pointed_out() -> None:
    variables = Variables()
    for place in (Place("/here"), Place("/here", "a"), Place("/there", "b")):
        variables.keep(place, "web", {"port": "80"})
    with pytest.raises(InvalidArgs, match=r"\(a step without `scope`, scope 'a' of this workdir has the name\)"):
        expand(variables, Place("/here", "c"), {"a": "${web.port}"})


def test_each_scope_of_a_workdir_has_its_own(variables: Variables) -> None:
    mine, other = Place("/here", "mine"), Place("/here", "other")
    with pytest.raises(InvalidArgs, match="is not known in this workdir, scope 'mine'"):
        expand(variables, mine, {"a": "${login.token}"})
    variables.keep(mine, "login", {"token": "m1ne"})
    variables.keep(other, "login", {"token": "0ther"})
    places = (mine, other, HERE)
    assert [expand(variables, place, "${login.token}") for place in places] == ["m1ne", "0ther", "t0ken"]


def test_a_failure_unsets_the_name_in_its_place_alone(variables: Variables) -> None:
    variables.keep(ELSEWHERE, "login", {"token": "other"})
    variables.fail(HERE, "login", "request")
    for reference in ("login.token", "login.anything"):
        with pytest.raises(InvalidArgs) as caught:
            expand(variables, HERE, {"a": f"${{{reference}}}"})
        assert caught.value.message == f"${{{reference}}} was not set: request failed"
    assert expand(variables, HERE, {"a": "${log.in.token}"}) == {"a": "another"}
    assert expand(variables, ELSEWHERE, {"a": "${login.token}"}) == {"a": "other"}
    variables.keep(HERE, "login", {"user": "ada"})
    assert expand(variables, HERE, {"a": "${login.user}"}) == {"a": "ada"}
    with pytest.raises(InvalidArgs, match="is not known"):
        expand(variables, HERE, {"a": "${login.token}"})
