"""The path of a call through our modules stays short: every function that a call at steady state enters is counted.

The limits are not a budget to be used up. A call that needs more has been split into forwarding functions, or does
something twice.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import ext_sdk
from tests.support.fake_kubernetes import FakeApi
from tests.support.host import ExtensionHost, parameters, request
from tests.support.http_stub import Stub

SOURCES = str(Path(ext_sdk.__file__).resolve().parents[1]) + "/"
COUNTED = "counted"  # id of the request whose functions are counted
WARM_UP_CALLS = 5

# Serves an extension, and writes the functions that were entered between the request and the response to a file.
PROGRAM = f"""
import collections, json, sys, threading
from ext_sdk.boot import serve
from ext_sdk.core.stdio import Stdio

_, extension, file = sys.argv
sys.argv = [extension]
entered = collections.Counter()
read, write = Stdio.read, Stdio.write

def profile(frame, event, argument):
    code = frame.f_code
    warms_up = threading.current_thread().name == "warm-up"  # it also compares sources with the manifest
    if event == "call" and code.co_filename.startswith({SOURCES!r}) and not warms_up:
        entered[code.co_filename, code.co_qualname] += 1

def counting_read(stdio):
    data = read(stdio)
    if b'"{COUNTED}"' in data:
        entered.clear()
    return data

def counting_write(stdio, data):
    if b'"id":"{COUNTED}"' in data:
        with open(file, "w") as output:
            json.dump([[*name, count] for name, count in entered.items()], output)
    write(stdio, data)

Stdio.read, Stdio.write = counting_read, counting_write
threading.setprofile(profile)
sys.setprofile(profile)
__import__(extension)
serve(extension + ".extension:extension")
"""


def entered(
    extension: str, operation: str, args: object, folder: Path, env: dict[str, str] | None = None
) -> Counter[str]:
    """Return the number of calls of our functions by module, of one call after some others."""
    file = folder / "entered.json"
    with ExtensionHost([sys.executable, "-c", PROGRAM, extension, str(file)], env) as peer:
        peer.initialize()
        for _ in range(WARM_UP_CALLS):
            peer.outputs(operation, args)
        peer.send(request(COUNTED, "execute", parameters(operation, args)))
        while (answer := peer.message()).get("id") != COUNTED:
            assert answer.get("method") == "log", answer
        assert answer["result"], answer
    calls: Counter[str] = Counter()
    for path, _, count in json.loads(file.read_text()):
        calls[path.removeprefix(SOURCES)] += count
    return calls


def test_a_condition_of_an_existing_pod_passes_few_modules(tmp_path: Path) -> None:
    with FakeApi() as api:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.put("pods", {"metadata": {"name": "web"}, "status": status})
        env = {"KUBECONFIG": str(api.kubeconfig(tmp_path / "config"))}
        args = {"resource": "pod/web", "conditionType": "Ready"}
        calls = entered("ext_kubernetes", "condition", args, tmp_path, env)
    assert len(calls) <= 25, sorted(calls)
    assert calls.total() <= 250, calls


def test_a_request_with_a_json_check_passes_few_modules(tmp_path: Path) -> None:
    with Stub() as stub:
        expect = {"status": 200, "body": {"json": [{"path": "$.id", "equals": 7}]}}
        calls = entered("ext_http", "request", {"url": stub.json("/items/7", {"id": 7}), "expect": expect}, tmp_path)
    assert len(calls) <= 30, sorted(calls)
    assert calls.total() <= 300, calls
