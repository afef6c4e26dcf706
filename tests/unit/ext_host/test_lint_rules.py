"""Rules of the linter: each finds its problem at its place, and nothing in the same task without the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_host.lint import Linter
from ext_host.lint_rules import RULES, Checker, refusals
from ext_shell.extension import extension as shell

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: t}
spec:
  requires: [{extension: shell}, {extension: http}, {extension: kubernetes, as: k8s}]
  prompt: {inline: PROMPT}
"""  # the phases begin in line 7
CHECK = "  verify: [shell.run: {command: [ls]}]\n"


def findings(folder: Path, body: str, *, head: str = HEAD, prompt: str = "Fix it.") -> list[str]:
    path = folder / "task.yaml"
    path.write_text(head.replace("PROMPT", prompt) + body)
    linter = Linter()
    linter.run([path])
    return [f"{each.line}:{each.column} {each.rule}: {each.text}" for each in linter.findings]


CASES = {
    "an operation that does not exist": (
        "  verify:\n    - shell.rum: {command: [ls]}\n",
        "8:7 step: shell has no operation 'rum'; did you mean 'run'?",
    ),
    "an alias that does not exist": (
        "  verify:\n    - kubernetes.get: {resource: pods}\n",
        "8:7 step: no entry of spec.requires has the name 'kubernetes'; add `- extension: kubernetes` to spec.requires",
    ),
    "a step without its extension": (
        "  verify:\n    - run: {command: [ls]}\n",
        "8:7 step: unknown type of step 'run'; did you mean 'shell.run'?",
    ),
    "two types in a step": (
        "  verify:\n    - shell.run: {command: [ls]}\n      script: {inline: ls}\n",
        "8:7 step: expected one type in a step, found 'shell.run' and 'script'; begin each step with `-`",
    ),
    "an unknown argument": (
        "  verify:\n    - shell.run: {command: [ls], timeot: 5s}\n",
        "8:34 arguments: shell.run: unknown argument 'timeot'; did you mean 'timeout'?",
    ),
    "an unknown member of an argument": (
        "  verify:\n    - shell.run:\n        command: [ls]\n        expect: {stdout: {contain: a}}\n",
        "10:27 arguments: shell.run: unknown argument 'contain'; did you mean 'contains'?",
    ),
    "a value of a wrong type": (
        "  verify:\n    - shell.run: {command: [ls], stdin: 5}\n",
        "8:41 arguments: shell.run: stdin: expected a string, found 5; quote it",
    ),
    "a value that is not in a list": (
        "  verify:\n    - shell.run: {command: [ls], onTimeout: okay}\n",
        '8:45 arguments: shell.run: onTimeout: expected "fail" or "ok", found "okay"; did you mean \'ok\'?',
    ),
    "a duration": (
        "  verify:\n    - shell.run: {command: [ls], timeout: 5 seconds}\n",
        "8:43 arguments: shell.run: timeout: ",
    ),
    "a duration of another extension": (
        "  verify:\n    - http.wait: {url: 'http://127.0.0.1', timeout: 5sec}\n",
        "8:53 arguments: http.wait: timeout: invalid duration '5sec': unknown unit 'sec'; ",
    ),
    "none of two arguments": (
        "  verify:\n    - shell.run: {cwd: a}\n",
        "8:7 arguments: shell.run: expected `command` or `script`, found neither",
    ),
    "both of two arguments": (
        "  verify:\n    - shell.run: {command: [ls], script: ls}\n",
        "8:7 arguments: shell.run: expected one of `command` and `script`, found both",
    ),
    "a script without a text": (
        "  verify:\n    - script: {timeout: 5s}\n",
        "8:7 arguments: script: expected `inline` or `file`, found neither",
    ),
    "a missing argument": (
        "  verify:\n    - http.request: {method: GET}\n",
        '8:7 arguments: http.request: expected `url`, found ["method"]',
    ),
    "a reference that nothing sets": (
        '  verify:\n    - shell.run: {command: ["${web.port}"]}\n',
        "8:29 reference: ${web.port}: no step before this one has `as: web`; ",
    ),
    "a reference with a wrong name": (
        '  verify:\n    - shell.run: {command: [ls], as: listing}\n    - shell.run: {command: ["${listng.stdout}"]}\n',
        "9:29 reference: ${listng.stdout}: no step before this one has `as: listng`; did you mean 'listing'?",
    ),
    "a reference to a later step": (
        '  verify:\n    - shell.run: {command: ["${a.stdout}"]}\n    - shell.run: {command: [ls], as: a}\n',
        "8:29 reference: ${a.stdout}: the name is set later, by spec.verify[1]",
    ),
    "a reference in another scope": (
        '  verify:\n    - shell.run: {command: [ls], as: a, scope: x}\n    - shell.run: {command: ["${a.stdout}"]}\n',
        "9:29 reference: ${a.stdout}: this step has no scope, and the name is set in scope 'x'",
    ),
    "a reference in a program": (
        "  verify:\n    - shell.run: {command: [ls], as: a}\n    - shell.run: {script: 'echo ${a.stdout}'}\n",
        "9:27 reference: ${a.stdout} is not replaced in `script`; pass it in `env`",
    ),
    "an output that an operation does not have": (
        '  verify:\n    - shell.run: {command: [ls], as: a}\n    - shell.run: {command: ["${a.stdot}"]}\n',
        "9:29 output: ${a.stdot}: shell.run (spec.verify[0]) has no output 'stdot'; did you mean 'stdout'?",
    ),
    "a template of mcpchecker in an argument": (
        '  verify:\n    - shell.run: {command: ["{steps.shell.run.stdout}"]}\n',
        "8:29 template: {steps.…} is not replaced in arguments of extensions; ",
    ),
    "a template with the alias of an extension": (
        "  verify:\n    - k8s.get: {resource: pods}\n    - script: {inline: ls, env: {A: '{steps.k8s.get.count}'}}\n",
        (
            "9:37 template: {steps.k8s.get.count}: templates have the name of the extension, not its alias; write "
            "{steps.kubernetes.get.count}"
        ),
    ),
    "a template with an output of another phase": (
        (
            "  setup: [shell.make-temp: {}]\n"
            "  verify:\n    - script: {inline: ls, env: {A: '{steps.shell.make-temp.path}'}}\n"
        ),
        "9:37 template: {steps.shell.make-temp.path}: outputs of setup are not known in verify",
    ),
    "a template with an unknown output": (
        "  verify:\n    - shell.run: {command: [ls]}\n    - script: {inline: ls, env: {A: '{steps.shell.run.out}'}}\n",
        "9:37 template: {steps.shell.run.out}: shell.run has no output 'out'; ",
    ),
    "a reference without an end": (
        '  verify:\n    - shell.run: {command: ["${web.port"]}\n',
        "8:29 reference: ${web.port: the reference does not end; add `}`",
    ),
    "a reference in a step of the host": (
        "  verify:\n    - shell.run: {command: [ls], as: a}\n    - script: {inline: 'echo ${a.stdout}'}\n",
        "9:24 reference: ${a.stdout} is not replaced in steps of the host; write {steps.",
    ),
    "a namespace that only another command and another deletion follow": (
        (
            "  setup: [k8s.create-namespace: {name: web}]\n  verify: [shell.run: {command: [kubectl, get, -n, web]}]\n"
            "  cleanup: [k8s.delete-namespace: {name: other}]\n"
        ),
        "7:11 no-cleanup: no step of verify or cleanup deletes the namespace 'web'",
    ),
    "a brace that is not a template": (
        "  verify:\n    - script: {inline: ls, env: {A: '{}'}}\n",
        "8:37 template: env.A: expected ",
    ),
    "the answer of the agent before it has run": (
        "  setup: [shell.assert-agent: {output: {contains: a}}]\n" + CHECK,
        "7:11 phase: shell.assert-agent needs the answer of the agent; move it to verify",
    ),
    "no verify": (
        "  setup: [shell.make-temp: {}]\n",
        "4:1 no-check: no step verifies the task: mcpchecker always passes it, `ext-host run` fails it; add steps to ",
    ),
    "a question without quotes in braces": (
        "  verify: [shell.run: {command: [ls, Is it right?]}]\n",
        "7:38 file: `?` in a text without quotes within {} or [] is a YAML error for mcpchecker; quote the text",
    ),
    "a verify that cannot fail": (
        "  verify:\n    - http: {url: 'http://127.0.0.1:1'}\n    - shell.wait: {name: a, onTimeout: ok}\n",
        "7:3 no-check: no step of verify checks anything (http, shell.wait); add an expectation",
    ),
    "a long wait": (
        "  verify:\n    - k8s.wait: {resource: deploy/web, for: ready, timeout: 2m}\n",
        "8:61 long-wait: timeout 2m: mcpchecker ends a call after 30s; use several steps with at most 25s, ",
    ),
    "a process that is not stopped": (
        "  setup: [shell.start: {name: web, command: [a]}, shell.wait: {name: web, for: ready}]\n" + CHECK,
        "7:11 no-cleanup: no later step ends the process 'web'; add `- shell.stop: {name: web, ignoreMissing: true}` ",
    ),
    "a mock that is not stopped": (
        "  setup: [http.mock-start: {upstream: {url: 'http://127.0.0.1:1'}}]\n" + CHECK,
        "7:11 no-cleanup: no later step ends the mock 'mock'; ",
    ),
    "a namespace that is not deleted": (
        (
            "  setup: [k8s.create: {apiVersion: v1, kind: Namespace, metadata: {name: web}}]\n"
            "  verify: [k8s.get: {resource: pods}]\n"
            "  cleanup: [k8s.delete: {kind: Namespace, metadata: {name: wed}}]\n"
        ),
        "7:11 no-cleanup: no step of verify or cleanup deletes the namespace 'web'",
    ),
    "a script that does not exist": (
        "  verify: [script: {file: check.sh}]\n",
        "7:27 missing-file: script: no such file: check.sh; its path is relative to ",
    ),
    "a file of setup that does not exist": (
        "  setup: [k8s.apply: {file: web.yaml}]\n" + CHECK,
        "7:29 missing-file: k8s.apply: no such file: web.yaml",
    ),
    "a member that hosts ignore": (
        CHECK + "  clenup: []\n",
        "8:3 unknown-member: spec: unknown member 'clenup'; did you mean 'cleanup'?",
    ),
    "a limit that is not a duration": (
        CHECK + "  limits: {timeout: 5x}\n",
        "8:21 file: spec.limits.timeout: ",
    ),
    "a limit below 0": (
        CHECK + "  limits: {timeout: -5m}\n",
        "8:21 file: spec.limits.timeout: expected a duration over 0, such as 30s, found '-5m'",
    ),
    "a script without time": (
        "  verify: [script: {inline: ls, timeout: 0s}]\n",
        "7:42 arguments: script: timeout: expected a duration over 0, such as 30s, found '0s'",
    ),
    "a pattern of the host": (
        "  verify: [http: {url: 'http://x', expect: {body: {match: '('}}}]\n",
        "7:59 arguments: http: expect.body.match: '(' is not a regular expression: missing ), unterminated subpattern",
    ),
    "a negative timeout": (
        "  verify: [shell.run: {command: [ls], timeout: -5s}]\n",
        "7:48 arguments: shell.run: timeout: expected a duration of 0s or more, found -5s",
    ),
    "a regular expression": (
        "  verify: [shell.run: {command: [ls], expect: {stdout: {matches: '('}}}]\n",
        "7:56 arguments: shell.run: expect.stdout: '(' is not a regular expression of Python's `re`: missing ), ",
    ),
    "a regular expression next to a reference": (
        "  verify: [shell.run: {command: [a], expect: {stdout: {matches: '('}, stderr: '${now}'}}]\n",
        "7:55 arguments: shell.run: expect.stdout: '(",
    ),
    "a JSONPath": (
        "  verify: [http.wait: {url: 'http://x', expect: {body: {json: [{path: '$.[', equals: 1}]}}}]\n",
        "7:64 arguments: http.wait: expect.body.json[0]: '$.[' is not a JSONPath (RFC 9535)",
    ),
    "a JSONPath of kubectl": (
        "  verify: [k8s.get: {resource: pods, outputs: {a: '{.status['}}]\n",
        "7:12 arguments: k8s.get: outputs.a: '{.status[': unbalanced braces",
    ),
    "a wait that is not one": (
        CHECK[:-2] + ", shell.run: {command: ['${now}'], onTimeout: ok}]\n",
        "7:40 arguments: shell.run: `onTimeout` requires `retry`",
    ),
    "a combination that no value of a reference allows": (
        "  setup: [shell.run: {command: [ls], as: a}, shell.assert-file: {path: '${a.stdout}', onTimeout: ok}]\n"
        + CHECK,
        "7:46 arguments: shell.assert-file: `onTimeout` requires `timeout`",
    ),
    "a reserved name": (
        "  verify: [shell.run: {command: [ls], as: uuid}]\n",
        "7:43 arguments: shell.run: as: ${uuid} has a value of its own; keep the outputs under another name",
    ),
    "a file inside of an argument": (
        "  setup: [http.request: {url: 'http://x', body: {file: a.bin}}]\n" + CHECK,
        "7:56 missing-file: http.request: no such file: a.bin; its path is relative to ",
    ),
    "a file that no step writes": (
        "  setup: [shell.write-file: {path: a, content: b}, k8s.create-configmap: {name: c, files: {k: d}}]\n" + CHECK,
        "7:95 missing-file: k8s.create-configmap: no such file: d",
    ),
    "a schema of verify": (
        "  verify: [shell.assert-agent: {output: {jsonSchemaFile: s.json}}]\n",
        "7:58 missing-file: shell.assert-agent: no such file: s.json",
    ),
    "a comment that ignores a rule which does not exist": (
        CHECK + "  cleanup: []  # ext-host: ignore[no-chek, step]\n",
        "8:16 unknown-rule: unknown rule 'no-chek'; did you mean 'no-check'?",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_problem_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    body, expected = CASES[name]
    found = [text for text in findings(tmp_path, body) if " not-checked: " not in text]
    assert [text[: len(expected)] for text in found] == [expected]


@pytest.mark.parametrize(
    "body",
    [
        CHECK,
        "  setup:\n  verify:\n    - k8s.list-contexts:\n    - shell.run: {command: [ls]}\n  cleanup:\n",
        (
            "  setup: [shell.start: {name: web, command: [a], port: auto, as: web}]\n"
            '  verify: [http.request: {url: "http://127.0.0.1:${web.port}"}]\n'
            "  cleanup: [shell.stop: {name: web}]\n"
        ),
        # defaults, generated values, escapes, programs, and calls without references
        (
            '  verify:\n    - shell.run: {command: ["${a.b|x}", "${now}", "${uuid.x}", "$${HOME}"]}\n'
            "    - shell.run: {script: 'echo ${HOME} ${a.b}'}\n"
            '    - shell.run: {command: ["${HOME}"], verbatim: true}\n'
        ),
        # outputs that the caller names; a later step with the same name
        (
            "  verify:\n    - shell.run: {command: [ls], capture: {first: {line: 1}}, as: a}\n"
            '    - shell.run: {command: ["${a.first}", "${a.stdout}"]}\n'
            '    - shell.read-file: {path: x, as: a}\n    - shell.run: {command: ["${a.content}"]}\n'
        ),
        # references in place of numbers and durations
        (
            "  setup: [shell.run: {command: [ls], as: a}]\n"
            '  verify: [shell.run: {command: [ls], timeout: "${a.stdout}", expect: {exitCode: "${a.exitCode}"}}]\n'
        ),
        # a namespace that any script of cleanup may delete
        (
            "  setup: [k8s.create-namespace: {name: web}]\n  verify: [k8s.get: {resource: pods}]\n"
            "  cleanup: [script: {inline: kubectl delete namespace web}]\n"
        ),
        (
            "  setup: [k8s.create-namespace: {name: web}]\n"
            "  verify: [shell.run: {command: [kubectl, delete, namespace, web]}]\n"
        ),
        (
            "  setup: [k8s.create-namespace: {prefix: web, as: ns}]\n  verify: [k8s.get: {resource: pods}]\n"
            '  cleanup: [k8s.delete-namespace: {name: "${ns.name}"}]\n'
        ),
        # `as` of this operation is a user
        "  verify: [k8s.authCanI: {verb: get, resource: pods, as: reader, expect: {allowed: true}}]\n",
        # outputs of a program that no manifest describes
        "  verify:\n    - script: {inline: ls, env: {A: '{agent.output}', B: '{random.id}', C: '{env.HOME}'}}\n",
        # a wait in parts
        (
            "  verify:\n    - k8s.wait: {resource: a/b, for: ready, timeout: 25s, onTimeout: ok}\n"
            "    - k8s.wait: {resource: a/b, for: ready, timeout: 30s}\n"
        ),
        # arguments that are right with some value of a reference
        (
            "  setup: [shell.run: {command: [ls], as: a}]\n"
            '  verify: [shell.assert-file: {path: a, onTimeout: ok, timeout: "${a.stdout}", size: "${a.exitCode}"},\n'
            '    http.request: {url: "http://${a.stdout}", expect: {body: {matches: "${a.stdout}"}}}]\n'
        ),
        # a file that an address names, one that a program may write, one that the agent may write, and data
        "  setup: [k8s.apply: {file: 'https://x/a.yaml'}]\n" + CHECK,
        "  setup: [script: {inline: make}, k8s.apply: {file: a.yaml}]\n" + CHECK,
        "  verify: [http.request: {url: 'http://x', body: {file: result.json}, expect: {status: 200}}]\n",
        (
            "  setup: [k8s.create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {file: b, aFile: c}},"
            " shell.start: {name: w, command: [w], ready: {file: ready}}, shell.wait: {name: w, for: {file: done}}]\n"
            + CHECK
            + "  cleanup: [shell.stop: {name: w}]\n"
        ),
        # folders
        (
            "  setup: [shell.write-file: {path: ./m/a.yaml, content: b}, k8s.apply: {file: m}, "
            "k8s.apply: {file: m/a.yaml}]\n" + CHECK
        ),
        # syntax of RE2 alone
        "  verify: [http: {url: 'http://x', expect: {body: {match: 'a(?i)b\\z'}}}]\n",
        # a file that a previous step writes
        "  setup:\n    - shell.write-file: {path: web.yaml, content: a}\n    - k8s.apply: {file: web.yaml}\n" + CHECK,
    ],
)
def test_a_right_task_has_no_findings(body: str, tmp_path: Path) -> None:
    assert findings(tmp_path, body) == []


def test_prompts_get_outputs_of_setup_only(tmp_path: Path) -> None:
    body = "  setup: [shell.make-temp: {}]\n" + CHECK
    assert findings(tmp_path, body, prompt="'See {steps.shell.make-temp.path}'") == []
    assert "outputs of verify are not known in the prompt" in str(
        findings(tmp_path, body, prompt="'See {steps.shell.run.stdout}'")
    )
    assert "because of another brace" in str(findings(tmp_path, body, prompt="'{steps.shell.make-temp.path} {}'"))
    assert findings(tmp_path, body, prompt="'Write {\"a\": 1}'") == []


def test_a_legacy_task_is_checked(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").touch()
    legacy = "kind: Task\nmetadata: {name: t}\nsteps:\n  prompt: {inline: Fix it.}\n  setup: {file: setup.sh}\n"
    assert findings(tmp_path, "  verify: {contains: done}\n  cleanup:\n", head=legacy) == []
    assert findings(tmp_path, "  verify: {file: no.sh}\n", head=legacy)[0].startswith("6:18 missing-file: ")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{name: t}", "{name: ''}", ["3:12 file: metadata.name: expected at least 1 character"]),
        ("{name: t}", "{name: t, runs: 0}", ["3:27 file: metadata.runs: expected at least 1, found 0"]),
        ("{name: t}", "{name: t, paralel: true}", ["3:21 unknown-member: metadata: unknown member 'paralel'; did"]),
        (
            "apiVersion: mcpchecker/v1alpha2\n",
            "",
            ["3:1 file: the task has `spec`; set apiVersion: mcpchecker/v1alpha2", "3:1 not-checked: the steps of"],
        ),
        (
            "{inline: PROMPT}",
            "Fix it.",
            ["6:11 file: spec.prompt: expected an object", "7:12 step: shell has no operation 'rum'"],
        ),
    ],
)
def test_a_wrong_value_is_one_error_and_says_what_is_not_checked(
    old: str, new: str, expected: list[str], tmp_path: Path
) -> None:
    found = findings(
        tmp_path, CHECK.replace("run", "rum") if len(expected) == 2 else CHECK, head=HEAD.replace(old, new)
    )
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


def test_a_step_of_a_wrong_type_does_not_hide_the_others(tmp_path: Path) -> None:
    body = (
        "  setup:\n    - 'shell.run {command: [ls], as: x}'\n    - shell.run: {command: ['${x.out}'], timeout: -1s}\n"
        "  verify:\n    - shell.rum: {}\n  limits: {timeout: 5x}\n"
    )
    found = findings(tmp_path, body)
    starts = [
        "8:7 file: spec.setup[0]: expected an object",
        "8:7 not-checked: references, cleanup and what verify checks are not checked in this task",
        "9:51 arguments: shell.run: timeout: ",
        "11:7 step: shell has no operation 'rum'",
        "12:21 file: spec.limits.timeout: ",
    ]
    assert [text[: len(start)] for text, start in zip(found, starts, strict=True)] == starts


def test_every_argument_that_is_refused_is_found_at_once() -> None:
    operation = shell.operations["run"]
    wrong = {"command": ["a"], "timeout": "-5s", "expect": {"stdout": {"matches": "("}}, "env": 1}
    fields = [error.field for error in refusals(operation, wrong, {"env"})]
    assert sorted(fields) == ["expect.stdout", "timeout"]
    assert list(refusals(operation, {"command": ["${a"], "verbatim": True, "as": "a", "scope": "b"})) == []


def test_every_rule_has_a_case(tmp_path: Path) -> None:
    """Those of several files have tests in test_lint."""
    found = {expected.split()[1].rstrip(":") for _, expected in CASES.values()}
    others = {"shared-name", "shared-port", "missing-program", "no-tasks", "duplicate-name", "extension", "not-checked"}
    others.add("no-verify")  # a second finding of its file is an unknown member
    assert found | others == RULES.keys()
    assert not found & others


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            ["a", 1],
            "a string, found 1",
        ),
        ({"anyOf": [{"type": "string"}, {"enum": [1, 2]}]}, {}, "expected a string, 1 or 2, found {}"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, 9, "expected at most 5, found 9"),
        ({"type": "integer"}, 1.5, "expected an integer, found 1.5"),
        ({"type": "boolean"}, "yes", 'expected true or false, found "yes"'),
        ({"const": True}, 1, "expected true, found 1"),
        ({"type": "array", "minItems": 1}, [], "expected at least 1 item, found []"),
        ({"not": {"const": ""}}, "", 'this value is not allowed: ""'),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, 1, "expected null, found 1"),
        ({"pattern": "^a+$"}, "b", 'expected text that matches ^a+$, found "b"'),
    ],
)
def test_values_are_checked_by_a_schema(schema: dict[str, object], value: object, expected: str) -> None:
    assert expected in next(iter(Checker(schema).problems(value))).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: Task", "kind: {}"),
        ("{name: t}", "{name: [t]}"),
        ("[{extension: shell}", "[7, {extension: shell}"),
        ("prompt: {inline: PROMPT}", f"prompt: {{file: {'x' * 300}}}"),
        ("prompt: {inline: PROMPT}", "prompt: {file: .}"),
        ("prompt: {inline: PROMPT}", 'prompt: {file: "a\\0b"}'),
        ("[shell.run: {command: [ls]}]", "{shell.run: {}}"),
        ("[shell.run: {command: [ls]}]", "[shell.run: [ls], '', {}, {id: 1}, {.: 1}, {.a: 1}, {shell.: 1}]"),
        ("{command: [ls]}", "{as: [a], scope: {}, name: 1, capture: {a: [{capture: 1}]}}"),
        ("{command: [ls]}", '{command: ["${", "${}", "${a.b|${c.d}}", "${a.b", "{steps.a.b.c}"], as: a}'),
        ("{command: [ls]}", "&a {env: *a}"),
    ],
)
def test_values_that_no_task_has_are_findings(old: str, new: str, tmp_path: Path) -> None:
    text = HEAD + CHECK
    assert old in text
    assert findings(tmp_path, "", head=text.replace(old, new)) != []


