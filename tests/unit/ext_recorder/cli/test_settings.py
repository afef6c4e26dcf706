"""Settings of a project file: what they set, and errors with file, line and key."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cli import GIVEN, Command, Option
from ext_recorder.cli.command_line import resolve_values
from ext_recorder.cli.commands import COMMANDS, NAMES
from ext_recorder.cli.project_file import ProjectFile
from ext_recorder.cli.settings import Settings, toml
from ext_recorder.errors import UsageError
from tests.support.project_files import call, values, write
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.cli import Values


def test_keys_are_the_options_of_every_command_that_has_them(project: Path) -> None:
    write(project, '[tool.ext-recorder]\nignore = ["/a"]\norder = "any"\nhttp = true\nspeed = 2\n')
    cassette = str(project / "cassettes" / "a.yaml")
    replay = values("replay", cassette)
    assert (replay["ignore"], replay["order"], replay["http"], replay["speed"]) == (("/a",), ("any",), ("",), ("2",))
    assert values("verify", cassette)["order"] == ("any",)
    assert "speed" not in values("verify", cassette)


def test_a_table_is_for_one_command_and_the_command_line_comes_last(project: Path) -> None:
    text = """
        [tool.ext-recorder]
        ignore = ["/a"]
        order = "any"
        http = true
        match-on = ["method"]
        [tool.ext-recorder.replay]
        ignore = ["/b"]
        order = "strict"
        http = false
        """
    write(project, text)
    cassette = str(project / "cassettes" / "a.yaml")
    found = values("replay", cassette, "--ignore", "/c", "--match-on", "params")
    assert found["ignore"] == ("/a", "/b", "/c")  # lists are added up
    assert found["match-on"] == ("params",)  # but for this one
    assert (found["order"], found["http"]) == (("strict",), ())
    assert values("replay", cassette, "--order=any")["order"] == ("any",)
    assert values("verify", cassette)["ignore"] == ("/a",)


def test_paths_are_relative_to_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        cassettes = ["cassettes", "s3://bucket/x"]
        command = ["./server", "--stdio"]
        junit = "out/report.xml"
        listen = "unix:run/socket"
        connect = "tcp:4711"
        fault = ["@faults.txt", "drop@method=x"]
        redact = ["API_KEY"]
        bind = {data = "data", top = "/srv"}
        """
    write(project, text, "ext-recorder.toml")
    monkeypatch.chdir(project / "cassettes")
    verify = values("verify")
    assert verify["CASSETTE"] == (".", "s3://bucket/x")
    assert verify["COMMAND"] == (f"{project}/./server", "--stdio")
    assert verify["junit"] == (f"{project}/out/report.xml",)
    assert verify["bind"] == (f"data?={project}/data", "top?=/srv")
    replay = values("replay", "a.yaml")
    assert (replay["listen"], replay["connect"]) == ((f"unix:{project}/run/socket",), ("tcp:4711",))
    assert replay["fault"] == (f"@{project}/faults.txt", "drop@method=x")
    assert replay["redact"] == ("API_KEY",)
    assert replay["COMMAND"] == ()  # plays, and runs nothing
    assert values("replay", "a.yaml", "--http")["COMMAND"] == verify["COMMAND"]
    assert values("verify", "a.yaml", "--connect", "tcp:1")["COMMAND"] == ()  # the server is there
    assert values("verify", "a.yaml", "--", "other")["COMMAND"] == ("other",)


def sample(option: Option) -> tuple[object, str]:
    """Return a value of an option in TOML, and on a command line."""
    if not option.metavar:
        return True, ""
    if option.metavar == "NAME=PATH":
        return {"data": "/x"}, "data?=/x"
    if option.metavar.startswith(("NUMBER", "SECONDS")):
        return 3, "3"
    text = option.choices[-1] if option.choices else "30d" if option.metavar == "AGE" else "/x"
    return [text] if option.many else text, text


@pytest.mark.parametrize("name", [name for name in NAMES if COMMANDS[name].project])
def test_a_key_means_what_its_option_means(name: str, project: Path) -> None:
    command = COMMANDS[name]
    arguments: Values = {argument: (str(project / "a.yaml"),) for argument in command.arguments}
    if command.tail:
        arguments[command.tail] = ()
    options = {option.name: sample(option) for option in command.options if option.key}
    expected = resolve_values(command, {**arguments, **{key: (text,) for key, (_, text) in options.items()}})
    write(project, toml({key: value for key, (value, _) in options.items()}), "ext-recorder.toml")
    found = resolve_values(command, arguments)
    assert {key: found[key] for key in options} == {key: expected[key] for key in options}
    assert not set(found[GIVEN]) & set(options)


def test_a_binding_of_the_file_is_for_the_cassettes_that_have_it(project: Path) -> None:
    write(project, 'bind = {data = "/srv/data", other = "/srv/other"}', "ext-recorder.toml")
    cassette = project / "a.yaml"
    line = b'{"jsonrpc":"2.0","id":1,"method":"a","params":["/old/data/x"]}\n'
    run(cassette, ECHO, "--config=none", "--bind=data=/old/data", stdin=line)
    here = line.replace(b"/old/data", b"/srv/data")
    done = call("replay", str(cassette), stdin=here)
    assert (done.returncode, done.stdout) == (0, here.decode())
    assert call("verify", str(cassette), "--", *ECHO).returncode == 0
    done = call("replay", "--config=none", "--bind", "other=/srv/other", str(cassette), stdin=here)
    assert (done.returncode, "has no such binding" in done.stderr) == (2, True)
    assert call("replay", "--bind", "else?=/srv/other", str(cassette), stdin=here).returncode == 0


