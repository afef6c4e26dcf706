"""Recordings of programs of other projects: made with a server, replayed without it and without network."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.http_site import serving
from tests.support.http_stub import Stub
from tests.support.model_api import model_api
from tests.support.parent_proxy import ParentProxy
from tests.support.ports import reserved_port
from tests.support.program_packages import node_packages, python_packages
from tests.support.run_recordings import Recording, server_context

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_stub import Asked, Handler

PYTHON = sys.executable


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"no {program} in PATH")


# --- curl ------------------------------------------------------------------------------------------------------------

CURL = """
set -e
for url in "$@"; do
    curl -sS "$url/a%20b/%C3%A4?q=a+b&c=%2F#fragment"
    curl -sS -I "$url/head"
    curl -sS -L "$url/redirect"
    curl -sS -c jar -b jar -o /dev/null "$url/headers"
    curl -sS -b jar "$url/count/cookie"; echo
    curl -sS --compressed "$url/gzip" | cksum
    curl -sS "$url/chunked" | cksum
    curl -sS "$url/binary" | cksum
    curl -sS -T "$0" "$url/upload"
    seq 1 20000 | curl -sS -X POST -H 'Expect: 100-continue' -T - "$url/chunks" | cksum
    curl -sS -d @"$0" -H 'Expect: 100-continue' "$url/expect" | cksum
    curl -sS -F "file=@$0;type=text/plain" "$url/form" | wc -l
    curl -sS -X DELETE "$url/none" -o /dev/null -w '%{http_code}\\n'
    curl -sS --http1.0 "$url/count/old"; echo
    curl -sS -H "X-Long: $(head -c 60000 /dev/zero | tr '\\0' x)" "$url/count/long"; echo
    curl -sS -p "$url/count/tunnel"; echo
    curl -sS "$url/short" -o /dev/null || echo "short: $?"
    curl -sS "$url/reset" || echo "reset: $?"
done
curl -sS --max-time 20 -N "$1/event-stream"
curl -sS http://127.0.0.1:1/ || echo "refused: $?"
"""


def _events(handler: Handler, _: Asked) -> None:
    handler.begin("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for number in range(3):
        handler.wfile.write(b"data: %d\n\n" % number)


@needs("curl")
def test_curl(tmp_path: Path) -> None:
    (tmp_path / "requests.sh").write_text(CURL)
    with serving() as plain, serving(tmp_path) as secure:
        plain.routes["/event-stream"] = _events
        for site in (plain, secure):
            site.routes["/none"] = lambda handler, _: handler.begin("HTTP/1.1 204 No Content\r\n\r\n")
        recording = Recording(
            tmp_path, ["sh", "requests.sh", plain.origin, secure.origin], SSL_CERT_FILE=str(tmp_path / "ca.pem")
        )
        out = recording.record().out
    assert "data: 2\n" in out
    recording.check_replay(environ={})


@needs("curl")
def test_curl_on_ipv6(tmp_path: Path) -> None:
    try:
        server = Stub(host="::1")
    except OSError:
        pytest.skip("no IPv6 on loopback")
    with server:
        url = server.says("/x", os.urandom(4).hex())
        recording = Recording(tmp_path, ["curl", "-sS", "-g", url])
        recording.record()
    recording.check_replay()


# --- git -------------------------------------------------------------------------------------------------------------

GIT = """
set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
rm -rf one two
git clone -q "$1/repository.git" one
git clone -q --depth 1 "$1/repository.git" two
cat one/file
echo changed >one/file
git -C one commit -qam change
git -C one push -q 2>&1
git -C two pull -q
git -C two rev-parse HEAD
git ls-remote "$1/missing.git" 2>&1 | grep -c 'not found'
"""


def _git_backend(folder: Path, handler: Handler, asked: Asked) -> None:
    """Run `git http-backend` as CGI."""
    path, _, query = asked.path.partition("?")
    environ = {
        "GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": asked.method, "PATH_INFO": path,
        "QUERY_STRING": query, "CONTENT_TYPE": asked.header("Content-Type") or "", "REMOTE_USER": "a",
        "HTTP_CONTENT_ENCODING": asked.header("Content-Encoding") or "",
        "HTTP_GIT_PROTOCOL": asked.header("Git-Protocol") or "", "CONTENT_LENGTH": str(len(asked.body)),
    }  # fmt: skip
    done = subprocess.run(
        ["git", "http-backend"], input=asked.body, env=os.environ | environ, capture_output=True, check=False
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    handler.answer(int(headers.pop("Status", "200").split()[0]), body, headers)


@needs("git")
def test_git_over_http(tmp_path: Path) -> None:
    (tmp_path / "work.sh").write_text(GIT)
    source = tmp_path / "source"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    git = ("git", *identity, "-C")
    source.mkdir()
    subprocess.run([*git, source, "init", "-q"], check=True)
    (source / "file").write_text(os.urandom(8).hex() + "\n")
    subprocess.run([*git, source, "add", "."], check=True)
    subprocess.run([*git, source, "commit", "-qm", "first"], check=True)
    subprocess.run([*git, tmp_path, "clone", "-q", "--bare", source, "repository.git"], check=True)
    subprocess.run([*git, tmp_path / "repository.git", "config", "http.receivepack", "true"], check=True)
    context = server_context(tmp_path, "127.0.0.1")
    with Stub(context, default=lambda handler, asked: _git_backend(tmp_path, handler, asked)) as server:
        recording = Recording(tmp_path, ["sh", "work.sh", server.origin], GIT_SSL_CAINFO=str(tmp_path / "ca.pem"))
        recording.record()
    shutil.rmtree(tmp_path / "repository.git")
    recording.check_replay()


# --- Java, and package managers --------------------------------------------------------------------------------------

JAVA = """
import java.net.*;
import java.net.http.*;

