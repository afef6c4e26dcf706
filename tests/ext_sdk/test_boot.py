"""The start of an extension: the manifest first, and nothing heavy before it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ext_sdk
from tests.ext_sdk.peer import PATIENCE_SECONDS, Peer, execute, request

# What costs milliseconds to import, by measurement; `_json` and `os` are there in any case.
HEAVY = {
    *("re", "json", "typing", "dataclasses", "enum", "logging", "threading", "asyncio", "msgspec", "click", "yaml"),
    *(
        "argparse",
        "inspect",
        "pathlib",
        "select",
        "signal",
        "socket",
        "subprocess",
        "tempfile",
        "traceback",
        "contextlib",
    ),
}

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def prepared(tmp_path: Path) -> list[str]:
    """An extension whose manifest is prepared, and is another one than it would build."""
    (tmp_path / "manifest.json").write_bytes(b'{"name":"prepared"}\n')
    program = (
        "from ext_sdk.boot import run\n"
        "def load():\n"
        "    import samples_probe; return samples_probe.extension\n"
        f"raise SystemExit(run(load, [], {str(tmp_path / 'manifest.json')!r}))\n"
    )
    (tmp_path / "samples_probe.py").write_bytes((SAMPLES / "probe.py").read_bytes())
    (tmp_path / "program.py").write_text(program)
    return [sys.executable, str(tmp_path / "program.py")]


INITIALIZE = {"protocolVersion": "0.0.1"}


@pytest.mark.parametrize("id", [1, -5, 0, "a", 'quo"te \ud800 ä', 2**63 - 1])
@pytest.mark.parametrize("params", [INITIALIZE, INITIALIZE | {"config": {}}, INITIALIZE | {"config": None}])
def test_the_prepared_manifest_answers_a_plain_initialize(prepared: list[str], id: object, params: object) -> None:
    with Peer(prepared) as peer:
        peer.send(request(id, "initialize", params))
        answer = peer.message()
        assert (answer["id"], answer["result"]) == (id, {"name": "prepared"})
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"
        assert shown_code(peer.initialize()) == -32600


def shown_code(answer: dict[str, object]) -> object:
    error = answer["error"]
    assert isinstance(error, dict)
    return error["code"]


def test_nothing_heavy_is_imported_before_the_manifest_is_out(tmp_path: Path) -> None:
    """Without site-packages (-S), whose hooks may have imported it already."""
    (tmp_path / "manifest.json").write_bytes(b"{}\n")
    program = (
        "import os, sys; before = set(sys.modules)\n"
        "from ext_sdk.boot import run\n"
        "def load():\n"
        "    os.write(2, ' '.join(sorted(set(sys.modules) - before)).encode())\n"
        "    os._exit(0)\n"
        "run(load, [], sys.argv[1])\n"
    )
    command = [sys.executable, "-S", "-c", program, str(tmp_path / "manifest.json")]
    with Peer(command, {"PYTHONPATH": str(Path(ext_sdk.__path__[0]).parent)}) as peer:
        peer.send(request("an id", "initialize", INITIALIZE))
        assert peer.rest() == [{"jsonrpc": "2.0", "id": "an id", "result": {}}]
        assert peer.exit_code() == 0
        imported = set(peer.stderr.split())
    assert "ext_sdk.wire.jsonrpc" in imported
    assert imported & HEAVY == set()
    assert {name for name in imported if name.partition(".")[0] != "ext_sdk"} <= {"_json", "__future__"}


@pytest.mark.parametrize(
    ("id", "params"),
    [
        (1.5, INITIALIZE),
        (None, INITIALIZE),
        (2**63, INITIALIZE),
        ("x" * 101, INITIALIZE),
        (1, INITIALIZE | {"config": {"greeting": "hi"}}),
        (1, INITIALIZE | {"further": 1}),
    ],
)
def test_any_other_initialize_is_answered_by_the_server(prepared: list[str], id: object, params: object) -> None:
    with Peer(prepared) as peer:
        peer.send(request(id, "initialize", params))
        answer = peer.message()
        assert answer["id"] == id
        result = answer["result"]
        assert isinstance(result, dict)
        assert result["name"] == "probe"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.2"}}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialise","params":{"protocolVersion":"0.0.1"}}\n', -32601),
        (b'{"jsonrpc":"2.0","id":true,"method":"initialize","params":{"protocolVersion":"0.0.1"}}\n', -32600),
    ],
)
def test_a_first_line_that_is_no_initialize_is_answered_by_the_server(
    prepared: list[str], line: bytes, code: int
) -> None:
    with Peer(prepared) as peer:
        peer.send(line)
        assert shown_code(peer.message()) == code
        assert peer.initialize()["result"]


def test_an_initialize_that_wants_no_answer_gets_none(prepared: list[str]) -> None:
    with Peer(prepared) as peer:
        peer.send({"jsonrpc": "2.0", "method": "initialize", "params": INITIALIZE}, execute(1, "echo"))
        assert peer.message()["id"] == 1


def test_what_came_with_the_first_line_is_not_lost(prepared: list[str]) -> None:
    with Peer(prepared) as peer:
        peer.send(request(1, "initialize", INITIALIZE), execute(2, "echo"), request(3, "shutdown"))
        assert [answer["id"] for answer in peer.rest()] == [1, 2, 3]
        assert peer.exit_code() == 0


def test_one_initialize_and_the_end_is_a_session(prepared: list[str]) -> None:
    with Peer(prepared) as peer:
        peer.write(json.dumps(request(1, "initialize", INITIALIZE)).encode())
        peer.eof()
        assert [answer["result"] for answer in peer.rest()] == [{"name": "prepared"}]
        assert peer.exit_code() == 0


def test_without_a_prepared_manifest_it_is_built(prepared: list[str]) -> None:
    (Path(prepared[1]).parent / "manifest.json").unlink()
    with Peer(prepared) as peer:
        manifest = peer.initialize()["result"]
        assert isinstance(manifest, dict)
        assert manifest["name"] == "probe"


def test_a_host_that_goes_before_the_manifest_is_out_ends_the_extension(prepared: list[str]) -> None:
    with Peer(prepared) as peer:
        assert peer.process.stdout
        peer.process.stdout.close()
        peer.send(request(1, "initialize", INITIALIZE))
        assert peer.exit_code() == 1
        assert peer.stderr == ""  # nothing was loaded


def test_a_package_is_served_with_its_manifest(tmp_path: Path) -> None:
    package = tmp_path / "packaged"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "extension.py").write_bytes((SAMPLES / "probe.py").read_bytes())
    (package / "__main__.py").write_text(
        "from ext_sdk.boot import serve\nraise SystemExit(serve('packaged.extension:extension'))\n"
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    with Peer([sys.executable, "-m", "packaged"], environment) as peer:
        built = peer.initialize()["result"]
    assert isinstance(built, dict)
    prepare = [sys.executable, "-m", "ext_sdk.prepare", "packaged.extension:extension"]
    subprocess.run(prepare, cwd=tmp_path, timeout=PATIENCE_SECONDS, check=True)
    content = (package / "manifest.json").read_bytes()
    assert json.loads(content) == built
    (package / "manifest.json").write_bytes(content.replace(b'"1.2.3"', b'"3.2.1"'))
    with Peer([sys.executable, "-m", "packaged"], environment) as peer:
        assert peer.initialize()["result"] == built | {"version": "3.2.1"}  # it is what was prepared
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"


def test_arguments_mean_a_person() -> None:
    probe = [sys.executable, str(SAMPLES / "probe.py"), "--version"]
    ran = subprocess.run(probe, capture_output=True, timeout=PATIENCE_SECONDS, check=True)
    assert ran.stdout == b"ext-probe 1.2.3\n"