def test_a_bare_program_is_looked_up_in_path(project: Path) -> None:
    write(project, 'command = ["ext-shell"]', "ext-recorder.toml")
    assert values("record", str(project / "a.yaml"))["COMMAND"] == ("ext-shell",)


def test_an_option_says_how_its_tables_are_read(project: Path) -> None:
    def rows(table: dict[str, object]) -> list[str]:
        if "pattern" not in table:
            raise ValueError("expected `pattern` in it")
        return [f"pattern:{table['pattern']}"]

    command = Command(
        "replay", "", "", lambda _: 0, arguments=(), options=(Option("rule", "", "RULE", many=True, table=rows),)
    )

    def applied(text: str) -> Values:
        settings = Settings(ProjectFile(str(project / "ext-recorder.toml"), text.encode()))
        return settings.applied(command, command.defaults() | {GIVEN: ()})

    assert applied('rule = ["a", {pattern = "b"}]')["rule"] == ("a", "pattern:b")
    assert applied('rule = {pattern = "b"}')["rule"] == ("pattern:b",)
    with pytest.raises(UsageError, match=r"ext-recorder\.toml:1: rule: expected `pattern` in it"):
        applied("rule = [{}]")


WRONG = [
    ("igonre = []", "1: igonre: unknown key; did you mean ignore"),
    ("\nmatch_on = []", "2: match_on: unknown key; did you mean match-on"),
    ("\n\n[verfy]", "3: verfy: unknown key; did you mean verify"),
    ("[verify]\nspeed = 1", "2: verify.speed: unknown key; known: bind, "),
    ("verify.speeed = 1", "1: verify.speeed: unknown key"),
    ("verify = 1", "1: verify: expected a table, found a number"),
    ("order = 1", "1: order: expected a string that is not empty, found a number"),
    ('order = ""', "1: order: expected a string that is not empty, found an empty string"),
    ('order = "random"', "1: order: expected one of strict, any, found 'random'"),
    ('http = "yes"', "1: http: expected true or false, found a string"),
    ("speed = true", "1: speed: expected a number, found a boolean"),
    ("speed = 2026-01-01", "1: speed: expected a number, found a date or time"),
    ('ignore = "/a"', "1: ignore: expected a list, found a string"),
    ("ignore = {a = 1}", "1: ignore: expected a list, found a table"),
    ('ignore = [\n"/a",\n1]', "1: ignore: expected a string that is not empty in it, found a number"),
    ("[bind]\ndata = 1", "2: bind.data: expected a string, found a number"),
    ("force = true", "1: force: not a key of project files; use --force on the command line"),
    ("command = []", '1: command: expected a list of strings, such as ["ext-shell"], found a list'),
    ('command = "ext-shell"', '1: command: expected a list of strings, such as ["ext-shell"], found a string'),
    ('ignore = ["tools/call"]', "1: ignore: 'tools/call' is not a JSON pointer"),
    ('name = ["token"]', "1: name: 'token' is not a JSON pointer"),
    ('mask = ["@time", "@uid"]', "1: mask: @uid: expected a regular expression or one of @uuid, "),
    ('speed = "fast"', "1: speed: fast: expected max, or a number"),
    ("timeout = 0", "1: timeout: 0: expected a number of seconds above 0"),
    ('max-age = "old"', "1: max-age: old: expected a number and a unit"),
    ('bind = {data = "/1", "x y" = "/2"}', "1: bind: 'x y?=/2': expected NAME="),
    ("a = \n", "1: not valid TOML: Invalid value (column 5)"),
    ("a = '\udcff'", "1: not valid TOML: not UTF-8"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_what_is_wrong_is_refused_with_file_line_and_key(text: str, problem: str, project: Path) -> None:
    file = project / "ext-recorder.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as refused:
        Settings(ProjectFile(str(file), file.read_bytes())).check()
    assert str(refused.value).startswith(f"{file}:{problem}")


def test_the_line_is_that_of_the_table_in_a_pyproject(project: Path) -> None:
    text = '[project]\nspeed = 1\n[tool.ext-recorder]\n[tool . "ext-recorder".verify]\nspeed = 1\n'
    file = write(project, text)
    with pytest.raises(UsageError, match=rf"^{file}:5: verify\.speed: unknown key"):
        values("verify", str(project / "a.yaml"))


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_settings_or_refused(data: bytes) -> None:
    try:
        Settings(ProjectFile("/x/ext-recorder.toml", data)).check()
    except UsageError as refused:
        assert "\n" not in str(refused)  # noqa: PT017


SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


TABLES = st.dictionaries(
    st.text(), st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=10)
)


@given(TABLES)
def test_settings_are_printed_as_toml(table: dict[str, object]) -> None:
    assert tomllib.loads(toml(table)) == table