public class Client {
    public static void main(String[] urls) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (String url : urls) {
            HttpRequest get = HttpRequest.newBuilder(URI.create(url + "/count/java")).build();
            System.out.println(client.send(get, HttpResponse.BodyHandlers.ofString()).body());
            HttpRequest post = HttpRequest.newBuilder(URI.create(url + "/post"))
                .POST(HttpRequest.BodyPublishers.ofString("x".repeat(100000))).build();
            System.out.println(client.send(post, HttpResponse.BodyHandlers.ofString()).body().length());
            System.out.println(new String(new URL(url + "/chunked").openStream().readAllBytes()).length());
        }
    }
}
"""


@needs("javac")
def test_java(tmp_path: Path) -> None:
    (tmp_path / "Client.java").write_text(JAVA)
    with serving() as plain, serving(tmp_path) as secure:
        recording = Recording(
            tmp_path, ["java", "Client.java", plain.origin, secure.origin], SSL_CERT_FILE=str(tmp_path / "ca.pem")
        )
        recording.record()
    recording.check_replay(environ={})


CARGO = '[package]\nname = "%s"\nversion = "1.0.0"\nedition = "2021"\n'


def registry(folder: Path) -> Stub:
    """Return a server with a package for each package manager, whose content is random."""
    server = Stub(server_context(folder, "localhost"))  # npm, with any proxy, requires a name
    base = f"https://localhost:{server.port}"
    word = os.urandom(8).hex()
    npm = _tar(
        "package/",
        {"package.json": '{"name": "demo", "version": "1.0.0"}', "index.js": f"const password='Wq7Rk2nX9v' // {word}"},
    )
    server.says("/npm/demo-1.0.0.tgz", npm)
    dist = {"tarball": f"{base}/npm/demo-1.0.0.tgz", "shasum": hashlib.sha1(npm).hexdigest()}
    version = {"name": "demo", "version": "1.0.0", "dist": dist}
    server.json("/npm/demo", {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})
    wheel = io.BytesIO()
    about = {"METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n", "WHEEL": "Wheel-Version: 1.0\n"}
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("demo.py", f"word = '{word}'\n")
        for name, text in {**about, "RECORD": ""}.items():
            file.writestr(f"demo-1.0.dist-info/{name}", text)
    server.says("/pip/demo/", '<a href="demo-1.0-py3-none-any.whl">demo</a>', Content_Type="text/html")
    server.says("/pip/demo/demo-1.0-py3-none-any.whl", wheel.getvalue())
    crate = _tar("demo-1.0.0/", {"Cargo.toml": CARGO % "demo", "src/lib.rs": f"// {word}"})
    server.json("/cargo/config.json", {"dl": f"{base}/cargo/{{crate}}.crate"})
    entry = {"name": "demo", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    server.says("/cargo/de/mo/demo", json.dumps({**entry, "cksum": hashlib.sha256(crate).hexdigest()}))
    server.says("/cargo/demo.crate", crate)
    return server


def _tar(folder: str, files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as file:
        for name, text in files.items():
            entry = tarfile.TarInfo(folder + name)
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


INSTALL = {
    "npm": (
        "rm -rf cache node_modules && npm install --registry $1/npm --cache ./cache --no-audit --no-fund --silent demo "
        "&& cat node_modules/demo/index.js"
    ),
    "pip": (
        "rm -rf out && $PYTHON -m pip install --quiet --no-cache-dir --disable-pip-version-check --index-url $1/pip "
        "--target out demo && cat out/demo.py"
    ),
    "cargo": "rm -rf home && CARGO_HOME=$PWD/home cargo fetch --quiet && cat home/registry/src/*/demo-1.0.0/src/lib.rs",
}


@pytest.mark.parametrize("name", ["npm", "pip", "cargo"])
def test_package_managers(name: str, tmp_path: Path) -> None:
    if name != "pip" and not shutil.which(name):
        pytest.skip(f"no {name} in PATH")
    with registry(tmp_path) as server:
        base = f"https://localhost:{server.port}"
        index = f'[registries.own]\nindex = "sparse+{base}/cargo/"\n'
        for path, text in {
            "Cargo.toml": CARGO % "user" + '[dependencies]\ndemo = {version = "1", registry = "own"}\n',
            "src/lib.rs": "",
            ".cargo/config.toml": index,
        }.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)
        recording = Recording(tmp_path, ["sh", "-c", INSTALL[name], "sh", base], PYTHON=PYTHON)
        recording.environ["SSL_CERT_FILE"] = str(tmp_path / "ca.pem")
        recording.record()
    recording.check_replay(environ={"PYTHON": PYTHON})


# --- Python ----------------------------------------------------------------------------------------------------------

CLIENTS = """
import asyncio, sys, urllib.request
import aiohttp, httpx, requests, urllib3