def test_an_unknown_syntax_of_patterns_accepts_all() -> None:
    assert list(Checker({"pattern": r"\p{Greek}"}).problems("a")) == []


def test_a_misspelt_verify_is_an_error(tmp_path: Path) -> None:
    found = findings(tmp_path, CHECK.replace("verify", "verfy"))
    assert [text.partition(": ")[0] for text in found] == ["4:1 no-verify", "7:3 unknown-member"]
    assert found[0].endswith("; rename 'verfy' to 'verify', in `spec`")
    assert RULES["no-verify"][0] == "error"
    at_top = findings(tmp_path, CHECK.replace("  verify", "verify"))
    assert "4:1 no-verify" in [text.partition(": ")[0] for text in at_top]


@pytest.mark.parametrize("text", ["'Is it?'", '"Is it?"', "Is it"])
def test_a_quoted_question_is_accepted(text: str, tmp_path: Path) -> None:
    assert findings(tmp_path, f"  verify:\n    - shell.run: {{command: [ls, {text}]}}\n") == []
    assert findings(tmp_path, "  verify:\n    - shell.run:\n        command:\n          - Is it?\n") == []


def test_a_template_of_an_extension_that_is_not_required_is_not_checked(tmp_path: Path) -> None:
    head = HEAD.replace("  requires: [{extension: shell}, {extension: http}, {extension: kubernetes, as: k8s}]\n", "")
    body = "  setup: [shell.make-temp: {}]\n" + CHECK
    found = findings(tmp_path, body, head=head, prompt="'In {steps.shell.make-temp.path}'")
    assert {text.split()[1] for text in found} == {"step:"}
