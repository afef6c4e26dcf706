"""Prepared files of an extension: its manifest, the early check of its configuration, outputs and tools.

    ext-sdk prepare ext_shell.extension:extension

With them the extension responds to `initialize` before it imports anything, over gevals from the manifest, and over
other protocols (`serve`) from the tools. The schema differs from that of
`server.schema`, which hosts read: every configuration that it accepts must be valid (see `server.config_check`), and it
accepts nothing if the types of the class do not show that.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import inspect

from ext_sdk.core.gevals_spec import CONFIG_FILE, MANIFEST_FILE, OPERATIONS_FILE, TOOLS_FILE
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.server.manifest import build_manifest
from ext_sdk.server.mcp import build_tools

from .definition import Definition
from .duration import Duration
from .references import VERBATIM

if TYPE_CHECKING:
    from .args import Config, Schema
    from .operation import Operation


def config_schema(config_type: type[Config]) -> Schema | bool:
    """Return the schema of a class of configuration; False if no value is certainly valid."""
    return _of(inspect.type_info(config_type))


def _of(kind: inspect.Type) -> Schema | bool:
    if isinstance(kind, inspect.Metadata):
        return _of(kind.type)
    if isinstance(kind, inspect.StructType):
        return _struct(kind)
    if isinstance(kind, inspect.UnionType):
        return {"anyOf": [_of(member) for member in kind.types]}
    if isinstance(kind, inspect.ListType) and kind.min_length is None and kind.max_length is None:
        return {"type": "array", "items": _of(kind.item_type)}
    if isinstance(kind, inspect.DictType) and type(kind.key_type) is inspect.StrType:
        unbounded = kind.key_type == inspect.StrType() and kind.min_length is None and kind.max_length is None
        return unbounded and {"type": "object", "additionalProperties": _of(kind.value_type)}
    return _scalar(kind)


def _scalar(kind: inspect.Type) -> Schema | bool:
    if isinstance(kind, inspect.StrType) and kind.min_length is None and kind.max_length is None:
        schema: Schema = {"type": "string"}
        return schema if kind.pattern is None else schema | {"pattern": kind.pattern}
    if isinstance(kind, inspect.IntType) and kind.gt is None and kind.lt is None and kind.multiple_of is None:
        limits = {"minimum": kind.ge, "maximum": kind.le}
        return {"type": "integer"} | {word: limit for word, limit in limits.items() if limit is not None}
    if isinstance(kind, inspect.BoolType):
        return {"type": "boolean"}
    if isinstance(kind, inspect.LiteralType):
        return {"enum": list(kind.values)}
    if isinstance(kind, inspect.CustomType) and kind.cls is Duration:
        return {"type": "string", "check": "ext_sdk.server.config_check:check_duration"}
    return False


def _struct(kind: inspect.StructType) -> Schema | bool:
    if kind.tag_field is not None or kind.array_like:
        return False
    schema: Schema = {
        "type": "object",
        "properties": {field.encode_name: _of(field.type) for field in kind.fields},
        "additionalProperties": False,
    }
    if required := [field.encode_name for field in kind.fields if field.required]:
        schema["required"] = required
    checks: list[Schema | bool] = []  # of the class and of those that it extends
    for base in kind.cls.__mro__:
        if "early_check" in vars(base):
            checks.append({"check": str(vars(base)["early_check"])})
        elif "__post_init__" in vars(base):
            checks.append(False)
    return schema | ({"allOf": checks} if checks else {})


def prepared(target: str) -> dict[Path, bytes]:
    """Return the content of each file that is prepared for `package.module:name`."""
    module, _, name = target.partition(":")
    try:
        extension = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if not error.name or not f"{module}.".startswith(f"{error.name}."):
            raise  # of an import in the module
        advice = "install the package (`pip install --editable .`), or change to the folder that has it"
        raise SystemExit(f"{target}: found no module {error.name}; {advice}") from None
    if not isinstance(extension, Definition):
        found = "no such name" if extension is None else type(extension).__name__
        raise SystemExit(f"{target}: expected an ext_sdk.Extension, found {found}")
    if not hasattr(import_module(module.partition(".")[0]), "__path__"):
        raise SystemExit(f"{target}: expected a module in a package, which has the prepared files, found {module}.py")
    folder = _folder(target)
    values: dict[str, object] = {
        MANIFEST_FILE: build_manifest(extension),
        CONFIG_FILE: config_schema(extension.config_type),
    }
    if facts := {name: each for name, operation in extension.operations.items() if (each := _facts(operation))}:
        values[OPERATIONS_FILE] = facts
    files = {folder / name: dumps(value).encode() + b"\n" for name, value in values.items()}
    return files | {folder / TOOLS_FILE: build_tools(extension)}


def _facts(operation: Operation) -> dict[str, object]:
    """Return what tools need to check calls of an operation, and the manifest does not have."""
    verbatim = [name for name, mark in operation.marks.items() if mark == VERBATIM]
    outputs = {} if operation.outputs is None else {"outputs": operation.outputs}
    return outputs | ({"verbatim": verbatim} if verbatim else {})


def _folder(target: str) -> Path:
    """Return the folder of the package of `package.module:name`."""
    return Path(import_module(target.partition(":")[0].partition(".")[0]).__path__[0])


TOLERANCE_SECONDS = 2.0  # an installer writes the files of a package one after the other
SETTLED_SECONDS = 60.0  # after a change of a source, until the state that was imported is certainly the present one


def stale_warning(target: str) -> str:
    """Return a warning if the prepared files of `package.module:name` are not those of its classes; "" if they are.

    They are only compared if a source of the package is newer. If they are the same, the manifest then gets the time of
    that source, so that they are compared once after a change.
    """
    folder = _folder(target)
    manifest = folder / MANIFEST_FILE
    newest = max((path.stat().st_mtime for path in folder.rglob("*.py")), default=0.0)
    if newest <= manifest.stat().st_mtime + TOLERANCE_SECONDS:
        return ""
    try:
        stale = [path for path, content in prepared(target).items() if not _is_current(path, content)]
    except (TypeError, ValueError) as error:
        return f"{manifest} is stale: a source is newer, and it cannot be prepared again: {error}"
    if stale:
        paths = " and ".join(map(str, stale))
        are = "is" if len(stale) == 1 else "are"
        return f"{paths} {are} stale, and hosts get what was prepared before: run `ext-sdk prepare {target}`"
    if newest < time.time() - SETTLED_SECONDS:
        with suppress(OSError):  # of another user, or read-only: the next process compares them again
            os.utime(manifest, (newest, newest))
    return ""


def _is_current(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def main(arguments: list[str]) -> int:
    """Write the prepared files, or, with `--check`, compare them."""
    check = "--check" in arguments
    targets = [target for target in arguments if target != "--check"]
    for target in targets or [""]:
        if not all(target.partition(":")):
            raise SystemExit(f"expected PACKAGE.MODULE:NAME, such as ext_git.extension:extension, found {target!r}")
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not search the current folder
        sys.path.insert(0, here)
    stale = 0
    files = [(target, *file) for target in targets for file in prepared(target).items()]
    for target, path, content in files:
        if _is_current(path, content):
            continue
        stale += 1
        state = "is stale" if path.is_file() else "is missing"
        print(f"{path}: " + (f"{state}: run `ext-sdk prepare {target}`" if check else "written"))
        if not check:
            path.write_bytes(content)
    return int(check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