urls = sys.argv[1:]

async def asynchronous(url):
    async with httpx.AsyncClient() as client:
        print((await client.get(url + "/count/httpx-async")).text)
        async with client.stream("GET", url + "/chunked") as response:
            print(len(await response.aread()))
    async with aiohttp.ClientSession(trust_env=True) as session:
        for response in await asyncio.gather(*(session.get(f"{url}/count/aiohttp{n}") for n in range(10))):
            print(await response.text())
        async with session.post(url + "/post", data={"a": "b"}) as response:
            print(response.status, await response.text())

for url in urls:
    with requests.Session() as session:
        print(session.get(url + "/redirect").text, session.get(url + "/gzip").text[:10])
        print(session.post(url + "/post", files={"f": b"x" * 100_000}).status_code)
        print(session.head(url + "/count/head").headers["Content-Length"])
    print(httpx.get(url + "/count/httpx").text)
    print(urllib.request.urlopen(url + "/count/urllib").read())
    proxy = urllib.request.getproxies()["https"]
    print(urllib3.ProxyManager(proxy).request("GET", url + "/count/urllib3").data)
    asyncio.run(asynchronous(url))
"""


def test_http_clients_of_python(tmp_path: Path) -> None:
    (tmp_path / "clients.py").write_text(CLIENTS)
    with serving() as plain, serving(tmp_path) as secure:
        recording = Recording(
            tmp_path,
            [PYTHON, "clients.py", plain.origin, secure.origin],
            SSL_CERT_FILE=str(tmp_path / "ca.pem"),
            PYTHONPATH=str(python_packages()),
        )
        recording.record()
    recording.check_replay(environ={"PYTHONPATH": str(python_packages())})


EXT_HTTP = """
import json, subprocess, sys
for url in sys.argv[1:]:
    arguments = json.dumps({"url": url + "/count/ext", "expect": {"status": 200}})
    call = [sys.executable, "-P", "-m", "ext_http", "call", "--json", "request", arguments]
    print(json.loads(subprocess.run(call, stdout=subprocess.PIPE, check=True).stdout)["outputs"]["body"])
"""


def test_ext_http_without_configuration(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(EXT_HTTP)
    with serving() as plain, serving(tmp_path) as secure:
        command = [PYTHON, "calls.py", plain.origin, secure.origin]
        recording = Recording(tmp_path, command, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
        recording.record()
    assert len(recording.recorded.out.split()) == 2
    recording.check_replay()


MODELS_PYTHON = """
import anthropic, asyncio, json, openai

