"""JSONPath: the examples of RFC 9535, and where this is stricter or safer than the library beneath."""

from __future__ import annotations

import pytest

from ext_sdk.expect import Searcher, SearchFailed, json_path
from ext_sdk.expect.json_path import PathFailed

# RFC 9535, figure 1
STORE: dict[str, object] = {
    "store": {
        "book": [
            {"category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95},
            {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99},
            {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553", "price": 8.99},
            {"category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord", "isbn": "0-395", "price": 22.99},
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}


def selected(path: str, document: object) -> list[object]:
    with Searcher() as searcher:
        return [node.value for node in json_path.select(path, document, searcher)]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$.store.book[*].author", ["Nigel Rees", "Evelyn Waugh", "Herman Melville", "J. R. R. Tolkien"]),
        ("$..author", ["Nigel Rees", "Evelyn Waugh", "Herman Melville", "J. R. R. Tolkien"]),
        ("$.store..price", [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..book[2].title", ["Moby Dick"]),
        ("$..book[2].publisher", []),
        ("$..book[-1].title", ["The Lord"]),
        ("$..book[0,1].title", ["Sayings of the Century", "Sword of Honour"]),
        ("$..book[:2].title", ["Sayings of the Century", "Sword of Honour"]),
        ("$..book[?@.isbn].title", ["Moby Dick", "The Lord"]),
        ("$..book[?@.price<10].title", ["Sayings of the Century", "Moby Dick"]),
        ("$.store.bicycle['color']", ["red"]),
        ("$..book[::2].price", [8.95, 8.99]),
        ("$..book[?match(@.author, 'J.*')].price", [22.99]),
        ("$..book[?search(@.author, 'Mel')].price", [8.99]),
        ("$..book[?length(@.title) > 10 && @.category != 'reference'].price", [12.99]),
        ("$.store[?count(@.*) == 2].color", ["red"]),
    ],
)
def test_the_examples_of_the_rfc_select_what_it_says(path: str, values: list[object]) -> None:
    assert selected(path, STORE) == values


@pytest.mark.parametrize(
    ("path", "document", "values"),
    [
        ("$[?@ == 9007199254740993]", [9007199254740992, 9007199254740993], [9007199254740993]),
        ("$[?@ <= 9007199254740993]", [9007199254740992, 9007199254740994], [9007199254740992]),
        ("$[?@ == -12e2]", [-1200, 1200], [-1200]),
        (f"$[?@ == {10**30}]", [10**30, 10**30 + 1], [10**30]),
        ("$[?@ == 1]", [1, 1.0, True, "1"], [1, 1.0]),
        ("$[?@ == true]", [1, True], [True]),
        ("$[?@.a == @.b]", [{"a": [1], "b": [True]}, {"a": [0], "b": [0.0]}], [{"a": [0], "b": [0.0]}]),
        ("$[?@.a != @.b]", [{"a": {"x": 1}, "b": {"x": True}}], [{"a": {"x": 1}, "b": {"x": True}}]),
        ("$[?@.a >= @.b]", [{"a": 2, "b": 2}, {"a": 1, "b": 2}, {"a": True, "b": True}], None),
        ("$[?@.a == @.b]", [{"c": 1}], [{"c": 1}]),
    ],
)
def test_numbers_are_exact_and_types_count_in_filters(path: str, document: list[object], values: object) -> None:
    expected = values if values is not None else [{"a": 2, "b": 2}, {"a": True, "b": True}]
    found = selected(path, document)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize(("document", "values"), [('{"a": 1}', ['{"a": 1}']), (1, [1]), (None, [None]), ([], [[]])])
def test_a_document_that_is_a_string_is_not_parsed_again(document: object, values: list[object]) -> None:
    assert selected("$", document) == values
    assert selected("$.a", document) == []


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "@.a",
        "$.",
        "$.a.",
        "$..",
        "$[",
        "$['a",
        "$.a b",
        " $.a",
        "$.a | $.b",
        "$[01]",
        "$[-0]",
        "$[1e5]",
        "$[99999999999999999999]",
        "$[" + "1" * 5000 + "]",
        "$[?@ == 1" + "0" * 5000 + "]",
        "$[?@ == 1e999999999]",
        "$[?@ == 007]",
        "$[?nope(@)]",
        "$[?length(@)]",
        "$[?@.* == 1]",
        "$['\\ud800']",
        "$" + "[?@" * 3000 + "]" * 3000,
    ],
)
def test_a_wrong_path_is_a_problem_told_in_one_line(path: str) -> None:
    problem = json_path.problem(path)
    assert problem
    assert "\n" not in problem
    assert len(problem) < 500
    with pytest.raises(PathFailed):
        selected(path, {})


def test_a_right_path_is_no_problem() -> None:
    assert json_path.problem("$..book[?match(@.author, 'J.*')]['title', 0, -1, 1:2:3, *]") == ""


def test_a_node_has_a_normalized_path() -> None:
    with Searcher() as searcher:
        nodes = json_path.select("$.a[*].b", {"a": [{"b": 1}, {"b": 2}]}, searcher)
    assert [node.path for node in nodes] == ["$['a'][0]['b']", "$['a'][1]['b']"]


def test_a_pattern_that_is_none_is_an_error_and_not_simply_false() -> None:
    with pytest.raises(PathFailed, match="not a regular expression"):
        selected("$[?match(@, '(')]", ["a"])


def test_match_is_about_the_whole_string_and_search_about_a_part() -> None:
    document = ["ab", "abc", "a", "b\n"]
    assert selected("$[?match(@, 'a|ab')]", document) == ["ab", "a"]
    assert selected("$[?search(@, 'a|ab')]", document) == ["ab", "abc", "a"]
    assert selected("$[?match(@, 'b')]", document) == []
    assert selected("$[?match(@, 1)]", document) == []


def test_a_pattern_of_the_document_can_not_hang_the_process() -> None:
    with Searcher(0.1) as searcher, pytest.raises(SearchFailed, match="took longer"):
        json_path.select("$[?match(@.v, $[0].p)]", [{"v": "a" * 50 + "b", "p": "(a+)+"}], searcher)


@pytest.mark.parametrize("path", ["$..*..*..*", "$..[?@..[?@..a]]"])
def test_a_query_without_end_stops(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_path, "MOST_NODES", 5_000)
    document: object = 1
    for _ in range(200):
        document = [document, [1]]
    with pytest.raises(PathFailed, match="visits more than 5,000 nodes"):
        selected(path, document)


def test_a_document_nested_too_deeply_is_an_error_and_no_crash() -> None:
    document: object = 1
    for _ in range(900):
        document = [document]
    with pytest.raises(PathFailed, match=r"recursion|nested too deeply"):
        selected("$..*", document)
    assert selected("$[0][0]", [[1]]) == [1]
