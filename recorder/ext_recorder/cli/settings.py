"""Settings of a project file, for one command: keys are the names of the options of the command line.

`[tool.ext-recorder.verify]` applies to `verify` only. Two keys are not options: `cassettes`, for commands that accept
several, and `command`, for commands that run one. Imported only if there is a file: a TOML parser takes as long as a
replay.
"""

from __future__ import annotations

import os
import tomllib

from ext_recorder.errors import UsageError
from ext_recorder.messages.redaction import ProjectVariable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Command, Option, Values
    from .project_file import ProjectFile

CASSETTES, COMMAND = "cassettes", "command"  # the keys that are not options
_TOOL = ("tool", "ext-recorder")
_NUMBERS = ("NUMBER", "SECONDS")  # the metavars of numbers begin with these
# By metavar: the text before a path in a value. Relative paths are relative to the project file.
_PATHS = {"FILE": "", "FOLDER": "", "ADDRESS": "unix:", "RULE": "@", "NAME=PATH": "="}
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "a table"}


class Settings:
    """The settings of a project file.

    Attributes:
        file: the project file.
        everywhere: TOML values for all commands, by key.
        by_command: those for single commands, by name of the command.

    Raises:
        UsageError: the file is not TOML, or a table is another value.
    """

    def __init__(self, file: ProjectFile) -> None:
        from .commands import NAMES

        self.file = file
        try:
            table: object = tomllib.loads(file.data.decode())
        except UnicodeDecodeError as error:
            line = str(file.data.count(b"\n", 0, error.start) + 1)
            raise UsageError(f"{file.path}:{line}: not valid TOML: not UTF-8") from None
        except tomllib.TOMLDecodeError as error:  # `Problem (at line 3, column 5)`
            problem, _, position = str(error).partition(" (at line ")
            line, _, column = position.rstrip(")").partition(", column ")
            where = f"{file.path}:{line}" if line.isdigit() else file.path
            raise UsageError(f"{where}: not valid TOML: {problem}{f' (column {column})' if column else ''}") from None
        for key in _TOOL if file.shared else ():
            table = table.get(key, {}) if isinstance(table, dict) else table
        if not isinstance(table, dict):
            raise self._wrong((), f"expected a table, found {_kind(table)}")
        self.by_command: dict[str, dict[str, object]] = {}
        for name in [name for name in NAMES if name in table]:
            values = table.pop(name)
            if not isinstance(values, dict):
                raise self._wrong((name,), f"expected a table, found {_kind(values)}")
            self.by_command[name] = values
        self.everywhere = table

    def applied(self, command: Command, values: Values) -> Values:
        """Return the values of a command line with those of the file.

        Lists are concatenated: for all commands, for this one, on the command line. Of single values the last applies.

        Args:
            values: values of its command line, with the defaults.

        Raises:
            UsageError: the file has a key or a value that the command cannot use.
        """
        from . import GIVEN

        self._check_keys(command)
        result = values | {"config": (self.file.path,)}
        for option in command.options:
            given = values[option.name] if option.name in values[GIVEN] else None
            levels = [self._texts(option, place) for place in self._places(command, option.name)]
            if option.name == "redact":
                levels = [tuple(map(ProjectVariable, level)) for level in levels]
            if given is not None:
                levels.append(given)
            if levels:
                adds = option.many and not option.replaces
                result[option.name] = tuple(text for level in (levels if adds else levels[-1:]) for text in level)
        places = self._places(command, CASSETTES)
        if command.optional and places and not values[command.arguments[-1]]:
            result[command.arguments[-1]] = tuple(  # as the user would type them in the working directory
                word if "://" in word else os.path.relpath(self._absolute(word)) for word in self._strings(places[-1])
            )
        places = self._places(command, COMMAND)
        # `replay` runs COMMAND only with --http; a server at --connect runs already; `verify` may run the recorded one.
        unused = "connect" in values[GIVEN] or bool(result.get("recorded-command"))
        unused = unused or (command.name == "replay" and not result.get("http"))
        if command.tail and places and not values[command.tail] and not unused:
            program, *arguments = self._strings(places[-1])
            program = os.path.join(self.file.folder, program) if "/" in program else program  # noqa: PTH118
            result[command.tail] = (program, *arguments)
        return result

    def check(self) -> None:
        """Check all keys and values, for all commands. Raises UsageError."""
        from .commands import COMMANDS

        for command in COMMANDS.values():
            if command.project:
                self._check_keys(command)
                for option in command.options:
                    for place in self._places(command, option.name):
                        self._texts(option, place)
        for name in ("", *self.by_command):
            for key in (CASSETTES, COMMAND):
                place = (name, key) if name else (key,)
                words = self._strings(place) if self._at(place) is not None else []
                for word in words if key == CASSETTES else []:
                    if "://" not in word and not set("*?[") & set(word) and not os.path.exists(self._absolute(word)):  # noqa: PTH110
                        problem = f"{word}: no such file or folder; relative paths start at {self.file.folder}"
                        raise self._wrong(place, problem)

    # --- Places: keys, from the table of the tool downward -----------------------------------------------------------

    def _places(self, command: Command, key: str) -> list[tuple[str, ...]]:
        """Return the places where the file has a key for a command: for all commands, and for this one."""
        places = [(key,), (command.name, key)]
        return [place for place in places if self._at(place) is not None]

    def _at(self, place: tuple[str, ...]) -> object:
        table = self.everywhere if len(place) == 1 else self.by_command.get(place[0], {})
        return table.get(place[-1])

    def _check_keys(self, command: Command) -> None:
        """Raise UsageError for an unknown key. Other commands are imported only if this one does not have a key."""
        own = {option.name for option in command.options if option.key} | {CASSETTES, COMMAND}
        for name, table in (("", self.everywhere), *self.by_command.items()):
            for key in table:
                if key not in own or name not in {"", command.name}:
                    self._check_key(name, key)

    def _check_key(self, name: str, key: str) -> None:
        from .commands import COMMANDS

        commands = [COMMANDS[name]] if name else COMMANDS.values()
        options = {option.name: option.key for command in commands if command.project for option in command.options}
        known = sorted(name for name, is_key in options.items() if is_key)
        known += [CASSETTES] if any(command.optional for command in commands) else []
        known += [COMMAND] if any(command.tail for command in commands) else []
        if key in known:
            return
        place = (name, key) if name else (key,)
        if key in options:
            raise self._wrong(place, f"not a key of project files; use --{key} on the command line")
        from difflib import get_close_matches

        near = get_close_matches(key.replace("_", "-").lower(), known + ([] if name else [*COMMANDS]), n=1)
        raise self._wrong(place, f"unknown key; {f'did you mean {near[0]}' if near else 'known: ' + ', '.join(known)}")

    # --- Values, as texts of a command line ---------------------------------------------------------------------------

    def _texts(self, option: Option, place: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of an option as a command line would have them. Raises UsageError."""
        value = self._at(place)
        if not option.metavar:
            if isinstance(value, bool):
                return ("",) if value else ()
            raise self._wrong(place, f"expected true or false, found {_kind(value)}")
        accepts_tables = option.table is not None or option.metavar.startswith("NAME=")
        if option.many and not isinstance(value, list) and not (isinstance(value, dict) and accepts_tables):
            raise self._wrong(place, f"expected a list, found {_kind(value)}")
        entries = value if option.many and isinstance(value, list) else [value]
        texts: list[str] = []
        for entry in entries:
            if isinstance(entry, dict) and accepts_tables:
                texts += self._texts_of_table(option, entry, place)
            else:
                texts.append(self._text(option, entry, place))
        texts = [self._with_absolute_path(text, option) for text in texts]
        for text in texts:
            try:
                if option.check:
                    option.check(text)
            except UsageError as error:
                raise self._wrong(place, str(error).removeprefix(f"--{option.name} ")) from None
        return tuple(texts)

    def _text(self, option: Option, value: object, place: tuple[str, ...]) -> str:
        numeric = option.metavar.startswith(_NUMBERS)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and numeric
        if not (isinstance(value, str) and value) and not is_number:
            expected = "a number" if numeric else "a string that is not empty"
            raise self._wrong(place, f"expected {expected}{' in it' if option.many else ''}, found {_kind(value)}")
        text = str(value)
        if option.choices and text not in option.choices:
            raise self._wrong(place, f"expected one of {', '.join(option.choices)}, found {text!r}")
        return text

    def _texts_of_table(self, option: Option, table: dict[str, object], place: tuple[str, ...]) -> list[str]:
        if option.table:
            try:
                return list(option.table(table))
            except ValueError as error:
                raise self._wrong(place, str(error)) from None
        for name, value in table.items():
            if not isinstance(value, str):
                raise self._wrong((*place, name), f"expected a string, found {_kind(value)}")
        # A project has cassettes with and without a binding.
        equals = "?=" if option.metavar == "NAME=PATH" else "="
        return [f"{name}{equals}{value}" for name, value in table.items()]

    def _strings(self, place: tuple[str, ...]) -> list[str]:
        value = self._at(place)
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            return [str(text) for text in value]
        example = '["ext-shell"]' if place[-1] == COMMAND else '["cassettes"]'
        raise self._wrong(place, f"expected a list of strings, such as {example}, found {_kind(value)}")

    def _absolute(self, path: str) -> str:
        return os.path.join(self.file.folder, os.path.expanduser(path))  # noqa: PTH111, PTH118

    def _with_absolute_path(self, text: str, option: Option) -> str:
        """Return a value whose path, if it contains one, is absolute."""
        before = _PATHS.get(option.metavar)
        if before is None or before not in text:
            return text
        head, mark, path = text.partition(before) if before else ("", "", text)
        if head and before != "=":
            return text
        return f"{head}{mark}{self._absolute(path)}"

    def _wrong(self, place: tuple[str, ...], problem: str) -> UsageError:
        """Return an error with the line of a key, if it is written in a form that this search recognizes."""
        wanted = ".".join((*(_TOOL if self.file.shared else ()), *place))
        header, where = "", self.file.path
        for number, line in enumerate(self.file.data.decode(errors="replace").splitlines(), 1):
            text = line.strip()
            if text.startswith("["):
                header = key = _bare(text.partition("]")[0].lstrip("["))
            else:
                name = _bare(text.partition("=")[0]) if "=" in text else ""
                key = f"{header}.{name}" if header else name
            if key == wanted:
                where = f"{self.file.path}:{number}"
                break
        return UsageError(f"{where}: {'.'.join(place) or '.'.join(_TOOL)}: {problem}")


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date or time") if value != "" else "an empty string"


def _bare(key: str) -> str:
    return "".join(char for char in key if char not in "\"' \t")


def toml(settings: Mapping[str, object]) -> str:
    """Return a table that `tomllib` has read as TOML, one line for each key."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        from ext_sdk.core.wire.json_codec import dumps

        return dumps(value).replace("\x7f", "\\u007f")
    return str(value)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else _value(key)