TOOL = {"name": "get_weather", "description": "x", "parameters": {"type": "object", "properties": {}}}

def chat(client):
    messages = [{"role": "user", "content": "weather?"}]
    tools = [{"type": "function", "function": TOOL}]
    message = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    call = message.tool_calls[0]
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sun"}]
    print(call.function.arguments, client.chat.completions.create(model="m", messages=messages, tools=tools))
    for stream in (client.chat.completions.create(model="m", messages=messages, stream=True),
                   client.chat.completions.create(model="m", messages=messages[:1], tools=tools, stream=True)):
        print([chunk.choices[0].delta.model_dump(exclude_none=True) for chunk in stream])
    print(client.responses.create(model="m", input="hi").output_text, client.models.list().data[0].id)
    print([event.type for event in client.responses.create(model="m", input="hi", stream=True)])

def messages(client):
    tools = [{"name": "get_weather", "input_schema": {"type": "object"}}]
    conversation = [{"role": "user", "content": "weather?"}]
    answer = client.messages.create(model="m", max_tokens=9, messages=conversation, tools=tools)
    conversation += [{"role": "assistant", "content": answer.content}]
    conversation += [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "sun"}]}]
    with client.messages.stream(model="m", max_tokens=9, messages=conversation, tools=tools) as stream:
        print(answer.content, "".join(stream.text_stream))

async def asynchronous():
    answer = await openai.AsyncOpenAI().chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}])
    print(answer.choices[0].message.content)
    async with anthropic.AsyncAnthropic().messages.stream(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}]
    ) as stream:
        print([text async for text in stream.text_stream])

chat(openai.OpenAI())
messages(anthropic.Anthropic())
asyncio.run(asynchronous())
"""

MODELS_NODE = """
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { Agent, fetch as other } from "undici";

const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
const client = new OpenAI();
const messages = [{ role: "user", content: "weather?" }];
const { message } = (await client.chat.completions.create({ model: "m", messages, tools })).choices[0];
messages.push(message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "sun" });
console.log(JSON.stringify(await client.chat.completions.create({ model: "m", messages, tools })));
for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true })) {
  console.log(JSON.stringify(chunk.choices[0].delta));
}
for await (const event of await client.responses.create({ model: "m", input: "hi", stream: true })) {
  console.log(event.type, event.delta);
}
const anthropic = new Anthropic();
const own = [{ name: "get_weather", input_schema: { type: "object" } }];
const conversation = [{ role: "user", content: "weather?" }];
const answer = await anthropic.messages.create({ model: "m", max_tokens: 9, messages: conversation, tools: own });
conversation.push({ role: "assistant", content: answer.content });
const result = { type: "tool_result", tool_use_id: answer.content[0].id, content: "sun" };
conversation.push({ role: "user", content: [result] });
const stream = anthropic.messages.stream({ model: "m", max_tokens: 9, messages: conversation, tools: own });
console.log(await stream.finalText(), JSON.stringify(answer.content));
const dispatcher = new Agent({ connections: 1 });  // of the program itself
const address = (process.env.OPENAI_BASE_URL || "https://api.openai.com/v1") + "/models";
console.log(await (await other(address, { dispatcher })).text());
await dispatcher.close();
"""


def model_clients(tmp_path: Path, language: str) -> tuple[list[str], dict[str, str]]:
    """Return a command that uses the official clients of model APIs, and its variables."""
    if language == "python":
        (tmp_path / "models.py").write_text(MODELS_PYTHON)
        return [PYTHON, "models.py"], {"PYTHONPATH": str(python_packages())}
    (tmp_path / "node_modules").symlink_to(node_packages() / "node_modules")
    (tmp_path / "models.mjs").write_text(MODELS_NODE)
    return ["node", "models.mjs"], {}


@pytest.mark.parametrize("language", ["python", "node"])
def test_clients_of_model_apis(language: str, tmp_path: Path) -> None:
    """One API has its public name, which a proxy of the user leads to loopback, the other one a base URL."""
    command, environ = model_clients(tmp_path, language)
    keys = {"OPENAI_API_KEY": "sk-secret-of-openai", "ANTHROPIC_API_KEY": "sk-secret-of-anthropic"}
    host = "api.openai.com"
    context = server_context(tmp_path, host)
    with (
        model_api(context) as public,
        model_api() as local,
        ParentProxy({f"{host}:443": public.port}, "Basic YTpi") as parent,
    ):
        recording = Recording(tmp_path, command, **environ, **keys)
        recording.environ |= {"ANTHROPIC_BASE_URL": local.origin, "SSL_CERT_FILE": str(tmp_path / "ca.pem")}
        recording.environ["HTTPS_PROXY"] = f"http://a:b@{parent.address}"
        recording.record()
    traffic = recording.traffic
    assert f"uri: https://{host}/v1/chat/completions" in traffic
    assert f"uri: {local.url('/v1/messages')}" in traffic
    assert parent.address not in traffic
    assert "sk-secret" not in "".join(path.read_text() for path in (tmp_path / "rec").iterdir())
    recording.check_replay(environ=environ)  # without keys, and without the variable of the base URL


# --- Node ------------------------------------------------------------------------------------------------------------

NODE = """
import http, { get } from "node:http";
import https from "node:https";
import { Worker } from "node:worker_threads";

