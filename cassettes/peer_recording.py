"""Record a session with a peer of another protocol."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cassettes.peer_sessions import MEETINGS, SESSIONS
from tests.peers.conversations import EVALS, Names
from tests.peers.listeners import listening
from tests.support.host import MessageHost, connected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassettes.peer_sessions import PeerSession

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "cassettes" / "requirements.txt"
VENV = ROOT / "build" / "peers"
BIN = Path(sys.executable).parent


def record(name: str) -> Path:
    """Record one session. Return the path of the cassette. Raises SystemExit if the peer fails."""
    session = SESSIONS[name]
    path = ROOT / "cassettes" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as workdir, tempfile.TemporaryDirectory() as home:
        write(Path(workdir), session.files)
        paths = {"python": sys.base_prefix, "peers": str(VENV)} if session.is_real else {}
        binds = [f"--bind={name}={path}" for name, path in paths.items()]
        options = ["--mode", "all", "--protocol", session.protocol, *binds]
        command = [str(BIN / "ext-recorder"), "record", *options, str(path), "--", *program(session)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
        with MessageHost(command, session.framing, environment, ROOT) as host:
            session.conversation(host, Names(), Path(workdir))
            code = host.end()
    if code != 0:
        raise SystemExit(f"{name}: the peer ended with exit code {code}: {host.err.decode()}")
    text = path.read_text()
    for pattern, neutral in session.neutral:
        text = re.sub(pattern, neutral, text)
    path.write_text(text)
    return path


def record_meeting(name: str) -> Path:
    """Record a session over sockets. Return the path of the cassette. Raises SystemExit if the recorder fails."""
    meeting = MEETINGS[name]
    path = ROOT / "cassettes" / f"{name}.yaml"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        write(Path(folder), EVALS)
        own, listen = (meeting.address.format(folder=sockets, name=each) for each in ("server", "recorder"))
        with listening(meeting.peer, own) as server:
            options = ["--mode", "all", "--protocol", meeting.protocol, f"--listen={listen}", f"--connect={server}"]
            command = [str(BIN / "ext-recorder"), "record", *options, str(path)]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recorder:
                assert recorder.stderr is not None
                place = recorder.stderr.readline().partition("listening on ")[2].partition(",")[0].strip()
                (one, first), (other, second) = (connected(place, meeting.framing) for _ in range(2))
                with one, other:
                    meeting.meeting(first, second, Names(), Path(folder))
                recorder.terminate()
                told = recorder.communicate()[1]
    if not path.exists():
        raise SystemExit(f"{name}: {told}")
    return path


def program(session: PeerSession) -> list[str]:
    """Return the command of a peer. Real peers are installed when they are first needed."""
    if session.is_real and not (VENV / "pyvenv.cfg").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin" / "pip", "install", "--quiet", "--requirement", REQUIREMENTS], check=True)
    return [word.format(python=sys.executable, peers=VENV / "bin") for word in session.command]


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write files, given by their paths in a directory."""
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
