"""The executable: unpacking, choice of the program, the programs themselves, and what commands inherit from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.conftest import HERE as CONFORMANCE
from tests.conformance.profile_environment import cluster, web
from tests.support.host import PATIENCE_S, ExtensionHost, HostProcess
from tests.support.http_stub import Stub
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLE = "GEVALS_EXECUTABLE"
PROGRAM = Path(os.environ.get(VARIABLE, "")).absolute()
MOST_BYTES = 60_000_000
LIMIT_SECONDS = 4 * PATIENCE_S
C_LIBRARY = {
    "ld-linux-x86-64",
    "ld-linux-aarch64",
    "libgcc_s",
    *(f"lib{x}" for x in ["c", "dl", "m", "pthread", "rt", "util"]),
}
EXTENSIONS = ("shell", "kubernetes", "http")

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} does not name an executable; `make test-executable` builds one"
)


@pytest.fixture(scope="session")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Environment with a cache of its own. It was unpacked by four starts at the same time."""
    cache = tmp_path_factory.mktemp("cache")
    environ = {name: value for name, value in os.environ.items() if name != "GEVALS_EXTENSION"}
    environ["XDG_CACHE_HOME"] = str(cache)
    starts = [subprocess.Popen([PROGRAM, "--version"], env=environ, stdout=subprocess.PIPE) for _ in range(4)]
    assert {start.communicate(timeout=LIMIT_SECONDS)[0].split()[0] for start in starts} == {b"gevals-extensions"}
    assert len(unpacked(cache)) == 1
    return environ


def unpacked(cache: Path) -> list[Path]:
    return list((cache / "gevals-extensions" / "executable").iterdir())