const [plain, secure, closed] = process.argv.slice(2);
const shown = async (name, work) => {
  try {
    console.log(name, await work());
  } catch (error) {
    console.log(name, "failed", error.cause?.code ?? error.code ?? error.name);
  }
};
const text = async (url, options) => (await fetch(url, options)).text();
const received = (send, url, options = {}) => new Promise((done, failed) => send(url, options, (response) => {
  let all = "";
  response.on("data", (data) => (all += data)).on("end", () => done(all));
}).on("error", failed));
const upload = (agent) => new Promise((done, failed) => {
  const request = https.request(`${secure}/post`, { method: "POST", agent }, (response) => {
    let size = 0;
    response.on("data", (data) => (size += data.length)).on("end", () => done(size));
  }).on("error", failed);
  for (let n = 0; n < 20; n++) request.write("x".repeat(50_000));
  request.end();
});

for (const url of [plain, secure]) {
  await shown("fetch", () => text(`${url}/count/fetch`));
  await shown("chunked", async () => (await text(`${url}/chunked`)).length);
  await shown("gzip", async () => (await text(`${url}/gzip`)).length);
  await shown("redirect", () => text(`${url}/redirect`));
  await shown("get", () => received(url === plain ? get : https.get, `${url}/count/get`));
}
await shown("agent", () => received(get, `${plain}/count/agent`, { agent: new http.Agent({ keepAlive: true }) }));
await shown("no agent", () => received(get, `${plain}/count/no-agent`, { agent: false }));
await shown("upload", () => upload(new https.Agent({ keepAlive: true, maxSockets: 1 })));
await shown("parallel", async () => (await Promise.all(
  Array.from({ length: 40 }, (_, n) => text(`${secure}/count/${n}`)))).join(""));
await shown("aborted", () => text(`${plain}/count/aborted`, { signal: AbortSignal.abort() }));
await shown("worker", () => new Promise((done, failed) => {
  const code = `fetch("${secure}/count/worker").then((r) => r.text())
    .then((all) => require("node:worker_threads").parentPort.postMessage(all))`;
  new Worker(code, { eval: true }).on("message", done).on("error", failed);
}));
await shown("refused", () => text(`http://127.0.0.1:${closed}/`));
await shown("refused", () => received(https.get, `https://127.0.0.1:${closed}/`));
const own = http.createServer((_, response) => response.end("own")).listen(0, "127.0.0.1");
await new Promise((done) => own.once("listening", done));
await shown("own server", () => text(`http://127.0.0.1:${own.address().port}/`));
process.env.NO_PROXY = "localhost, 127.0.0.1";
await shown("without proxy", () => received(get, `http://127.0.0.1:${own.address().port}/`, { agent: false }));
own.close();
own.closeAllConnections();
"""


@needs("node")
def test_node(tmp_path: Path) -> None:
    (tmp_path / "client.mjs").write_text(NODE)
    with serving() as plain, serving(tmp_path) as secure, reserved_port() as closed:
        command = ["node", "client.mjs", plain.origin, secure.origin, str(closed)]
        recording = Recording(tmp_path, command, NODE_OPTIONS="--no-warnings")
        recording.environ["SSL_CERT_FILE"] = str(tmp_path / "ca.pem")
        out = recording.record().out
    assert [line for line in out.splitlines() if "failed" in line] == [
        "aborted failed 20",
        "refused failed ECONNREFUSED",
        "refused failed ECONNREFUSED",
    ]
    assert "own server own\nwithout proxy own\n" in out
    recording.check_replay(environ={})
