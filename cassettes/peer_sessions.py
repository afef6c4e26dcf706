"""Sessions of the other protocols: with real peers where a package index has one, else with a reference peer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cassettes import conversations as real
from tests.peers import conversations as reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.peers.conversations import Conversation, Meeting

ROOT = Path(__file__).parents[1]
PEERS = "{peers}/"  # the programs of requirements.txt


@dataclass(frozen=True, slots=True)
class PeerSession:
    """A session to be recorded.

    Attributes:
        protocol: the dialect.
        framing: framing of the messages.
        command: the peer, run in the folder of this checkout; `{peers}` is the folder of the real programs, `{python}`
            the Python of this environment.
        conversation: sends the messages of the host, and asserts the responses.
        files: files of the workdir before the session, text by path.
        neutral: values that this machine has chosen, as regular expressions, and their replacements.
    """

    protocol: str
    framing: str
    command: tuple[str, ...]
    conversation: Conversation
    files: Mapping[str, str] = field(default_factory=dict)
    neutral: tuple[tuple[str, str], ...] = ()

    @property
    def is_real(self) -> bool:
        """Return True if the peer is a program of the package index."""
        return self.command[0].startswith(PEERS)


def _reference(protocol: str, framing: str, peer: str, conversation: Conversation, *options: str) -> PeerSession:
    command = ("{python}", "-m", f"tests.peers.{peer}", *options)
    return PeerSession(protocol, framing, command, conversation, files=reference.EVALS)


_GREET = {"greet.py": real.GREET}
_SERVED = ("{python}", "-m", "ext_shell", "serve", "--protocol", "mcp", "--deny", "*", "--allow", "run")
_NUMBERS = ((r'"port": \d+', '"port": 5678'), (r'"systemProcessId": \d+', '"systemProcessId": 1234'))
_OF_PI = (
    (r'"pid":\d+', '"pid":1234'),
    (r'"ts":"[^"]+"', '"ts":"2026-01-01T00:00:00.000Z"'),
    (r'"timeout_ms":\d+', '"timeout_ms":28000'),
)

_FIXING = Path("docs/examples/fixing")
_PROJECT = {
    str(path.relative_to(ROOT / _FIXING / "project")): path.read_text()
    for path in sorted((ROOT / _FIXING / "project").rglob("*.java"))
}


def _agent(dialect: str, conversation: Conversation) -> PeerSession:
    options = ("--protocol", "kaiak", "--dialect", dialect)
    command = ("{python}", "-m", "ext_host", "agent", *options, "--", f"{_FIXING}/agent.sh")
    return PeerSession(dialect, "content-length", command, conversation, files=_PROJECT)


SESSIONS = {
    "pi/tools": _reference("pi", "ndjson", "pi", reference.pi),
    "pi/served": PeerSession(
        "pi",
        "ndjson",
        ("{python}", "docs/examples/reviewer.py", "serve", "--protocol", "pi"),
        reference.pi_served,
        neutral=_OF_PI,
    ),
    "gassist/search": _reference("gassist", "uint32", "gassist", reference.gassist_shutdown),
    "gassist/notified": _reference("gassist", "uint32", "gassist", reference.gassist_notified),
    "gassist/greeter": PeerSession(
        "gassist",
        "uint32",
        ("{python}", "docs/examples/greeter.py", "serve", "--protocol", "gassist"),
        reference.gassist_greeter,
    ),
    "gassist/like-sdk": _reference("gassist", "uint32", "gassist", reference.gassist_sdk, "--like", "sdk"),
    "waza/runs": _reference("waza", "ndjson", "waza", reference.waza),
    "waza/like-python": _reference("waza", "ndjson", "waza", reference.waza_python, "--like", "python"),
    "waza/served": PeerSession(
        "waza",
        "ndjson",
        ("{python}", "-m", "ext_host", "serve", "--executor", "never=sleep 600"),
        reference.host_serve,
        files=reference.HOST_EVALS,
    ),
    "waza-go/runs": _reference("waza-go", "ndjson", "waza_go", reference.waza_go),
    "kaiak/fix": _reference("kaiak", "content-length", "kaiak", reference.kaiak),
    "kaiak/greeted": _reference("kaiak", "content-length", "kaiak", reference.kaiak_greeted),
    "kaiak/served": _agent("kaiak", reference.kaiak_served),
    "kaiak-head/served": _agent("kaiak-head", reference.kaiak_head_served),
    "kaiak-head/fix": _reference("kaiak-head", "content-length", "kaiak_head", reference.kaiak_head),
    "mcp/time": PeerSession("mcp", "ndjson", (f"{PEERS}mcp-server-time", "--local-timezone", "UTC"), real.mcp),
    "mcp/discovered": _reference("mcp", "ndjson", "mcp", reference.mcp),
    "mcp/served": PeerSession("mcp", "ndjson", _SERVED, real.served),
    "lsp/document": PeerSession("lsp", "content-length", (f"{PEERS}pylsp",), real.lsp, files=_GREET),
    "dap/breakpoint": PeerSession(
        "dap", "content-length", (f"{PEERS}python", "-m", "debugpy.adapter"), real.dap, files=_GREET, neutral=_NUMBERS
    ),
    "acp/prompt": PeerSession("acp", "ndjson", (f"{PEERS}python", "cassettes/agent.py"), real.acp, files=_GREET),
    "jsonrpc/calls": _reference("jsonrpc", "ndjson", "calls", reference.calls),
    "raw/lines": PeerSession("raw", "ndjson", ("sed", "-u", "s/^/you said: /"), reference.lines),
}


@dataclass(frozen=True, slots=True)
class Sockets:
    """A session of a reference server on sockets, with two clients.

    Attributes:
        protocol: the dialect.
        framing: framing of the messages.
        peer: the module of the server.
        address: where it listens, and the recorder: below `{folder}`.
        meeting: sends the messages of the clients, and asserts the responses.
    """

    protocol: str
    framing: str
    peer: str
    address: str
    meeting: Meeting


MEETINGS = {
    "waza/two-clients": Sockets("waza", "ndjson", "waza", "tcp:127.0.0.1:0", reference.waza_two_clients),
    "kaiak/two-clients": Sockets(
        "kaiak", "content-length", "kaiak", "unix:{folder}/{name}.sock", reference.kaiak_two_clients
    ),
}
