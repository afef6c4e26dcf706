"""The start of an extension: the manifest first, and nothing heavy before it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ext_sdk
from tests.support.host import PATIENCE_S, ExtensionHost, execute, request
from tests.support.paths import ROOT

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

SAMPLES = ROOT / "tests" / "support" / "samples"


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
    with ExtensionHost(prepared) as peer:
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
    with ExtensionHost(command, {"PYTHONPATH": str(Path(ext_sdk.__path__[0]).parent)}) as peer:
        peer.send(request("an id", "initialize", INITIALIZE))
        assert peer.rest() == [{"jsonrpc": "2.0", "id": "an id", "result": {}}]
        assert peer.exit_code() == 0
        imported = set(peer.stderr.split())
    assert "ext_sdk.core.wire.jsonrpc" in imported
    assert imported & HEAVY == set()
    assert {name for name in imported if name.partition(".")[0] != "ext_sdk"} <= {"_json", "__future__"}


@pytest.mark.parametrize(
    ("id", "params"),
    [
        (1.5, INITIALIZE),
        (None, INITIALIZE),
        (2**63, INITIALIZE),
        ("x" * 101, INITIALIZE),
        (1, INITIALIZE | {"config": {"greeting": "hi"}}),  # no schema of the configuration is prepared
        (1, INITIALIZE | {"further": 1}),
    ],
)
def test_any_other_initialize_is_answered_by_the_server(prepared: list[str], id: object, params: object) -> None:
    with ExtensionHost(prepared) as peer:
        peer.send(request(id, "initialize", params))
        answer = peer.message()
        assert answer["id"] == id
        result = answer["result"]
        assert isinstance(result, dict)
        assert result["name"] == "probe"


@pytest.fixture
def configured(prepared: list[str]) -> list[str]:
    """The same with a prepared schema of the configuration."""
    schema = {"type": "object", "properties": {"greeting": {"type": "string"}}, "additionalProperties": False}
    Path(prepared[1]).with_name("config-schema.json").write_text(json.dumps(schema))
    return prepared


def test_the_prepared_manifest_answers_an_initialize_whose_configuration_is_certainly_valid(
    configured: list[str],
) -> None:
    with ExtensionHost(configured) as peer:
        peer.send(request(1, "initialize", INITIALIZE | {"config": {"greeting": "hi"}}))
        assert peer.message()["result"] == {"name": "prepared"}
        assert peer.outputs("circumstances")["greeting"] == "hi"


@pytest.mark.parametrize("config", [{"greeting": 1}, {"greetings": "hi"}, [], "hi", 0])
def test_a_configuration_that_is_not_certainly_valid_is_refused_by_initialize(
    configured: list[str], config: object
) -> None:
    with ExtensionHost(configured) as peer:
        peer.send(request(1, "initialize", INITIALIZE | {"config": config}))
        assert shown_code(peer.message()) == -32602


def test_what_only_the_complete_validation_refuses_gets_no_second_answer(configured: list[str]) -> None:
    """A file may be removed between the two checks."""
    Path(configured[1]).with_name("config-schema.json").write_text('{"type":"object"}')
    with ExtensionHost(configured) as peer:
        peer.send(request(1, "initialize", INITIALIZE | {"config": {"greeting": 1}}), request(2, "shutdown"))
        assert [answer["id"] for answer in peer.rest()] == [1, 2]
        assert peer.exit_code() == 0


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
    with ExtensionHost(prepared) as peer:
        peer.send(line)
        assert shown_code(peer.message()) == code
        assert peer.initialize()["result"]


def test_an_initialize_that_wants_no_answer_gets_none(prepared: list[str]) -> None:
    with ExtensionHost(prepared) as peer:
        peer.send({"jsonrpc": "2.0", "method": "initialize", "params": INITIALIZE}, execute(1, "echo"))
        assert peer.message()["id"] == 1


def test_what_came_with_the_first_line_is_not_lost(prepared: list[str]) -> None:
    with ExtensionHost(prepared) as peer:
        peer.send(request(1, "initialize", INITIALIZE), execute(2, "echo"), request(3, "shutdown"))
        assert [answer["id"] for answer in peer.rest()] == [1, 2, 3]
        assert peer.exit_code() == 0


def test_one_initialize_and_the_end_is_a_session(prepared: list[str]) -> None:
    with ExtensionHost(prepared) as peer:
        peer.write(json.dumps(request(1, "initialize", INITIALIZE)).encode())
        peer.eof()
        assert [answer["result"] for answer in peer.rest()] == [{"name": "prepared"}]
        assert peer.exit_code() == 0


def test_without_a_prepared_manifest_it_is_built(prepared: list[str]) -> None:
    (Path(prepared[1]).parent / "manifest.json").unlink()
    with ExtensionHost(prepared) as peer:
        manifest = peer.initialize()["result"]
        assert isinstance(manifest, dict)
        assert manifest["name"] == "probe"


def test_a_host_that_goes_before_the_manifest_is_out_ends_the_extension(prepared: list[str]) -> None:
    with ExtensionHost(prepared) as peer:
        assert peer.process.stdout
        peer.process.stdout.close()
        peer.send(request(1, "initialize", INITIALIZE))
        assert peer.exit_code() == 1
        assert peer.stderr == ""  # nothing was loaded


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    """The folder of a package that is served by its `__main__`."""
    package = tmp_path / "packaged"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "extension.py").write_bytes((SAMPLES / "probe.py").read_bytes())
    (package / "__main__.py").write_text(
        "from ext_sdk.boot import serve\nraise SystemExit(serve('packaged.extension:extension'))\n"
    )
    return package


def served(package: Path) -> ExtensionHost:
    return ExtensionHost([sys.executable, "-m", "packaged"], {"PYTHONPATH": str(package.parent)})


def test_a_package_is_served_with_its_manifest(packaged: Path) -> None:
    with served(packaged) as peer:
        built = peer.initialize()["result"]
    assert isinstance(built, dict)
    prepare = [sys.executable, "-m", "ext_sdk.prepare", "packaged.extension:extension"]
    subprocess.run(prepare, cwd=packaged.parent, timeout=PATIENCE_S, check=True)
    content = (packaged / "manifest.json").read_bytes()
    assert json.loads(content) == built
    (packaged / "manifest.json").write_bytes(content.replace(b'"1.2.3"', b'"3.2.1"'))
    with served(packaged) as peer:
        assert peer.initialize()["result"] == built | {"version": "3.2.1"}  # it is what was prepared
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"


def test_a_stale_tool_does_not_run_what_may_destroy_something(packaged: Path) -> None:
    target = "packaged.extension:extension"
    prepare = [sys.executable, "-m", "ext_sdk.prepare", target]
    subprocess.run(prepare, cwd=packaged.parent, timeout=PATIENCE_S, check=True)
    file = packaged / "tools.ndjson"
    head, *lines = file.read_text().splitlines()
    described = json.loads(head)
    described["operations"]["echo"] = "read-only"
    del lines[list(described["operations"]).index("log")], described["operations"]["log"]
    file.write_text("\n".join([json.dumps(described), *lines]) + "\n")

    def called(tool: str, *options: str) -> str:
        command = [sys.executable, "-m", "packaged", "serve", "--protocol", "mcp", *options]
        with ExtensionHost(command, {"PYTHONPATH": str(packaged.parent)}) as peer:
            peer.send(request(1, "tools/call", {"name": tool, "arguments": {}}))
            peer.eof()
            return json.dumps(peer.rest()) + peer.stderr

    refused = called("echo")
    assert "echo was not run: it may destroy something, but was prepared as read-only" in refused
    assert f"run `ext-sdk prepare {target}`, or start the server with --allow echo" in refused
    assert '"isError": false' in called("echo", "--allow=echo")
    unknown = (
        f"unknown tool: log; the extension has it, but its prepared tools are stale: run `ext-sdk prepare {target}`"
    )
    assert unknown in called("log", "--allow=echo")
    stale = called("log", "--allow=log")
    assert "--allow log: matches no operation" in stale
    assert f"{file} is stale, the extension has it: run `ext-sdk prepare {target}`" in stale


def test_a_stale_manifest_is_logged_with_the_remedy(packaged: Path) -> None:
    prepare = [sys.executable, "-m", "ext_sdk.prepare", "packaged.extension:extension"]
    subprocess.run(prepare, cwd=packaged.parent, timeout=PATIENCE_S, check=True)
    source, manifest = packaged / "extension.py", packaged / "manifest.json"
    source.write_text(source.read_text().replace('version="1.2.3"', 'version="1.2.4"'))
    os.utime(source, (manifest.stat().st_mtime + 60,) * 2)
    with served(packaged) as peer:
        result = peer.initialize()["result"]
        assert isinstance(result, dict)
        assert result["version"] == "1.2.3"
        messages: list[dict[str, object]] = []
        while not any("method" in message for message in messages):  # a thread compares them
            peer.send(execute(len(messages) + 10, "echo", {"text": "x"}))
            while "id" not in (message := peer.message()):
                messages.append(message)
            messages.append(message)
        logged = next(message for message in messages if "method" in message)
        stale = f"{manifest} and {manifest.with_name('tools.ndjson')} are stale"
        warning = f"{stale}, and hosts get what was prepared before: run `ext-sdk prepare {prepare[-1]}`"
        assert logged["params"] == {"level": "warn", "message": warning}


# Writes to stderr when exit handlers run, and when the interpreter frees what a module holds.
ENDS = """
import atexit, os, sys
class Freed:
    def __del__(self, write=os.write):
        write(2, b"freed\\n")
