"""Each message of docs/troubleshooting.md is provoked: a message that does not exist any more fails."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT
from tests.docs.running import run
from tests.docs.test_example_eval import ACP_AGENT
from tests.packaging.artefacts import build
from tests.support.fake_kubernetes import FakeApi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_SECONDS = 120
SECTION = re.compile(r"^### (?P<title>.*)\n(?P<text>(?:(?!##).*\n)*)", re.MULTILINE)
MESSAGE = re.compile(r"^```text\n(.*\n)```$", re.MULTILINE)
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGES = {section["title"]: MESSAGE.findall(section["text"]) for section in SECTION.finditer(PAGE)}

# In a folder with a copy of docs/examples/eval and links to the extensions; $PORT is that of an HTTP server.
HOST = {
    "Extension not found": "rm ext-shell; mcpchecker check eval.yaml",
    "Unknown scheme": "sed -i s,./ext-shell,ext-shell, eval.yaml; mcpchecker check eval.yaml",
    "Required extension not registered": "sed -i 's/extension: shell/extension: shel/' */task.yaml; "
    "mcpchecker check eval.yaml",
    "Failed to initialize extension": "sed -i s/maxOperationTime/maxOperationTme/ eval.yaml; "
    "mcpchecker check eval.yaml",
    "Provided args did not match params": "sed -i 's/  path: repo$/  pth: repo/' fix-the-greeting/task.yaml; "
    "mcpchecker check eval.yaml; ext-host lint fix-the-greeting",
    "Operation not declared": "sed -i s/shell.run:/shell.rum:/ fix-the-greeting/task.yaml; mcpchecker check eval.yaml",
    "Braces in config and env": "sed -i 's/LANG:.*/LANG: \"{nope}\"/' eval.yaml; mcpchecker check eval.yaml",
    "No MCP config": "sed -i /mcpConfigFile/d eval.yaml; mcpchecker check eval.yaml",
    "MCP server ends at initialize": "mkdir other; cd other; mcpchecker check ../eval.yaml",
    "No task runs": "mcpchecker check eval.yaml --run no-such-task",
    "Agent execution error": "sed -i 's,{steps.shell.write-file.path},repo/greet.py,' fix-the-greeting/task.yaml; "
    "mcpchecker check eval.yaml",
    "One or more verification steps failed": "sed -i 's/Hello, world/Hi/' fix-the-greeting/task.yaml; "
    "mcpchecker check eval.yaml && echo exit code 0",
    "Context deadline exceeded": "sed -i 's/timeout: 10s/timeout: 40s/; s/python3, greet.py/sleep, 35/' */task.yaml; "
    "sed -i 's/maxOperationTime: 25s/maxOperationTime: 2m/; s/sleep, 35/sleep, \"35\"/' */task.yaml eval.yaml; "
    "mcpchecker check eval.yaml",
}
HOST["Failed to count tokens"] = (
    'printf "#!%s\\n%s" "$PYTHON" "$ACP_AGENT" > claude-agent-acp; chmod +x claude-agent-acp; '
    "sed -i s/agent.yaml/agent-acp.yaml/ eval.yaml; PATH=$PWD:$PATH mcpchecker check eval.yaml --run fix-the-greeting; "
    'export TIKTOKEN_CACHE_DIR="$PWD"; echo YQ== 0 > 9b5ad71b2ce5302211f9c61530b329a4922fc6a4; '
    "PATH=$PWD:$PATH mcpchecker check eval.yaml --run fix-the-greeting > cached 2>&1; "
    "grep 'Total Tasks: 1' cached && ! grep 'failed to count' cached || echo the cache is not used"
)
RUN = '{"jsonrpc":"2.0","id":%d,"method":"execute","params":{"operation":"run","args":{"command":["echo","%s"]}}}\n'
HI = "ext-recorder record hi.yaml -- ext-shell < hi.json; "
FETCH = "import sys, urllib.request as u; u.urlopen(sys.argv[1] + open('path').read())"
OURS = {
    "Unknown argument": """ext-shell call run '{"comand": ["ls"]}'""",
    "Expected an array": """ext-shell call run '{"command": "ls -l"}'""",
    "Reference is not known": """ext-shell call run '{"command": ["echo", "${web.port}"]}'""",
    "Command not found": """ext-shell call run '{"command": ["kubectl1"]}'""",
    "kubectl uses localhost 8080": """ext-shell call run '{"command": ["kubectl", "version"]}'""",
    "Timed out": """ext-shell call run '{"command": ["sleep", "60"], "timeout": "1s"}'""",
    "Not a path inside the working directory": """ext-shell call read-file '{"path": "../x"}'""",
    "Port is taken": 'ext-shell call start "{\\"name\\": \\"web\\", \\"command\\": [\\"sleep\\", \\"9\\"], '
    '\\"port\\": $PORT}"',
    "Address already in use": 'ext-http call mock-start "{\\"name\\": \\"web\\", \\"port\\": $PORT, '
    '\\"routes\\": [{\\"path\\": \\"/\\", \\"answer\\": {\\"text\\": \\"hi\\"}}]}"',
    "Connection refused": """ext-http call request '{"url": "http://127.0.0.1:1/"}'""",
    "Host is refused": """ext-http call request '{"url": "http://169.254.169.254/"}'""",
    "Agent output is missing": """ext-shell call assert-agent '{"output": {"contains": "x"}}'""",
    "No kubeconfig": """ext-kubernetes call get '{"resource": "pod/web"}'""",
    "API server did not respond": """kubectl config set-cluster none --server http://127.0.0.1:1 --kubeconfig none;
    kubectl config set-context none --cluster none --kubeconfig none; kubectl config use-context none --kubeconfig none
    KUBECONFIG=none ext-kubernetes call get '{"resource": "pod/web", "timeout": "1s"}'""",
    "No namespace for this operation": f"KUBECONFIG=cluster python {ROOT}/docs/examples/host.py ext-kubernetes <calls",
    "No such cassette": "ext-recorder record --mode none new.yaml -- ext-shell",
    "Recording was interrupted": HI + "mv hi.yaml session.yaml.partial; ext-recorder replay session.yaml",
    "Recorded from another command": HI + "ext-recorder record hi.yaml -- ext-http",
    "Arguments differ": HI + "ext-recorder replay hi.yaml < ho.json",
    "Used up": HI + "cat hi.json hi.json | ext-recorder replay hi.yaml",
    "Out of turn": "ext-recorder record two.yaml -- ext-shell < two.json; tac two.json | ext-recorder replay two.yaml",
    "HTTP request never recorded": f'printf / > path; echo "{FETCH}" > get.py; '
    "ext-recorder run recording -- python3 get.py http://127.0.0.1:$PORT; printf /other > path; "
    "ext-recorder run recording -- python3 get.py http://127.0.0.1:$PORT",
    "Format version": HI + "sed 's/^cassette: 1/cassette: 9/' hi.yaml > nine.yaml; ext-recorder show nine.yaml",
    "Address of replay in use": HI + "ext-recorder replay --listen tcp:127.0.0.1:$PORT hi.yaml",
    "Slow regular expression": f"sed s/hi/{'a' * 40}!/ hi.json > long.json; "
    "ext-recorder record long.yaml -- ext-shell < long.json; "
    "sed s/!/?/ long.json | ext-recorder replay --mask '(a+)+$' long.yaml",
    "Name of a secret": "ext-recorder record --redact hunter2-hunter2 new.yaml -- ext-shell",
    "Secrets in a cassette": HI + 'sed \'s/"hi"/"Bearer Zk4nQ8vR2mX7pL1w9s"/\' hi.yaml > leaked.yaml; '
    "ext-recorder scrub --check leaked.yaml",
    "Served operations": "ext-shell serve --protocol mcp",
}
# Systems that forbid namespaces are not at hand: the literal parts of the message are in the module.
SOURCES = {"Not isolated from the network": "recorder/ext_recorder/run/environment.py"}
BUILT = "Requires another Python"


def shown(title: str, found: str) -> None:
    """Check that all messages of a section are in an output."""
    for message in MESSAGES[title]:
        pattern = ".*?".join(map(re.escape, message.strip().split("…")))
        assert re.search(pattern, found), f"{message}\n{found}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the example eval, with links to the extensions, while an HTTP server listens at $PORT."""
    folder = shutil.copytree(ROOT / "docs" / "examples" / "eval", tmp_path / "eval")
    run(["bash", "-c", 'ln -s "$(command -v ext-shell)" "$(command -v ext-http)" .'], folder, LIMIT_SECONDS)
    for name, requests in {"hi": ["hi"], "ho": ["ho"], "two": ["one", "two"]}.items():
        lines = [RUN % (number, word) for number, word in enumerate(requests, 1)]
        (folder / f"{name}.json").write_text("".join(lines))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    handler = partial(SimpleHTTPRequestHandler, directory=str(ROOT / "docs" / "examples"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("PORT", str(server.server_port))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def test_every_message_is_provoked_once() -> None:
    assert {title for title, messages in MESSAGES.items() if messages} == set(MESSAGES)
    assert set(MESSAGES) == {*HOST, *OURS, *SOURCES, BUILT}


@pytest.mark.parametrize("title", [title for title in OURS if title not in HOST])
def test_a_message_of_this_project(title: str, folder: Path) -> None:
    if "kubectl" in OURS[title] and not shutil.which("kubectl"):
        pytest.skip("no kubectl in PATH")
    if "=cluster" not in OURS[title]:
        shown(title, run(["bash", "-c", OURS[title]], folder, LIMIT_SECONDS).stdout)
        return
    calls = [("create-namespace", {"name": "one"}), ("create-namespace", {"name": "two"}), ("get", {"resource": "cm"})]
    context = {"workdir": ".", "phase": "setup"}
    lines = [json.dumps({"operation": operation, "args": args, "context": context}) for operation, args in calls]
    (folder / "calls").write_text("\n".join(lines))
    with FakeApi() as server:
        server.kubeconfig(folder / "cluster")
        shown(title, run(["bash", "-c", OURS[title]], folder, LIMIT_SECONDS).stdout)


@pytest.mark.parametrize("title", HOST)
def test_a_message_of_mcpchecker(title: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("mcpchecker"):
        pytest.skip("no mcpchecker in PATH")
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("ACP_AGENT", ACP_AGENT)
    monkeypatch.setenv("TMPDIR", str(folder))  # where mcpchecker keeps what it has downloaded
    isolated = ["unshare", "-rn", "bash", "-c", f"ip link set lo up; {HOST[title]}"]  # it would look for updates
    found = run(isolated, folder, LIMIT_SECONDS).stdout
    shown(title, found)
    assert "the cache is not used" not in found


@pytest.mark.parametrize("title", SOURCES)
def test_a_message_in_the_source(title: str) -> None:
    text = (ROOT / SOURCES[title]).read_text()
    for message in MESSAGES[title]:
        assert all(part in text for part in message.strip().split("…"))


def test_pip_refuses_an_older_python(tmp_path: Path) -> None:
    wheel = build(ROOT, "wheel", tmp_path)
    older = ["--python-version", "3.10", "--only-binary=:all:", "--no-deps", "--no-index"]
    shown(BUILT, run(["python", "-m", "pip", "download", *older, str(wheel)], tmp_path, LIMIT_SECONDS).stdout)
