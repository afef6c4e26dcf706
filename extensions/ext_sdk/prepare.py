"""Write the prepared manifest of an extension, and the schema of its configuration, into its package.

    python -m ext_sdk.prepare ext_shell.extension:extension

With `--check` nothing is written: exit code 1 says that a file is not what the extension would say.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from .boot import CONFIG_FILE, MANIFEST_FILE
from .config_schema import config_schema
from .extension import Extension
from .wire import dumps


def prepared(target: str) -> dict[Path, bytes]:
    """Return the content of each file that is prepared for `package.module:name`."""
    module, _, name = target.partition(":")
    extension = getattr(import_module(module), name)
    if not isinstance(extension, Extension):
        raise SystemExit(f"{target}: expected an ext_sdk.Extension, found {type(extension).__name__}")
    package = import_module(module.partition(".")[0])
    folder = Path(package.__path__[0])
    values = {MANIFEST_FILE: extension.manifest(), CONFIG_FILE: config_schema(extension.config_type)}
    return {folder / name: dumps(value).encode() + b"\n" for name, value in values.items()}


def main(arguments: list[str]) -> int:
    """See the module."""
    check = "--check" in arguments
    targets = [target for target in arguments if target != "--check"]
    if not targets or any(":" not in target for target in targets):
        raise SystemExit("usage: python -m ext_sdk.prepare [--check] PACKAGE.MODULE:NAME ...")
    stale = 0
    for path, content in (file for target in targets for file in prepared(target).items()):
        if path.is_file() and path.read_bytes() == content:
            continue
        stale += 1
        print(f"{path}: " + ("is stale: run `make docs`" if check else "written"))
        if not check:
            path.write_bytes(content)
    return int(check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
