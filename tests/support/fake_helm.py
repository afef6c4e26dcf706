"""A helm that installs nothing: it keeps its arguments, and says what it is told to say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = r"""#!/bin/sh
printf '%s\n' "$@" > "$0.argv"
printf '%s' "$KUBECONFIG" > "$0.kubeconfig"
for arg in "$@"; do
    file=${arg#--values=}
    if [ "$file" != "$arg" ]; then stat -c %a "$file" > "$0.mode"; cp "$file" "$0.values"; echo "$file" > "$0.file"; fi
done
echo 'WARNING: this is not JSON' >&2
if [ -f "$0.hang" ]; then exec sleep 1000; fi
if [ -f "$0.error" ]; then cat "$0.error" >&2; exit 1; fi
case $1 in
    install | upgrade) printf 'NAME: %s\nNAMESPACE: default\nSTATUS: deployed\nREVISION: 1\n' "$2" ;;
    list) cat "$0.list" ;;
    uninstall) printf 'release "%s" uninstalled\n' "$2" ;;
esac
"""
RELEASES = '[{"name":"web","namespace":"default","revision":"1","status":"deployed","chart":"web-1.2.3"}]'


class FakeHelm:
    """The program.

    Args:
        directory: to put it into; is made.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._file = directory / "helm"
        self._file.write_text(SCRIPT)
        self._file.chmod(0o755)
        self.say("list", RELEASES)

    @property
    def path(self) -> str:
        """A PATH with it in front."""
        return f"{self._file.parent}{os.pathsep}{os.environ['PATH']}"

    def say(self, what: str, text: str) -> None:
        """Say it: `list` for its releases, `error` to fail with, `hang` to go on and on."""
        self._file.with_name(f"helm.{what}").write_text(text)

    def heard(self, what: str) -> str:
        """What it was given: `argv`, `kubeconfig`, and of its last file of values `values`, `mode` and `file`."""
        return self._file.with_name(f"helm.{what}").read_text()
