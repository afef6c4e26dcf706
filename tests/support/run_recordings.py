"""Commands that are recorded by `ext-recorder run` while servers run, and replayed after these have ended."""

from __future__ import annotations

import os
import ssl
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import trustme

from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Variables of the user that would change where programs connect, and what they trust.
REMOVED = (
    "KUBECONFIG", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NIX_SSL_CERT_FILE", "AWS_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL",
)  # fmt: skip
MISSES = ("never recorded", "differ", "no answer", "not recorded", "Traceback")


class Run(NamedTuple):
    """Result of a run."""

    code: int
    out: str
    err: str


def run_recorder(folder: Path, *words: str, **environ: str) -> Run:
    """Run `ext-recorder run` in a folder, with these words after it."""
    done = subprocess.run(
        [*RECORDER, "run", *words],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        timeout=PATIENCE_S,
        text=True,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


class Recording:
    """Recording of one command in the folder `rec`.

    Args:
        folder: in which the command runs.
        environ: of the command, in addition to that of the test.
    """

    def __init__(self, folder: Path, command: Sequence[str], **environ: str) -> None:
        self.folder = folder
        self.command = list(command)
        self.environ = environ
        self.recorded = Run(0, "", "")

    def run(self, *options: str, environ: Mapping[str, str] | None = None) -> Run:
        """Run the command with the recorder."""
        kept = {name: value for name, value in os.environ.items() if name not in REMOVED}
        done = subprocess.run(
            [*RECORDER, "run", *options, "rec", "--", *self.command],
            cwd=self.folder,
            env=kept | (self.environ if environ is None else dict(environ)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Run(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def record(self, *options: str, code: int = 0) -> Run:
        """Record the command."""
        self.recorded = self.run(*options)
        assert self.recorded.code == code, self.recorded
        assert "not recorded" not in self.recorded.err, self.recorded.err
        return self.recorded

    def check_replay(self, *options: str, environ: Mapping[str, str] | None = None) -> Run:
        """Replay the command without network; it must do what it did."""
        replayed = self.run("--mode", "none", *options, environ=environ)
        assert (replayed.code, replayed.out) == (self.recorded.code, self.recorded.out), (self.recorded, replayed)
        assert not any(word in replayed.err for word in MISSES), replayed.err
        return replayed

    @property
    def traffic(self) -> str:
        """Return the file of HTTP traffic."""
        return (self.folder / "rec" / "traffic.http.yaml").read_text()


def server_context(folder: Path, *names: str) -> ssl.SSLContext:
    """Return TLS for a server with these names; its authority is written to `ca.pem` in the folder."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context
