"""Each clause has a mutant of `independent_extension.py` that breaks it, and its check reports that.

A mutant is the source with some texts replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.checks import CLAUSES
from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import Profile, Target

if TYPE_CHECKING:
    from ext_recorder.conformance.target import CheckedClause

HERE = Path(__file__).parent
SOURCE = (HERE / "independent_extension.py").read_text()
PATIENCE_SECONDS = 1.0  # a mutant may hang; no clause is broken by an answer that is late

READ = "for line in sys.stdin.buffer:"
SERVE = "if line.strip():\n                self.answer(line)"
METHOD = 'method = str(request["method"])'
CONTEXT = 'context = members(params.get("context"), "context")'
VERSION_CHECK = 'if params.get("protocolVersion") != VERSION:\n            raise RpcError('
SHUTDOWN = 'if method == "shutdown":\n                self.end(0)'
ANSWER = 'self.write({"id": id, "result": result})'
LOG = 'self.write({"method": "log", "params": {"level": "info", "message": "working", "data": EXAMPLE}})'
THREAD = 'threading.Thread(target=self.work, args=(id, str(args["how"]), wait, limit, context), daemon=True).start()'
LAST = "self.idle.wait_for(lambda: self.open == 0)\n        self.end(0)"
UNITS = "(ns|us|µs|μs|ms|s|m|h)"
SLEEPER = ('LIFELINE = "import sys; sys.stdin.read()"', 'LIFELINE = "import time; time.sleep(100)"')
KILL = ("child.kill()", "pass")
TERM = ("lambda *_: extension.end(0)", "signal.SIG_IGN")
NEEDS_INITIALIZE = (
    METHOD,
    METHOD + '; self.known = getattr(self, "known", method == "initialize")\n'
    '            if not self.known: raise RpcError(-32600, "initialize first")',
)

Mutant = tuple[tuple[str, str], ...]


def replacing(*pairs: tuple[str, str]) -> Mutant:
    return pairs


MUTANTS: dict[str, Mutant] = {
    "spec:line": replacing(('data + b"\\n"', 'data.replace(b", ", b",\\n") + b"\\n"')),
    "spec:version-2": replacing(('{"jsonrpc": "2.0"} | message', "dict(message)")),
    "spec:utf-8": replacing(('.encode("utf-8", "backslashreplace")', '.encode("latin-1", "replace")')),
    "spec:escapes": replacing(("json.loads(line.decode()", 'json.loads(line.decode().replace(r"\\u", r"\\\\u")')),
    "spec:stdout-is-the-wire": replacing(('if how == "badly":', 'os.write(1, b"{}\\n")\n        if how == "badly":')),
    "spec:pieces": replacing((READ, "while line := os.read(0, 65536):")),
    "spec:one-write": replacing((READ, "while line := os.read(0, 65536):")),
    "spec:white-space": replacing(("if line.strip():", "if line.strip() == line[:-1]:")),
    "spec:id": replacing(('id = request["id"]', 'id = str(request["id"])')),
    "spec:id-null": replacing(('if "id" not in request:', 'if request.get("id") is None:')),
    "spec:id-type": replacing(("(dict, list, bool)", "(set,)")),
    "spec:one-response": replacing(('self.write({"id": id, "error"', 'for _ in "ab": self.write({"id": id, "error"')),
    "spec:notification": replacing(
        ('if "id" not in request:\n                return', 'request.setdefault("id", None)')
    ),
    "spec:several": replacing((ANSWER, ANSWER.replace("id,", "self.open,"))),
    "spec:silence": replacing((READ, LOG + f"\n        {READ}")),
    "spec:goes-on": replacing((ANSWER, ANSWER + "; self.end(0)")),
    "spec:initialize": replacing(("return MANIFEST", 'raise RpcError(-32603, "no")')),
    "spec:version-required": replacing(('params.get("protocolVersion")', 'params.get("protocolVersion", VERSION)')),
    "spec:version-mismatch": replacing((VERSION_CHECK, 'MANIFEST["protocolVersion"] = params["protocolVersion"]; (')),
    "spec:config-optional": replacing(('params.get("config", {})', 'params.get("config")')),
    "spec:config": replacing(('self.limit = seconds(given["limit"])', 'raise RpcError(-32602, "no")')),
    "spec:config-type": replacing(('self.configure(params.get("config", {}))', "pass")),
    "spec:name": replacing(('"name": "independent"', '"name": ""')),
    "spec:semver": replacing(('"version": "1.0.0"', '"version": "1.0"')),
    "spec:version-supported": replacing(('"protocolVersion": VERSION', '"protocolVersion": "1"')),
    "spec:description": replacing(('"Works"', "7")),
    "spec:requires": replacing(('[{"command": "sh"}]', '["sh"]')),
    "spec:operations": replacing(('"operations": {', '"operation": {')),
    "spec:params": replacing(('"params": PARAMS', '"schema": PARAMS')),
    "spec:schema": replacing(('"type": "string", "default": "0s"', '"type": "text", "default": "0s"')),
    "spec:required-described": replacing(('"required": ["how"]', '"required": ["what"]')),
    "spec:defaults": replacing(('"default": "0s"', '"default": 0')),
    "spec:operation-required": replacing(('RpcError(-32602, "operation is', 'RpcError(-32603, "operation is')),
    "spec:args-context": replacing((CONTEXT, 'context = members(params["context"], "context")')),
    "spec:args-type": replacing(
        (CONTEXT, CONTEXT.replace("members(", "(lambda given, _: given if isinstance(given, dict) else {})("))
    ),
    "spec:workdir": replacing(('(workdir / "made")', 'Path("made")')),
    "spec:phase": replacing((CONTEXT, CONTEXT + '; assert context.get("phase") != "cleanup"')),
    "spec:env": replacing(('.get("WORD", "")', '.get("word", "")')),
    "spec:timeout": replacing(('seconds(context["timeout"]) if context.get("timeout") else None', "None")),
    "spec:agent": replacing(('if "well done" not in said', "if not said")),
    "spec:agent-ignored": replacing(('if how == "badly":', 'if "agent" in context:')),
    "spec:success": replacing(('"success": True', '"success": "yes"')),
    "spec:failure": replacing(
        (ANSWER, ANSWER.replace('"result": result', '**({"result": result} if result["success"] else {"error": {}})'))
    ),
    "spec:message": replacing(('"message": "Done"', '"message": 1')),
    "spec:error-when": replacing(('"message": "Done"', '"message": "Done", "error": "none"')),
    "spec:outputs": replacing(('EXAMPLE = {"word": "value"}', 'EXAMPLE = {"word": 1}')),
    "spec:result-members": replacing(('"message": "Done"', '"message": "Done", "took": 1')),
    "spec:log": replacing(('{"method": "log"', '{"id": 99, "method": "log"')),
    "spec:log-during": replacing((LOG, "pass"), (ANSWER, ANSWER + f'\n        if how == "noisily": {LOG}')),
    "spec:log-level": replacing(('"level": "info"', '"level": "notice"')),
    "spec:log-message": replacing(('"message": "working"', '"text": "working"')),
    "spec:log-data": replacing(('"data": EXAMPLE', '"data": "text"')),
    "spec:shutdown": replacing(('if method == "initialize" else {}', 'if method == "initialize" else None')),
    "spec:exit": replacing((SHUTDOWN, SHUTDOWN.replace("0", "3"))),
    "spec:shutdown-params": replacing((METHOD, METHOD + '; members(request.get("params"), "params")')),
    "spec:parse-error": replacing(("-32700", "-32600")),
    "spec:parse-error-utf-8": replacing(("line.decode()", 'line.decode(errors="replace")')),
    "spec:invalid-request": replacing(('RpcError(-32600, "not a request")', 'RpcError(-32602, "not a request")')),
    "spec:unknown-method": replacing(('RpcError(-32601, f"unknown method', 'RpcError(-32600, f"unknown method')),
    "spec:unknown-operation": replacing(
        ('RpcError(-32601, f"unknown operation', 'RpcError(-32602, f"unknown operation')
    ),
    "spec:unknown-named": replacing(("unknown operation: {str(operation)[:100]}", "unknown operation")),
    "spec:missing-argument": replacing(('RpcError(-32602, "how', 'RpcError(-32603, "how')),
    "spec:argument-type": replacing((" or not isinstance(value, str):", ":")),
    "spec:params-type": replacing(('raise RpcError(-32602, f"{name} must', 'raise RpcError(-32603, f"{name} must')),
    "spec:error-object": replacing(('"message": str(error)', '"message": ""')),
    "spec:either": replacing(('{"id": id, "error"', '{"id": id, "result": None, "error"')),
    "spec:one-shot": replacing((LAST, LAST.replace("end(0)", "end(1)"))),
    "spec:one-shot-error": replacing(NEEDS_INITIALIZE),
    "spec:timeout-forms": replacing((UNITS, "(ns|us|ms|s|m|h)")),
    "spec:timeout-other": replacing(("DURATION.fullmatch", "DURATION.match")),
    "spec:duration-forms": replacing((UNITS, "(ns|us|ms|s|m|h)")),
    "spec:duration-other": replacing(("DURATION.fullmatch", "DURATION.match")),
    "host:line-limit": replacing(("text[:LIMIT_BYTES]", "text")),
    "host:manifest-limit": replacing(('"Works"', '"x" * 70_000')),
    "host:error-limit": replacing(("{method[:100]}", "{method}")),
    "host:args-null": replacing(('{} if params.get("args") is None else ', "")),
    "host:phase-empty": replacing(('None if context.get("phase")', 'None if context["phase"]')),
    "host:initialize-twice": replacing(("return MANIFEST", "self.manifest = None; return MANIFEST")),
    "host:initialize-again": replacing((VERSION_CHECK, VERSION_CHECK + "self.end(1) or ")),
    "host:shutdown-first": replacing(NEEDS_INITIALIZE),
    "host:blank-line": replacing((SERVE, "self.answer(line) if line.strip() else self.end(0)")),
    "host:long-line": replacing((READ, 'for line in iter(lambda: sys.stdin.buffer.readline(65536), b""):')),
    "host:nesting": replacing(("(ValueError, RecursionError, RpcError)", "(ValueError, RpcError)")),
    "host:long-number": replacing(("(ValueError, ", "(json.JSONDecodeError, UnicodeDecodeError, ")),
    "host:unfinished-line": replacing((SERVE, 'while line[-1:] != b"\\n": self.stop.wait(1)')),
    "host:no-traceback": replacing(
        ("raise RpcError(-32700,", 'print("Traceback", file=sys.stderr); raise RpcError(-32700,')
    ),
    "host:concurrent": replacing((THREAD, 'self.work(id, str(args["how"]), wait, limit, context)')),
    "host:many": replacing((METHOD, METHOD + "; assert id != 1000")),
    "host:limited": replacing(("else self.limit", "else None")),
    "host:shutdown-at-once": replacing((SHUTDOWN, 'if method == "shutdown":\n                sys.stdin.close()')),
    "host:typos": replacing(('name not in ("how", "wait", "only") or ', "")),
    "host:typos-schema": replacing(('"additionalProperties": False', '"additionalProperties": True')),
    "host:re2": replacing(('"^[a-z ]*$"', '"^(?=[a-z])"')),
    "host:output-keys": replacing(('EXAMPLE = {"word"', 'EXAMPLE = {"a.word"')),
    "host:failure-told": replacing(('"error": "was asked to"', '"error": ""')),
    "host:one-shot-open": replacing((READ, "for line in sys.stdin.buffer.readlines():")),
    "host:one-shot-config": replacing(('json.loads(arguments[arguments.index("--config") + 1])', "[][0]")),
    "host:eof": replacing((LAST, LAST.replace("end(0)", "stop.wait(100)"))),
    "host:sigterm": replacing(TERM),
    "host:sigterm-busy": replacing(TERM),
    "host:deaf": replacing(
        (
            "except BrokenPipeError:\n                self.end(1)",
            "except BrokenPipeError:\n                self.stop.wait(100)",
        )
    ),
    "host:kin-shutdown": replacing(SLEEPER, KILL),
    "host:kin-eof": replacing(SLEEPER, KILL),
    "host:kin-sigterm": replacing(SLEEPER, KILL),
    "host:kin-sigkill": replacing(SLEEPER),
}


def test_every_clause_has_a_mutant() -> None:
    assert MUTANTS.keys() == {clause.id for clause in CLAUSES}


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.id)
def test_the_clause_notices_its_mutant(clause: CheckedClause, tmp_path: Path) -> None:
    source = SOURCE
    for old, new in MUTANTS[clause.id]:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    mutant = tmp_path / "mutant.py"
    mutant.write_text(source)
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    profile = Profile.load(HERE / "profiles" / "independent.json")
    with pytest.raises(Violation):
        clause.check(Target((sys.executable, str(mutant)), profile, workdir, PATIENCE_SECONDS))
