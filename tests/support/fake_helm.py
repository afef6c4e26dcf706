"""Fake of the program helm: it keeps its arguments, and outputs what a test has set."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = r"""#!/bin/sh
case $1 in history | get) asked="$0.$1.argv" ;; *) asked="$0.argv" ;; esac
printf '%s\n' "$@" > "$asked"
printf '%s' "$KUBECONFIG" > "$0.kubeconfig"
for arg in "$@"; do
    if [ "$arg" = --values=- ]; then cat > "$0.values"; fi
done
echo 'WARNING: this is not JSON' >&2
if [ -f "$0.hang" ]; then case $1 in $(cat "$0.hang")) exec sleep 1000 ;; esac; fi
case $1 in install | upgrade | rollback | uninstall) while [ -f "$0.hooks" ]; do sleep 0.05; done ;; esac
if [ -f "$0.error" ]; then cat "$0.error" >&2; exit 1; fi
if [ -f "$0.missing" ]; then
    case $1 in history | get | uninstall) echo 'Error: release: not found' >&2; exit 1 ;; esac
fi
case $1 in
    install | upgrade) printf 'NAME: %s\nNAMESPACE: default\nSTATUS: deployed\nREVISION: 2\n' "$2" ;;
    list | history) cat "$0.$1" ;;
    get) cat "$0.get-$2" ;;
    rollback) echo 'Rollback was a success! Happy Helming!' ;;
    uninstall) printf 'release "%s" uninstalled\n' "$2"; touch "$0.missing" ;;
esac
"""
RELEASES = '[{"name":"web","namespace":"default","revision":"2","status":"deployed","chart":"web-1.2.3"}]'
FIRST = {"revision": 1, "status": "superseded", "chart": "web-1.2.2", "app_version": "8", "description": "Installed"}
SECOND = {"revision": 2, "status": "deployed", "chart": "web-1.2.3", "app_version": "9", "description": "Upgraded"}


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
        self.history(FIRST, SECOND)
        self.say("get-manifest", "---\n")
        self.say("get-values", '{"replicas":2}')

    @property
    def path(self) -> str:
        """A PATH with it in front."""
        return f"{self._file.parent}{os.pathsep}{os.environ['PATH']}"

    def say(self, what: str, text: str) -> None:
        """Set an output: `list`, `get-manifest`, `get-values`, or the `error` to fail with.

        `hang`: commands of this pattern run until they are killed. `missing`: the release does not exist. `hooks`: they
        run until `forget`.
        """
        self._file.with_name(f"helm.{what}").write_text(text)

    def forget(self, what: str) -> None:
        """Undo `say`: `hooks` end, and commands do not `hang`."""
        self._file.with_name(f"helm.{what}").unlink()

    def history(self, *revisions: dict[str, object]) -> None:
        """Set the revisions of its release, the latest last."""
        self.say("history", json.dumps(revisions))
        self._file.with_name("helm.missing").unlink(missing_ok=True)

    def heard(self, what: str) -> str:
        """Return what it received: `argv`, `kubeconfig`, and the `values` on its standard input."""
        return self._file.with_name(f"helm.{what}").read_text()
