"""Write the prepared manifest of an extension into its package.

    python -m ext_sdk.prepare ext_shell.extension:extension

With `--check` nothing is written: exit code 1 says that the file is not what the extension would say.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from .boot import MANIFEST_FILE
from .extension import Extension
from .wire import dumps


def prepared(target: str) -> tuple[Path, bytes]:
    """Where the manifest of `package.module:name` belongs, and what it must hold."""
    module, _, name = target.partition(":")
    extension = getattr(import_module(module), name)
    if not isinstance(extension, Extension):
        raise SystemExit(f"{target}: expected an ext_sdk.Extension, found {type(extension).__name__}")
    package = import_module(module.partition(".")[0])
    path = Path(package.__path__[0]) / MANIFEST_FILE
    return path, dumps(extension.manifest()).encode() + b"\n"


def main(arguments: list[str]) -> int:
    """See the module."""
    check = "--check" in arguments
    targets = [target for target in arguments if target != "--check"]
    if not targets or any(":" not in target for target in targets):
        raise SystemExit("usage: python -m ext_sdk.prepare [--check] PACKAGE.MODULE:NAME ...")
    stale = 0
    for target in targets:
        path, content = prepared(target)
        if path.is_file() and path.read_bytes() == content:
            continue
        stale += 1
        print(f"{path}: " + ("is stale: run `make docs`" if check else "written"))
        if not check:
            path.write_bytes(content)
    return int(check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
