"""kubectl's dialect of JSONPath."""

from __future__ import annotations

import pytest

from ext_kubernetes.objects.kubectl_jsonpath import PathFailed, problem, text_of, values

NOTES = [{"n": 1, "text": 'say "x"'}, {"n": 2, "text": "it's"}, {"n": 3, "text": "a && b", "done": True}]
POD = {
    "metadata": {"name": "web", "annotations": {"example.com/a": "x", "a.b": "y"}, "notes": NOTES},
    "spec": {"containers": [{"name": "one", "ports": [80, 443]}, {"name": "two"}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 2},
            {"type": "Initialized", "status": "False", "count": 10},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("{.metadata.name}", ["web"]),
        ("{$.metadata.name}", ["web"]),
        ("{@.metadata.name}", ["web"]),
        ("{metadata.name}", ["web"]),
        (".metadata.name", ["web"]),
        (r"{.metadata.annotations.example\.com/a}", ["x"]),
        ("{.metadata.annotations['a.b']}", ["y"]),
        (r"{.metadata.annotations['example\.com/a']}", ["x"]),
        (r'{.metadata.annotations["example\.com/a"]}', ["x"]),
        (r"{.metadata.annotations['a\.b', 'example\.com/a']}", ["y", "x"]),
        ("{.spec.containers[*].name}", ["one", "two"]),
        ("{.spec.containers[0].name}", ["one"]),
        ("{.spec.containers[-1].name}", ["two"]),
        ("{.spec.containers[0:1].name}", ["one"]),
        ("{.spec.containers[0,1].name}", ["one", "two"]),
        ("{.metadata['name','annotations'].a\\.b}", ["y"]),
        ("{..ports[1]}", [443]),
        ("{.spec.containers[5].name}", []),
        ("{.nothing.at.all}", []),
        ('{.status.conditions[?(@.type=="Ready")].status}', ["True"]),
        ("{.status.conditions[?(@.type=='Ready')].status}", ["True"]),
        ("{.status.conditions[?(@.count>2)].type}", ["Initialized"]),
        ("{.status.conditions[?(@.status!='True')].type}", ["Initialized"]),
        ("{.spec.containers[?(@.ports)].name}", ["one"]),
        ("{.status.conditions[?(@.count=='10')].type}", ["Initialized"]),
        ("{.status.conditions[?(@.count>'2')].type}", ["Initialized"]),
        (r'{.metadata.notes[?(@.text=="say \"x\"")].n}', [1]),
        (r"{.metadata.notes[?(@.text=='it\'s')].n}", [2]),
        ("{.metadata.notes[?(@.text=='a && b')].n}", [3]),
        ("{.metadata.notes[?(@.done=='true')].n}", [3]),
        ("{.metadata.notes[?(@['text']=='a && b')].n}", [3]),
        ("{.spec.containers[?(@.ports[*]==443)].name}", ["one"]),
        (r'{"a\"b"}', ['a"b']),
        ("{.metadata.name}{1}{true}", ["web1true"]),
        ("name: {.metadata.name}", ["name: web"]),
        ('{range .spec.containers[*]}{.name}{"\\n"}{end}', ["one\ntwo\n"]),
        ("{range .spec.containers[*]}{range .ports[*]}{@},{end};{end}", ["80,443,;;"]),
    ],
)
def test_a_path_finds(path: str, found: list[object]) -> None:
    assert values(path, POD) == found


@pytest.mark.parametrize(
    "path",
    ["{.a", "{.a}}", "{.a[}", "{.a[?(@.b==)]}", "{range .a}{.b}", "{end}", "{.a b}", "{.a[]}", "{.a,.b}", "{.a@b}"],
)
def test_a_path_that_is_none_is_told(path: str) -> None:
    assert problem(path)
    with pytest.raises(PathFailed):
        values(path, POD)


@pytest.mark.parametrize(
    "condition",
    ["@.a=='x' && @.b=='y'", "@.a=='x' || @.b", "@.a && @.b", "@.a=~'x.*'", "@.a='x'", "!@.a", "@.a=='x' && @.b"],
)
def test_operators_that_kubectl_does_not_have_are_refused_with_the_way_out(condition: str) -> None:
    path = f"{{.items[?({condition})].name}}"
    assert "RFC 9535: $.items[?@.a == 'x' &&" in problem(path)


def test_a_deep_document_has_an_end() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert values("{..b}", deep) == []


def test_values_become_text() -> None:
    assert text_of(["a", 1, True, {"b": [None]}]) == 'a\n1\ntrue\n{"b":[null]}'
