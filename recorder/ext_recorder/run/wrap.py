"""Copies of a host's configuration files in which each child on stdio is started through the recorder.

Known are Eval and Agent files of mcpchecker, and the lists of MCP servers of Claude, Cursor and VS Code. A copy is the
text of its file with a few values replaced, so the host reads the rest exactly as it is written.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ext_recorder.errors import UsageError

from .children import SHIMS, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Text = Callable[[str], str]  # from the folder of the session to a text

CONFIG = "config"  # folder of the copies, in the folder of the session; ext_host.files knows it, too
MOST_BYTES = 16 * 1024 * 1024
SERVER_LISTS = ("mcpServers", "servers")
# Tokens of JSON that YAML does not have, and strings, which may contain them.
_NOT_YAML = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)


class _File:
    """Configuration file, and the changes for its copy.

    Args:
        path: its path; that of a file in the current folder if it has only a text.
        text: its text, if a host gets this instead of a file; "" to read the file.

    Raises:
        UsageError: it cannot be read.
    """

    def __init__(self, path: Path, text: str = "") -> None:
        self.path = path
        self._changes: dict[int, tuple[int, Text]] = {}
        try:
            if not text and path.stat().st_size > MOST_BYTES:
                raise UsageError(f"--wrap {path}: expected a configuration file, found {path.stat().st_size} bytes")
            self._text = text or path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--wrap {path}: cannot be read: {error}") from None
        self.root = self._parsed()

    def _parsed(self) -> yaml.Node | None:
        """Return the document, of YAML or of JSON with comments."""
        texts, problem = [self._text], ""
        if self._text.lstrip("\ufeff \t\r\n").startswith("{"):  # marks are positions, so they must stay the same
            texts.insert(
                0,
                _NOT_YAML.sub(
                    lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), texts[0]
                ),
            )
        for text in texts:
            try:
                return yaml.compose(text, Loader=yaml.SafeLoader)
            except yaml.YAMLError as error:
                problem = " ".join(str(error).split())
        raise UsageError(f"--wrap {self.path}: neither YAML nor JSON: {problem}")

    def replace(self, node: yaml.Node, text: Text) -> None:
        """Write other text in place of a value."""
        self._changes[node.start_mark.index] = (node.end_mark.index, text)

    def insert(self, position: int, text: Text) -> None:
        """Write text before a position."""
        self._changes[position] = (position, text)

    def has_changes(self) -> bool:
        """Return True if the copy differs from the file."""
        return bool(self._changes)

    def changed(self, session: str) -> str:
        """Return the text of the copy."""
        pieces, at = [], 0
        for start, (end, text) in sorted(self._changes.items()):
            pieces += [self._text[at:start], text(session)]
            at = end
        return "".join([*pieces, self._text[at:]])


class Wrapping:
    """Configuration files of a host, the children that they name, and the copies of the files.

    Args:
        files: values of `--wrap`: files, or texts in JSON.
        command: command line of the host, which names these files, or has these texts.

    Attributes:
        commands: the children by name, each with the words that the host does not pass.
        agents: those that are ACP agents.
        extensions: those that are extensions.
        remarks: on children that cannot be recorded.

    Raises:
        UsageError: a file is not of a known form, or the command does not name it.
    """

    def __init__(self, files: Sequence[str], command: Sequence[str]) -> None:
        self.commands: dict[str, tuple[str, ...]] = {}
        self.remarks: list[str] = []
        self.agents: set[str] = set()
        self.extensions: set[str] = set()
        self._files: dict[str, _File] = {}  # by real path, or text
        self._command = list(command)
        self._given = {_key(file): file for file in files}
        for path, file in self._given.items():
            if not any(_renamed(word, path, "") != word for word in command):
                raise UsageError(f"--wrap {file}: COMMAND does not name this file, so the host cannot be given a copy")
            if path in self._files:
                continue  # another file refers to it
            before = len(self.commands)
            if is_text(file):
                self._read(path, _File(Path("servers.json"), file))
            else:
                self._add(Path(file))
            if len(self.commands) == before and not self._files[path].has_changes():
                expected = "an Eval or Agent file of mcpchecker, or `mcpServers` or `servers`"
                raise UsageError(f"--wrap {file}: no children that use stdio found; expected {expected}")

    def write(self, session: str) -> list[str]:
        """Write the copies to the folder of the session. Return the command line, with the copies in it."""
        for path, file in self._files.items():
            copy = Path(_copy_of(path, session))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.changed(session), encoding="utf-8")
            copy.chmod(0o600)  # configurations contain secrets
        command = self._command
        for path in self._given:
            copy_of = _copy_of(path, session)
            command = [_renamed(word, path, copy_of) for word in command]
        return command

    def _add(self, path: Path) -> None:
        """Read a configuration file, unless it was read before."""
        real = os.path.realpath(path)
        if real not in self._files:
            self._read(real, _File(path))

    def _read(self, path: str, file: _File) -> None:
        self._files[path] = file
        kind = _text(_value(file.root, "kind"))
        if kind == "Eval":
            self._add_eval(file)
        elif kind == "Agent":
            name = _text(_value(_value(file.root, "metadata"), "name")) or "agent"
            before = set(self.commands)
            self._add_server(file, name, _value(file.root, "acp"), "cmd", "agent")
            self.agents |= set(self.commands) - before
        else:
            for name, server in _servers(file.root):
                self._add_server(file, name, server, "command", "server")

    def _add_eval(self, file: _File) -> None:
        config = _value(file.root, "config")
        for name, extension in _items(_value(config, "extensions")):
            self._add_extension(file, name, _value(extension, "package"))
        for agent in (_value(config, "agent"), _value(_value(config, "llmJudge"), "ref")):
            if _text(_value(agent, "type")) == "file":
                self._refer(file, _value(agent, "path"))
        self._refer(file, _value(config, "mcpConfigFile"))
        for source in _list(_value(_value(config, "skills"), "sources")):
            _keep(file, _value(source, "path"))
        for tasks in _list(_value(config, "taskSets")):
            if not _text(_value(tasks, "source")):  # else relative to a repository
                _keep(file, _value(tasks, "path"))
                _keep(file, _value(tasks, "glob"))

    def _add_extension(self, file: _File, name: str, package: yaml.Node | None) -> None:
        program = _text(package).removeprefix("file://")
        if package is None or not program:
            return
        if not program.startswith(("./", "../", "/", "~/")) and program == _text(package):
            remedy = "to record it, download it, and name the file as the package"
            self.remarks.append(f"not recorded: extension {name}: the host fetches its package {program}; {remedy}")
            return
        program = os.path.join(file.path.resolve().parent, os.path.expanduser(program))  # noqa: PTH111, PTH118
        program = os.path.normpath(program)
        shim = self._shim(name, "extension", (program,))
        self.extensions.add(shim.rpartition("/")[2])
        file.replace(package, lambda session: json.dumps(f"{session}/{shim}"))

    def _add_server(self, file: _File, name: str, server: yaml.Node | None, key: str, kind: str) -> None:
        """Add a child whose command and arguments are two values: the shim gets both as its arguments."""
        command, args = _value(server, key), _value(server, "args")
        if not _text(command) or command is None or _text(_value(server, "disabled")) == "true":
            return
        shim = self._shim(name, kind, ())
        program = json.dumps(_text(command))
        further = ""
        if isinstance(args, yaml.SequenceNode) and args.value and not args.flow_style:
            item = f"- {program}\n{' ' * args.start_mark.column}"
            file.insert(args.start_mark.index, lambda _: item)
        elif isinstance(args, yaml.SequenceNode):
            first = program + (", " if args.value else "")
            file.insert(args.start_mark.index + 1, lambda _: first)
        elif args is not None:  # `args:` without a value, or null
            file.replace(args, lambda _: f" [{program}]")
        elif getattr(server, "flow_style", False):
            further = f', "args": [{program}]'
        else:
            further = f"\n{' ' * (server.start_mark.column if server else 0)}args: [{program}]"
        file.replace(command, lambda session: json.dumps(f"{session}/{shim}") + further)

    def _shim(self, name: str, kind: str, command: tuple[str, ...]) -> str:
        """Return the shim of a child, as a path in the folder of the session."""
        base = name = plain(name)
        if name in self.commands:  # an extension and an MCP server, for example
            name = base = f"{base}-{kind}"
        number = 1
        while name in self.commands:
            number += 1
            name = f"{base}-{number}"
        self.commands[name] = command
        return f"{SHIMS}/{name}"

    def _refer(self, file: _File, node: yaml.Node | None) -> None:
        """Change the path of another file to that of its copy."""
        if node is None or not _text(node):
            return
        path = file.path.resolve().parent / _text(node)
        try:
            self._add(path)
        except UsageError:  # the host reports the problem
            _keep(file, node)
            return
        real = os.path.realpath(path)
        file.replace(node, lambda session: json.dumps(_copy_of(real, session)))


def is_text(file: str) -> bool:
    """Return True if a value of `--wrap` is a text in JSON, not the path of a file."""
    return file.startswith("{")


def wrappable(command: Sequence[str]) -> list[str]:
    """Return the words of a command line, or values of its options, that are files for `--wrap`."""
    found = []
    for word in command:
        for file in dict.fromkeys((word, word.partition("=")[2])):
            if file.endswith((".yaml", ".yml", ".json")) and os.path.isfile(file):  # noqa: PTH113
                with suppress(UsageError):
                    found += [file] if Wrapping([file], command).commands else []
    return found


def _copy_of(path: str, session: str) -> str:
    """Return the path of the copy of a file, whose end is the path of the file: the host names it in its errors."""
    return f"{session}/{CONFIG}{'/servers.json' if is_text(path) else path}"


def _key(file: str) -> str:
    """Return the real path of a file; a text in JSON as it is."""
    return file if is_text(file) else os.path.realpath(file)


def _keep(file: _File, node: yaml.Node | None) -> None:
    """Keep the meaning of a path in another folder: make it absolute."""
    if node is not None and (text := _text(node)) and not os.path.isabs(text):  # noqa: PTH117
        path = os.path.normpath(os.path.join(file.path.resolve().parent, text))  # noqa: PTH118
        file.replace(node, lambda _: json.dumps(path))


def _servers(root: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the MCP servers of a file: at its top, in `mcp` of VS Code's settings, in the projects of Claude."""
    places = [root, _value(root, "mcp"), *(project for _, project in _items(_value(root, "projects")))]
    for place in places:
        for key in SERVER_LISTS:
            yield from _items(_value(place, key))


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for name, value in reversed(list(_items(node))) if name == key), None)


def _items(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((_text(key), value) for key, value in node.value)


def _list(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _renamed(word: str, path: str, copy: str) -> str:
    """Return a word of a command line with a copy in the place of a file: FILE, or --option=FILE."""
    if word and _key(word) == path:
        return copy
    option, equals, value = word.partition("=")
    return f"{option}={copy}" if equals and value and _key(value) == path else word
