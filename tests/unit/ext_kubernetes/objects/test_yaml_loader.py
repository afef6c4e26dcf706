"""From texts to objects."""

from __future__ import annotations

import pytest

from ext_kubernetes.objects.yaml_loader import NotYaml, load_yaml, objects_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{on: true, 1: a, ~: b, 2026-01-01: c}", {"on": True, "1": "a", "~": "b", "2026-01-01": "c"}),
        ("day: 2026-11-22", {"day": "2026-11-22"}),
        ("a: yes", {"a": True}),
        ('a: "yes"', {"a": "yes"}),
        ("n: 12345678901234567890123", {"n": 12345678901234567890123}),
        ("x: &x {a: 1}\ny: {<<: *x, b: 2}", {"x": {"a": 1}, "y": {"a": 1, "b": 2}}),
        ("x: &x {a: 1}\ny: {<<: *x, a: 2}", {"x": {"a": 1}, "y": {"a": 2}}),
        ("", None),
    ],
)
def test_yaml_is_read_as_objects_need_it(text: str, value: object) -> None:
    assert load_yaml(text) == value


BOMB = "\n".join(
    [f"a0: &a0 {list(range(10))}", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))]
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2", "line 2: duplicate key 'a'"),
        ("a: [", "line 2"),
        ("!!python/name:os.system x", "could not determine a constructor"),
        ("[" * 500_000 + "]" * 500_000, "line 1: more than 200 levels deep"),
        (BOMB, "aliases expand to more than 1,000,000 values"),
        ("&a [*a]", "aliases expand to more than"),
        ("a: \x01", "not allowed"),
    ],
)
def test_what_is_no_yaml_is_told(text: str, told: str) -> None:
    with pytest.raises(NotYaml, match=told):
        load_yaml(text)


@pytest.mark.parametrize("members", ["spec: {}", "metadata: {name: x}", "metadata: {generateName: x-}"])
def test_a_kind_that_ends_in_list_is_an_object_if_it_has_a_name_or_a_spec(members: str) -> None:
    text = f"{{apiVersion: example.com/v1, kind: AllowList, {members}, items: [a, b]}}"
    assert [one["kind"] for one, _ in objects_of(text, "x.yaml")] == ["AllowList"]


def test_every_object_knows_where_it_was() -> None:
    text = "# a comment\n---\napiVersion: v1\nkind: A\n---\n---\napiVersion: v1\nkind: B\n"
    assert [place for _, place in objects_of(text, "x.yaml")] == ["x.yaml, line 3", "x.yaml, line 7"]
