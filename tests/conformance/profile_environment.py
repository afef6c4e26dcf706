"""What the calls of profiles need: an API server with some objects, a helm that says a word, a web server.

    python -m tests.conformance.profile_environment COMMAND...

runs COMMAND with them in its environment.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.fake_kubernetes import FakeApi
from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONG = 'a "line" of text\n' * 10_000  # over 65,535 bytes, and more of them in JSON
HELM = '#!/bin/sh\nprintf %s "$WORD"\n'
DONE = b'{"status":"Success"}'


@contextmanager
def web() -> Iterator[Mapping[str, str]]:
    """The environment of an extension that is to find http://conformance.test, by a proxy; gone after the block.

    An address can be given to all calls of a profile in this way only: it has no place for a port.
    """
    with Stub() as server:
        never = threading.Event()
        site = "http://conformance.test"
        server.says(f"{site}/hello", "hello")
        server.says(f"{site}/long", LONG)
        server.does(f"{site}/echo", lambda handler, asked: handler.answer(200, asked.header("X-Word") or ""))
        server.does(f"{site}/never", lambda handler, asked: handler.close_after(never))
        yield {"http_proxy": server.origin, "no_proxy": "127.0.0.1"}  # the API server is there
        never.set()


@contextmanager
def cluster(directory: Path) -> Iterator[Mapping[str, str]]:
    """The environment of an extension that is to find them; they are gone after the `with` block.

    Args:
        directory: an empty one.
    """
    helm = directory / "helm"
    helm.write_text(HELM)
    helm.chmod(0o755)
    ready = [{"type": "Ready", "status": "True"}]
    with FakeApi() as api:
        api.put("pods", {
            "metadata": {"name": "nginx"},
            "spec": {"containers": [{"name": "nginx"}]},
            "status": {"phase": "Running", "conditions": ready},
        })  # fmt: skip
        api.put("configmaps", {"metadata": {"name": "long"}, "data": {"text": LONG}})
        api.commands["tar"] = lambda _: [(1, _tar("notes.txt", b"remember the milk")), (3, DONE)]
        path = f"{directory}{os.pathsep}{os.environ['PATH']}"
        yield {"KUBECONFIG": str(api.kubeconfig(directory / "kubeconfig")), "PATH": path}


def _tar(name: str, content: bytes) -> bytes:
    """An archive with one file."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def main() -> int:
    """See the module."""
    with tempfile.TemporaryDirectory() as directory, web() as site, cluster(Path(directory)) as objects:
        return subprocess.run(sys.argv[1:], env={**os.environ, **site, **objects}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
