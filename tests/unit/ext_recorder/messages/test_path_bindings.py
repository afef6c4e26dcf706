"""Bindings: machine paths go out of a cassette, in every spelling, and others come back in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.messages.path_bindings import RecordBindings, ReplayBindings, Substitution, is_bindable, parse_bind
from ext_recorder.protocols.dialect import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping


def execute(workdir: object) -> bytes:
    params = {"operation": "run", "context": {"workdir": workdir}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "execute", "params": params}).encode()


def recording(*workdirs: object, given: Mapping[str, str] | None = None, home: str = "") -> RecordBindings:
    bindings = RecordBindings(DIALECTS["gevals"], given, home)
    for workdir in workdirs:
        bindings.observe(execute(workdir))
    return bindings


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("/home/me/w", "/tmp/workdir"),
        ("/home/me/w/", "/tmp/workdir/"),
        ("/home/me/w/a/b", "/tmp/workdir/a/b"),
        ('"/home/me/w"', '"/tmp/workdir"'),
        ("cd /home/me/w; ls", "cd /tmp/workdir; ls"),
        ("in /home/me/w.", "in /tmp/workdir."),
        ("in /home/me/w...", "in /home/me/w..."),
        ("--dir=/home/me/w:/home/me/w/x", "--dir=/tmp/workdir:/tmp/workdir/x"),
        ("file:///home/me/w/x", "file:///tmp/workdir/x"),
        (r'"a\n/home/me/w\n/home/me/w\t"', r'"a\n/tmp/workdir\n/tmp/workdir\t"'),
        (r'"\u001b/home/me/w"', r'"\u001b/tmp/workdir"'),
        (r'"\/home\/me\/w\/x"', r'"\/tmp\/workdir\/x"'),
        (r'"{\"dir\":\"/home/me/w\"}"', r'"{\"dir\":\"/tmp/workdir\"}"'),
        ("/home/me/work", "/home/me/work"),
        ("/home/me/w-2", "/home/me/w-2"),
        ("/home/me/w.old", "/home/me/w.old"),
        ("/home/me/wé", "/home/me/wé"),
        ("x/home/me/w", "x/home/me/w"),
        (".../home/me/w", ".../home/me/w"),
        ("é/home/me/w", "é/home/me/w"),
        ("/home/me", "/home/me"),
        ("", ""),
    ],
)
def test_a_path_is_replaced_at_its_boundaries_only(text: str, cleaned: str) -> None:
    assert recording("/home/me/w").clean(text.encode()).decode() == cleaned


@pytest.mark.parametrize("spelled", ["/home/ä/漢😀", r"/home/\u00e4/\u6f22\ud83d\ude00", r"\/home\/ä\/漢😀"])
def test_a_path_with_other_letters_is_found_in_every_spelling_of_json(spelled: str) -> None:
    cleaned = recording("/home/ä/漢😀").clean(f'{{"f":"{spelled}/x"}}'.encode())

    assert json.loads(cleaned) == {"f": "/tmp/workdir/x"}


def test_absolute_paths_are_bound_but_for_folders_of_the_system() -> None:
    bindable = ["/a/b", "/a/b/", "//a//b", "/home/me/w", "/app", "/src/", "/workspace", "/srv", "/tmp", "/usr/src"]
    others = ["", "/", "//", "/usr", "/etc/", "//var", ".", "a/b", "~/a/b", None, 17, ["/a/b"], {"a": "/a/b"}]

    assert all(is_bindable(value) for value in bindable)
    assert not any(is_bindable(value) for value in others)
    for value in others:
        assert recording(value).clean(execute(value)) == execute(value)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ('"/app"', '"/tmp/workdir"'),
        ("file:///app/x", "file:///tmp/workdir/x"),
        ("/app/a:/app/b", "/tmp/workdir/a:/tmp/workdir/b"),
        ("/usr/app", "/usr/app"),
        ("/app2 /app-x /app.d", "/app2 /app-x /app.d"),
        ("https://host/app", "https://host/app"),
        ("https://host:80/app", "https://host:80/app"),
    ],
)
def test_a_folder_of_one_component_is_replaced_where_it_is_a_path_of_its_own(text: str, cleaned: str) -> None:
    assert recording("/app").clean(text.encode()).decode() == cleaned


def test_a_second_folder_of_a_session_gets_a_number_and_the_first_keeps_its_name() -> None:
    bindings = recording("/w/a", "/w/b", "/w/a", "/w/b/", "/w/c")

    assert bindings.clean(b"/w/a /w/b /w/c") == b"/tmp/workdir /tmp/workdir-2 /tmp/workdir-3"
    assert bindings.neutral() == {"workdir": "/tmp/workdir"}


def test_of_nested_folders_the_inner_one_is_found_first() -> None:
    bindings = recording("/home/me/w", "/home/me/w/x", home="/home/me")

    assert bindings.clean(b"/home/me/w/x/y /home/me/w/y /home/me/y") == b"/tmp/workdir-2/y /tmp/workdir/y /home/user/y"


@pytest.mark.parametrize("home", ["", "/", "/tmp", "/var/", "me"])
def test_a_home_that_other_programs_use_too_is_not_bound(home: str) -> None:
    bindings = recording(home=home)

    assert bindings.neutral() == {"workdir": "/tmp/workdir"}
    assert bindings.clean(b"/tmp/x /var/x /") == b"/tmp/x /var/x /"


def test_the_home_of_root_is_bound() -> None:
    assert recording(home="/root").clean(b"/root/x /rooted /a/root") == b"/home/user/x /rooted /a/root"


def test_only_the_places_that_the_dialect_knows_are_looked_at() -> None:
    bindings = recording()
    bindings.observe(execute("/w/a").replace(b'"execute"', b'"other"'))
    bindings.observe(execute("/w/a").replace(b"workdir", b"execute"))
    bindings.observe(b'{"broken "execute" /w/a')
    bindings.observe(b'["execute","/w/a"]')

    assert bindings.clean(b"/w/a") == b"/w/a"


def test_given_bindings_are_known_from_the_start_and_stand_in_the_header() -> None:
    bindings = recording(given=parse_bind(["data=/srv/data/", "cache-dir=/x"]))

    assert bindings.clean(b"/srv/data/f /x/y") == b"/tmp/data/f /tmp/cache-dir/y"
    assert bindings.neutral() == {"data": "/tmp/data", "cache-dir": "/tmp/cache-dir", "workdir": "/tmp/workdir"}


@pytest.mark.parametrize("option", ["", "data", "=x", "data=", "a b=x", "port=8080"])
def test_a_binding_that_could_not_be_found_again_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match="--bind"):
        parse_bind([option])


def test_a_replay_puts_live_values_in_and_takes_them_out() -> None:
    playing = ReplayBindings({"workdir": "/tmp/workdir", "home": "/home/user"}, home="/home/me")
    playing.bind("/tmp/workdir", "/home/me/w")

    assert playing.to_live(b'"/tmp/workdir/a /home/user/b"', json=True) == b'"/home/me/w/a /home/me/b"'
    assert playing.to_placeholders(b'"/home/me/w/a /home/me/b"') == b'"/tmp/workdir/a /home/user/b"'


def test_a_live_value_is_not_taken_for_a_neutral_one() -> None:
    playing = ReplayBindings({"workdir": "/tmp/workdir", "home": "/home/user"}, home="/home/other")
    playing.bind("/tmp/workdir", "/home/user/w")  # lies where the neutral home does

    assert playing.to_live(b"/tmp/workdir /home/user", json=True) == b"/home/user/w /home/other"
    assert playing.to_placeholders(b"/home/user/w /home/other") == b"/tmp/workdir /home/user"


def test_what_was_bound_by_mistake_is_forgotten() -> None:
    playing = ReplayBindings({"workdir": "/tmp/workdir"})
    playing.bind("/tmp/workdir", "/w/a")
    playing.unbind("/tmp/workdir")

    assert not playing
    assert playing.to_live(b"/tmp/workdir", json=True) == b"/tmp/workdir"


def test_neutral_spellings_are_told_from_paths_that_only_look_like_them() -> None:
    playing = ReplayBindings({"workdir": "/tmp/workdir"})

    assert playing.is_placeholder("workdir", "/tmp/workdir")
    assert playing.is_placeholder("workdir", "/tmp/workdir-12")
    assert not playing.is_placeholder("workdir", "/tmp/workdir-")
    assert not playing.is_placeholder("workdir", "/tmp/workdir-x")
    assert not playing.is_placeholder("workdir", "/tmp/workdir/1")
    assert not playing.is_placeholder("home", "/tmp/workdir")


def test_what_was_put_in_is_not_looked_at_again() -> None:
    swap = Substitution({"/a/x": "/a/y", "/a/y": "/a/x"}, json=False)

    assert swap.apply(b"/a/x /a/y /a/x") == b"/a/y /a/x /a/y"


def test_nothing_to_replace_gives_the_same_object() -> None:
    data = b"/tmp/elsewhere"

    assert Substitution({"/a/x": "/a/y", "/b": "/b"}, json=False).apply(data) is data


def test_a_long_message_full_of_paths_takes_time_by_its_length_alone() -> None:
    many = 200_000
    data = b"/w/a/f " * many

    assert recording("/w/a").clean(data).count(b"/tmp/workdir/f ") == many
    assert recording("/w/a", "/w/b").clean(data + b"/w/b").count(b"/tmp/workdir/f ") == many