freed = Freed()
atexit.register(lambda: print("handled"))
"""


@pytest.mark.parametrize("end", ["shutdown", "eof", "SIGTERM"])
def test_the_process_ends_after_the_exit_handlers_and_without_the_teardown(packaged: Path, end: str) -> None:
    with (packaged / "extension.py").open("a") as file:
        file.write(ENDS)
    with served(packaged) as peer:
        peer.initialize()
        if end == "shutdown":
            assert peer.call("shutdown")["result"] == {}
        elif end == "eof":
            peer.eof()
        else:
            peer.process.send_signal(signal.SIGTERM)
        assert peer.exit_code() == 0
        assert peer.stderr == "handled\n"


def test_the_exit_code_of_a_host_that_is_gone_is_kept(packaged: Path) -> None:
    with served(packaged) as peer:
        peer.initialize()
        assert peer.process.stdout
        peer.process.stdout.close()
        assert peer.exit_code() == 1


def test_a_thread_that_is_not_a_daemon_is_waited_for(packaged: Path) -> None:
    """It reads the end of a pipe, which this test closes after the answer to shutdown."""
    with (packaged / "extension.py").open("a") as file:
        file.write(ENDS)
        file.write("def work():\n    os.read(int(os.environ['PIPE']), 1)\n    os.write(2, b'worked\\n')\n")
        file.write("threading.Thread(target=work).start()\n")
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "packaged"]
    environment = {"PYTHONPATH": str(packaged.parent), "PIPE": str(reader)}
    with ExtensionHost(command, environment, pass_fds=(reader,)) as peer:
        os.close(reader)
        peer.initialize()
        assert peer.call("shutdown")["result"] == {}
        os.close(writer)
        assert peer.exit_code() == 0
        # Python 3.12 does not free the modules of a program that had a thread at its end.
        assert peer.stderr.removesuffix("freed\n") == "worked\nhandled\n"


def test_a_signal_before_the_extension_is_loaded_ends_it_as_it_does_later(packaged: Path, tmp_path: Path) -> None:
    """A named pipe that nobody opens for writing holds the import."""
    os.mkfifo(tmp_path / "fifo")
    (packaged / "extension.py").write_text(f"open({str(tmp_path / 'fifo')!r})\n")
    (packaged / "manifest.json").write_text("{}\n")
    with served(packaged) as peer:
        assert peer.initialize()["result"] == {}
        peer.process.send_signal(signal.SIGTERM)
        assert peer.exit_code() == 0


def test_arguments_mean_a_person() -> None:
    probe = [sys.executable, str(SAMPLES / "probe.py"), "--version"]
    ran = subprocess.run(probe, capture_output=True, timeout=PATIENCE_S, check=True)
    assert ran.stdout == b"ext-probe 1.2.3\n"


def test_a_traceback_is_redacted_and_what_is_printed_is_not(tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(
        "import os, ext_sdk\n"
        "extension = ext_sdk.Extension('leaky', version='1.0.0')\n"
        "@extension.operation(read_only=True)\n"
        "def leak() -> ext_sdk.Result:\n"
        '    """Show a secret."""\n'
        "    print('printed', os.environ['API_TOKEN'], flush=True)\n"
        "    raise KeyError(os.environ['API_TOKEN'])\n"
        "raise SystemExit(extension.run())\n"
    )
    secret = "opensesame-4711"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "leak", "arguments": {}}}
    done = subprocess.run(
        [sys.executable, tmp_path / "leaky.py", "serve", "--protocol", "mcp"], input=f"{json.dumps(message)}\n",
        text=True, env=os.environ | {"API_TOKEN": secret}, capture_output=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert "KeyError" in done.stdout
    assert secret not in done.stdout
    assert f"printed {secret}\n" in done.stderr
    assert "Traceback" in done.stderr
    assert done.stderr.count(secret) == 1