class Runner:
    """Runs the executable in a folder."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.environ = environ

    def __call__(self, *words: object, code: int = 0, input: str = "", env: Mapping[str, str] | None = None) -> str:
        """Return the output of a command line that must end with this code, standard error included."""
        done = subprocess.run(
            [PROGRAM, *map(str, words)],
            cwd=self.folder,
            env={**self.environ, **(env or {})},
            input=input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


@pytest.fixture
def run(tmp_path: Path, variables: Mapping[str, str]) -> Runner:
    return Runner(tmp_path, variables)


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    tracker = ProcessTracker(tmp_path / "pipe")
    yield tracker
    tracker.close()


# --- The file --------------------------------------------------------------------------------------------------------


def test_the_release_asset_has_one_executable_of_the_name_that_hosts_expect(tmp_path: Path) -> None:
    (asset,) = PROGRAM.parent.glob("gevals-extensions-*-*.zip")
    assert asset.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(asset) as archive:
        (entry,) = archive.infolist()
        assert entry.filename == asset.stem
        assert entry.create_system == 3
        assert stat.filemode(entry.external_attr >> 16) == "-rwxr-xr-x"
        assert archive.read(entry) == PROGRAM.read_bytes()


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_host_chooses_an_extension(name: str, variables: Mapping[str, str], tmp_path: Path) -> None:
    link = tmp_path / f"ext-{name}"
    link.symlink_to(PROGRAM)
    for program, choice in ((PROGRAM, {"GEVALS_EXTENSION": name}), (link, {})):
        with ExtensionHost([str(program)], {**variables, **choice}) as host:
            assert f'"name": "{name}"' in json.dumps(host.initialize())


def test_a_host_without_a_choice_gets_an_error_response(run: Runner) -> None:
    out = run(code=2, input='{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')
    assert json.loads(out.splitlines()[0])["error"]["message"].startswith(
        "no extension is chosen; set GEVALS_EXTENSION"
    )


def test_files_for_hosts_name_the_executable_and_not_its_cache(run: Runner) -> None:
    run("shell", "export", "--protocol", "gassist", "plugin")
    run("recorder", "shim", "shim", "cassette.yaml", "--", "true")
    for path in [run.folder / "shim", *(run.folder / "plugin").iterdir()]:
        assert run.environ["XDG_CACHE_HOME"] not in path.read_text()
    assert str(PROGRAM) in (run.folder / "shim").read_text()
    run.folder.joinpath("cassette.yaml").unlink(missing_ok=True)
    subprocess.run([run.folder / "shim"], input=b"", env=run.environ, check=True, timeout=LIMIT_SECONDS)


LIBRARIES = """
import bz2, ctypes, lzma, sqlite3, ssl, zlib
print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_its_libraries_are_its_own_except_for_the_c_library(variables: Mapping[str, str]) -> None:
    (folder,) = unpacked(Path(variables["XDG_CACHE_HOME"]))
    command = [str(folder / "bin" / "gevals-extensions"), "-I", "-S", "-c", LIBRARIES]
    environ = {"LD_LIBRARY_PATH": "/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
    others = {Path(path).name for path in done.stdout.splitlines() if not path.startswith(str(folder))}
    assert {name.partition(".so")[0] for name in others} <= C_LIBRARY


# --- Unpacking -------------------------------------------------------------------------------------------------------


def test_without_a_cache_the_temporary_folder_is_used(run: Runner, tmp_path: Path) -> None:
    """Also as root, who can write everywhere but not below a file."""
    environ = {"HOME": "/dev/null", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    for _ in range(2):
        assert run("--version", env=environ).startswith("gevals-extensions")
        (folder,) = tmp_path.glob("gevals-extensions-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(list(folder.iterdir())) == 1


def test_a_link_in_place_of_the_folder_is_refused(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / f"gevals-extensions-{os.getuid()}"
    link.symlink_to("other")
    err = run("--version", code=1, env={"HOME": "/dev/null", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)})
    assert f"{link}: expected a folder of this user, found a link" in err
    assert re.search(
        r"; set XDG_CACHE_HOME to a folder of yours with \d+ MB of space, in which programs can be run:\n", err
    )
    assert "  HOME: expected a folder, found '/dev/null'\n" in err
    assert list((tmp_path / "other").iterdir()) == []


def test_a_truncated_file_is_refused_and_leaves_nothing(tmp_path: Path, variables: Mapping[str, str]) -> None:
    program = tmp_path / "truncated"
    program.write_bytes(PROGRAM.read_bytes()[:5_000_000])
    program.chmod(0o755)
    environ = {**variables, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([program, "--version"], env=environ, capture_output=True, check=False, timeout=LIMIT_SECONDS)
    assert (done.returncode, done.stdout) == (1, b"")
    assert unpacked(tmp_path / "cache") == []


@pytest.mark.parametrize("name", ["bin/gevals-extensions", "start.pyc"])
def test_a_folder_with_an_empty_file_is_unpacked_again(name: str, run: Runner, tmp_path: Path) -> None:
    """A crash of the system can leave files without their content; an empty interpreter would succeed silently."""
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    run("--version", env=environ)
    (folder,) = unpacked(tmp_path / "cache")
    (folder / name).write_bytes(b"")
    assert run("--version", env=environ).startswith("gevals-extensions")
    assert (folder / name).stat().st_size > 0


def test_a_folder_without_one_of_its_modules_is_unpacked_again(run: Runner, tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    run("--version", env=environ)
    (folder,) = unpacked(tmp_path / "cache")
    for module in folder.glob("lib/*/ext_shell/**/args.*"):
        module.unlink()
    requests = "".join(f'{{"jsonrpc":"2.0","id":{id},"method":"x"}}\n' for id in (1, 2))
    *responses, message = run("shell", input=requests, code=1, env=environ).splitlines()
    text = rf"{folder} is damaged \(lib/\S+/args\S+\); it is unpacked again at the next start"
    for id, response in enumerate(map(json.loads, responses), 1):
        assert response["id"] == id
        assert re.fullmatch(f"gevals-extensions: cannot be loaded: {text}", response["error"]["message"])
    assert re.fullmatch(f"gevals-extensions: {text}", message)
    assert run("shell", "--version", env=environ).startswith("ext-shell")
    for module in folder.glob("lib/*/ext_shell/**/__main__.*"):
        module.unlink()
    assert run("shell", "--version", env=environ).startswith("ext-shell"), "it starts again: no request was read"


def test_a_host_gets_the_reasons_why_nothing_can_be_unpacked(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)  # others could rename folders there
    environ = {"HOME": "", "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(tmp_path / "shared")}
    out = run("shell", code=1, input='{"jsonrpc":"2.0","id":"a","method":"initialize"}\n', env=environ)
    reasons = [
        "/dev/null/gevals-extensions/executable: Not a directory",
        "HOME: expected a folder, found ''",
        f"{environ['TMPDIR']}: expected an existing folder in which other users cannot rename files",
    ]
    *lines, response = out.splitlines()
    assert [line.strip() for line in lines[1:]] == reasons
    answer = json.loads(response)
    assert (answer["id"], answer["error"]["code"]) == ("a", -32603)
    assert answer["error"]["message"].endswith(": " + "; ".join(reasons))
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_disk_without_space_is_one_message(run: Runner, tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=20m none "$1" && shift && exec "$@"'
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces")
    environ = {**run.environ, "HOME": "", "XDG_CACHE_HOME": str(folder), "TMPDIR": "/dev/null"}
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(folder), str(PROGRAM), "--version"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 1
    assert re.search(rf"\n  {folder}/\S+: no space left: it needs \d+ MB, and \d+ MB are free\n", done.stderr)
    assert done.stderr.count("\n") == 4


def test_the_programs_that_the_page_lists_are_enough(run: Runner, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "installing.md").read_text()
    listed = re.search(r"\*\*Programs\*\*: the first start needs ([^;]+); .*?also needs ([^.]+)\.", page, re.DOTALL)
    assert listed
    first, temporary = (re.findall(r"`([a-z]+)`", text) for text in listed.groups())
    (tmp_path / "bin").mkdir()
    for name in [*first, *temporary]:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    environ = {"PATH": str(tmp_path / "bin"), "HOME": "", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    assert run("--version", env=environ).startswith("gevals-extensions")
    for name in temporary:
        (tmp_path / "bin" / name).unlink()
    cached = environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run("--version", env=cached).startswith("gevals-extensions")
    assert run("--version", env=cached | {"PATH": str(tmp_path / "nothing")}).startswith("gevals-extensions")


def test_two_processes_unpack_at_once(run: Runner, tmp_path: Path) -> None:
    environ = {**run.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen([PROGRAM, "--version"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(4)
    ]
    outputs = {process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes}
    assert len(outputs) == 1
    assert outputs.pop().startswith(b"gevals-extensions ")
    assert len(unpacked(tmp_path / "cache")) == 1


def test_a_link_with_another_name_names_those_that_exist(run: Runner, tmp_path: Path) -> None:
    link, names = tmp_path / "ext-other", "ext-shell, ext-kubernetes, ext-http, ext-host, ext-recorder, ext-sdk"
    link.symlink_to(PROGRAM)
    done = subprocess.run([link], input=b"", env=run.environ, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.returncode, done.stderr.decode()) == (
        2,
        f"gevals-extensions: ext-other: expected a link with the name {names}; see gevals-extensions --help\n",
    )
    assert run("ext-shell", "--version").startswith("ext-shell")


def test_an_incomplete_folder_is_unpacked_again(run: Runner, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environ = {"XDG_CACHE_HOME": str(cache)}
    run("--version", env=environ)
    (folder,) = unpacked(cache)
    shutil.rmtree(folder / "bin")
    assert run("--version", env=environ).startswith("gevals-extensions")
    assert unpacked(cache) == [folder]


# --- Programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXTENSIONS)
def test_conformance(name: str, run: Runner, tmp_path: Path) -> None:
    profile = CONFORMANCE / "profiles" / f"{name}.json"
    with cluster(tmp_path) as objects, web() as site:
        environ: Mapping[str, str] = {"shell": {}, "kubernetes": objects, "http": site}[name]
        out = run("recorder", "conformance", "--json", "--profile", profile, "--", PROGRAM, name, env=environ)
    results = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert len(results) > 100
    assert {each["verdict"] for each in results} <= {"met", "skipped"}


def test_commands_inherit_nothing_from_the_executable(variables: Mapping[str, str]) -> None:
    environ = {**variables, "LD_LIBRARY_PATH": "/nonexistent", "PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nowhere"}
    with ExtensionHost([str(PROGRAM), "shell"], environ) as host:
        host.initialize({"passEnv": ["*"]})
        inherited = host.outputs("run", {"command": ["env", "-0"]})
    found = dict(line.partition("=")[::2] for line in inherited["stdout"].split("\0"))
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"):
        assert found[name] == environ[name]
    assert {name for name in found if name not in environ} <= {"", "TMPDIR", "TZ"}  # the last two are ext-shell's


def test_a_killed_extension_leaves_no_process(variables: Mapping[str, str], tracker: ProcessTracker) -> None:
    with ExtensionHost([str(PROGRAM), "shell"], variables) as host:
        host.initialize()
        script = f"{tracker.hold}; echo started >&9; sleep 1000 & sleep 1000"
        assert host.result("start", {"name": "server", "script": script})["success"]
        assert tracker.line() == "started"
        host.process.send_signal(signal.SIGKILL)
        assert not tracker.left()


def test_a_killed_host_leaves_no_process(variables: Mapping[str, str], tracker: ProcessTracker, tmp_path: Path) -> None:
    task = {
        "kind": "Task",
        "apiVersion": "mcpchecker/v1alpha2",
        "metadata": {"name": "waits"},
        "spec": {
            "requires": [{"extension": "shell"}],
            "setup": [{"shell.run": {"script": f"{tracker.hold}; echo started >&9; sleep 1000 & sleep 1000"}}],
            "verify": [{"shell.run": {"command": ["true"]}}],
            "prompt": {"inline": "wait"},
        },
    }
    (tmp_path / "task.yaml").write_text(json.dumps(task))
    with HostProcess([str(PROGRAM), "host", "run", "task.yaml", "--agent", "none"], variables, tmp_path) as host:
        assert tracker.line() == "started"
        host.send_signal(signal.SIGKILL)
        assert not tracker.left()


def test_worker_processes_check_schemas_and_patterns(run: Runner) -> None:
    expect = {"stdout": {"matches": "^{.a", "jsonSchema": {"type": "object", "required": ["a"]}}}
    out = run("shell", "call", "run", json.dumps({"command": ["echo", '{"a": 1}'], "expect": expect}))
    assert "3 checks passed" in out
    expect["stdout"]["jsonSchema"] = {"required": ["b"]}
    run("shell", "call", "run", json.dumps({"command": ["echo", '{"a": 1}'], "expect": expect}), code=1)


def test_a_session_is_recorded_replayed_verified_and_viewed(run: Runner) -> None:
    cassette = run.folder / "session.yaml"
    recorder = [str(PROGRAM), "recorder"]
    for words in (["record", str(cassette), "--", str(PROGRAM), "shell"], ["replay", str(cassette)]):
        with ExtensionHost([*recorder, *words], run.environ) as host:
            host.initialize()
            assert host.outputs("run", {"command": ["echo", "hello"]})["stdout"] == "hello\n"
            host.call("shutdown")
            host.eof()
            assert host.process.wait(LIMIT_SECONDS) == 0
    run("recorder", "verify", "--mask=[0-9]+m?s", "session.yaml", "--", PROGRAM, "shell")
    shutil.copy(cassette, run.folder / "copy.yaml")
    run("recorder", "lint", "session.yaml", "copy.yaml", "--jobs=2")
    run("recorder", "view", "session.yaml")
    assert "<!doctype html>" in cassette.with_suffix(".html").read_text()[:100].lower()


@pytest.mark.parametrize("words", [("record", "--http", "session.yaml"), ("run", "recording")])
def test_http_of_an_extension_is_recorded_and_replayed(words: tuple[str, ...], run: Runner) -> None:
    with Stub() as server:
        server.says("/word", "mango")
        call = ["--", PROGRAM, "http", "call", "request", json.dumps({"url": f"{server.origin}/word"})]
        assert "mango" in run("recorder", *words, *call)
    replay = ["replay", *words[1:]] if words[0] == "record" else ["run", "--mode=none", *words[1:]]
    assert "mango" in run("recorder", *replay, *call)


def test_a_task_is_run_recorded_and_replayed(run: Runner) -> None:
    shutil.copytree(CONFORMANCE.parents[1] / "docs/examples/eval/fix-the-greeting", run.folder / "task")
    agent = 'file=$(echo "$1" | grep -o \'/.*/greet.py\'); sed -i.bak s/Helo/Hello/ "$file" && echo I fixed greet.py'
    words = ["host", "run", "task/task.yaml", "--agent", agent]
    for option in ([], ["--record=recording"], ["--replay=recording"]):
        assert "passed" in run(*words, *option)


def test_an_extension_is_written_and_prepared(run: Runner) -> None:
    run("sdk", "new", "git")
    assert list((run.folder / "ext-git").rglob("manifest.json"))
    run.folder /= "ext-git/src"
    run("sdk", "prepare", "--check", "ext_git.extension:extension")
