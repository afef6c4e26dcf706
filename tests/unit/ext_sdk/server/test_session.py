"""What each request of spec 0 means, without processes: what is checked, and what an operation is given."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import pytest

from ext_sdk import Args, Computed, Config, Context, Duration, Extension, InvalidArgs, Meta, Operation, Result, Verbatim
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.server.schema import COMMON, params_schema, properties_of
from ext_sdk.server.session import ANSWER_SECONDS, OWN_SECONDS, Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.server.session import Call


class Settings(Config):
    namespace: Annotated[str, Meta(min_length=1)] = "default"


class Run(Args):
    text: str = ""
    script: Annotated[str, Verbatim] = ""
    timeout: Duration | None = None


class Choice(Args):
    number: int = 0
    count: Annotated[int, Meta(ge=0, le=10), Computed] = 0
    code: Annotated[str, Meta(pattern="^a"), Computed] = "a"
    pattern: Annotated[str, Meta(pattern="^a")] = "a"
    inner: Run | None = None

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(f"number: expected 0 or more, found {self.number}")


class Other(Args):
    timeout: str = ""  # a field of this name that is no duration limits nothing


extension = Extension("probe", version="1.0.0", config=Settings)


@extension.operation()
def run(args: Run, context: Context) -> Result:
    """Give the text back, as an output and as a secret one."""
    return Result.ok(args.text, outputs={"text": args.text}, secret_outputs={"secret": f"{args.text}-secret"})


@extension.operation()
def choose(args: Choice, context: Context) -> Result:
    """Never called by these tests."""
    raise AssertionError


@extension.operation()
def crash(args: Choice, context: Context) -> Result:
    """Raise what no operation should."""
    raise KeyError


@extension.operation()
def encode(args: Run, context: Context) -> Result:
    """Do what many operations do with a text."""
    return Result.ok(str(len(args.text.encode())))


@extension.operation()
def other(args: Other, context: Context) -> Result:
    """Fail."""
    return Result.failed("it failed", outputs={"known": "all the same"})


REQUEST: dict[str, object] = {"operation": "run", "args": {}, "context": {"workdir": "/task", "phase": "setup"}}
logged: Mapping[str, object]


def no_log(level: str, message: str, data: Mapping[str, object]) -> None:
    raise AssertionError


def new(config: object = None) -> Session:
    return Session(extension, Redactor(), config)


def prepared(session: Session, args: object = None, **context: object) -> Call:
    return prepared_for(session, "run", args, **context)


def prepared_for(session: Session, operation: str, args: object = None, **context: object) -> Call:
    sent = {"workdir": "/task", "phase": "setup"} | context
    return session.prepare({"operation": operation, "args": args, "context": sent}, no_log)


def refused(params: object, session: Session | None = None) -> tuple[int, str]:
    with pytest.raises(RpcError) as caught:
        (session or new()).prepare(params, no_log)
    return caught.value.code, caught.value.message


def failed(session: Session, args: object, operation: str = "run") -> str:
    """Return the error of a call that fails."""
    result = session.perform(prepared_for(session, operation, args))
    assert result.success is False
    return result.error


# --- initialize ---


@pytest.mark.parametrize("config", [None, {}, {"namespace": "x"}, {"maxOperationTime": "1h", "artifacts": "/tmp"}])
def test_a_configuration_that_fits_is_taken(config: object) -> None:
    session = new()
    session.initialize({"protocolVersion": "0.0.1", "config": config})
    found = prepared(session).context.config
    assert isinstance(found, Settings)
    given = config.get("namespace", "default") if isinstance(config, dict) else "default"
    assert found.namespace == given


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (None, "params: expected an object, found nothing"),
        ([], "params: expected an object, found []"),
        ({}, "unsupported protocol version: nothing (expected 0.0.1)"),
        ({"protocolVersion": "1.0.0"}, 'unsupported protocol version: "1.0.0" (expected 0.0.1)'),
        ({"protocolVersion": 1}, "unsupported protocol version: 1 (expected 0.0.1)"),
        ({"protocolVersion": "0.0.1", "config": []}, "config: expected an object, found []"),
        (
            {"protocolVersion": "0.0.1", "config": {"namespace": 1}},
            "config: namespace: expected a string, found an integer",
        ),
        (
            {"protocolVersion": "0.0.1", "config": {"namespace": ""}},
            "config: namespace: expected a string of length >= 1",
        ),
        ({"protocolVersion": "0.0.1", "config": {"namespase": "x"}}, "did you mean 'namespace'?"),
        (
            {"protocolVersion": "0.0.1", "config": {"maxOperationTime": "0s"}},
            "maxOperationTime: expected a duration of",
        ),
        ({"protocolVersion": "0.0.1", "config": {"maxOperationTime": "-1s"}}, "more than 0s"),
        (
            {"protocolVersion": "0.0.1", "config": {"artifacts": "texts"}},
            "config: artifacts: expected an absolute path, found 'texts'",
        ),
        (
            {"protocolVersion": "0.0.1", "config": {"artifacts": "/dev/null/texts/more"}},
            "config: artifacts: expected a directory, found another file: '/dev/null'",
        ),
        ({"protocolVersion": "0.0.1", "config": {"maxOperationTime": "soon"}}, "invalid duration 'soon'"),
    ],
)
def test_an_initialize_that_does_not_fit_is_refused_and_may_come_again(params: object, says: str) -> None:
    session = new()
    with pytest.raises(RpcError) as caught:
        session.initialize(params)
    assert caught.value.code == -32602
    assert says in caught.value.message
    code, message = refused(REQUEST, session)  # with the default configuration, secrets might be shown
    assert code == -32600
    assert message == f"initialize was refused ({caught.value.message}); send a corrected one first"
    session.initialize({"protocolVersion": "0.0.1"})
    assert prepared(session).args == Run()


def test_a_session_is_opened_once() -> None:
    session = new()
    session.initialize({"protocolVersion": "0.0.1"})
    with pytest.raises(RpcError, match="initialize was sent already") as caught:
        session.initialize({"protocolVersion": "0.0.1"})
    assert caught.value.code == -32600


def test_a_configuration_of_the_command_line_holds_until_the_host_says_another() -> None:
    session = new({"namespace": "mine"})
    assert prepared(session).context.config == Settings(namespace="mine")
    session.initialize({"protocolVersion": "0.0.1"})
    assert prepared(session).context.config == Settings(namespace="mine")
    session = new({"namespace": "mine"})
    session.initialize({"protocolVersion": "0.0.1", "config": {"namespace": "theirs"}})
    assert prepared(session).context.config == Settings(namespace="theirs")


def test_a_configuration_of_the_command_line_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RpcError, match="did you mean 'namespace'"):
        new({"namespac": "x"})


# --- execute ---


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"operation": None}, -32602, "operation: expected the name of an operation, found nothing"),
        ({"operation": 7}, -32602, "found 7"),
        ({"operation": "runn"}, -32601, "unknown operation: runn; did you mean 'run'?"),
        ({"operation": "zzz"}, -32601, "unknown operation: zzz; known are run, choose, crash, encode, other"),
        (
            {"operation": "x" * 10_000_000},
            -32601,
            f"unknown operation: {'x' * 80}; known are run, choose, crash, encode, other",
        ),
        ({"args": []}, -32602, "run: args: expected an object, found []"),
        ({"args": "x"}, -32602, 'run: args: expected an object, found "x"'),
        ({"args": {"txt": 1}}, -32602, "run: unknown argument 'txt'; did you mean 'text'?"),
        ({"args": {"text": 1}}, -32602, "run: text: expected a string, found an integer"),
        ({"args": {"timeout": "1d"}}, -32602, "run: timeout: invalid duration '1d'"),
        ({"args": {"as": "a.b"}}, -32602, 'run: as: expected a name of letters, digits, - and _, found "a.b"'),
        ({"args": {"as": "ä"}}, -32602, 'run: as: expected a name of letters, digits, - and _, found "ä"'),
        ({"args": {"as": "a\n"}}, -32602, 'run: as: expected a name of letters, digits, - and _, found "a\\n"'),
        ({"args": {"as": 7}}, -32602, "found 7"),
        ({"args": {"scope": "a b"}}, -32602, 'run: scope: expected a name of letters, digits, - and _, found "a b"'),
        ({"args": {"scop": "a"}}, -32602, "run: unknown argument 'scop'; did you mean 'scope'?"),
        ({"args": {"as": None}}, -32602, "found nothing"),
        ({"context": None}, -32602, "context: expected an object, found nothing"),
        ({"context": []}, -32602, "context: expected an object"),
        ({"context": {}}, -32602, "context.workdir: expected a directory, found nothing"),
        ({"context": {"workdir": ""}}, -32602, 'found ""'),
        ({"context": {"workdir": 7}}, -32602, "found 7"),
        ({"context": {"workdir": "/a\0b"}}, -32602, 'found "/a\\u0000b"'),
        ({"context": {"workdir": "/\ud800"}}, -32602, "context.workdir: expected a directory"),
        ({"context": {"workdir": "/", "phase": "set-up"}}, -32602, "one of setup, verify, cleanup, found"),
        ({"context": {"workdir": "/", "phase": ["setup"]}}, -32602, 'found ["setup"]'),
        ({"context": {"workdir": "/", "timeout": 60}}, -32602, 'context.timeout: expected a duration such as "30s"'),
        ({"context": {"workdir": "/", "timeout": "60"}}, -32602, "context.timeout: invalid duration '60'"),
        ({"context": {"workdir": "/", "timeout": "0s"}}, -32602, 'found "0s"'),
        ({"context": {"workdir": "/", "timeout": "-5s"}}, -32602, 'found "-5s"'),
        ({"context": {"workdir": "/", "env": []}}, -32602, "context.env: expected an object"),
        ({"context": {"workdir": "/", "env": {"A": 1}}}, -32602, "context.env.A: expected a string, found 1"),
        (
            {"context": {"workdir": "/", "env": {"A": "\0"}}},
            -32602,
            'context.env.A: expected a string, found "\\u0000"',
        ),
        ({"context": {"workdir": "/", "env": {"A": "\ud800"}}}, -32602, "context.env.A: expected a string"),
        ({"context": {"workdir": "/", "env": {"": "x"}}}, -32602, 'context.env: expected names of variables, found ""'),
        ({"context": {"workdir": "/", "env": {"A=B": "x"}}}, -32602, 'found "A=B"'),
        ({"context": {"workdir": "/", "agent": "x"}}, -32602, "context.agent: expected an object"),
        ({"context": {"workdir": "/", "agent": {"output": 1}}}, -32602, "context.agent.output: expected a string"),
        ({"context": {"workdir": "/", "agent": {"prompt": None}}}, -32602, "context.agent.prompt: expected a string"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_request_that_does_not_fit_is_refused(change: dict[str, object], code: int, says: str) -> None:
    found, message = refused(REQUEST | change)
    assert found == code
    assert says in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"number": -1}, "choose: number: expected 0 or more, found -1"),
        ({"inner": {"timeout": "9999999h"}}, "choose: inner.timeout: invalid duration '9999999h': it is out of range"),
        ({"inner": {"text": "${a.b}"}}, "choose: inner.text: ${a.b} is not known in this workdir"),
        ({"inner": {"timeout": "${wrong.text}"}}, "choose: inner.timeout: invalid duration 'no duration'"),
        ({"pattern": "a${wrong.text}", "number": -1}, "choose: number: expected 0 or more"),
    ],
)
def test_arguments_that_a_schema_can_not_refuse_fail_the_call(args: object, says: str) -> None:
    """A host stops a task at an error and skips its cleanup; it goes on after a failure."""
    session = new()
    session.perform(prepared(session, {"text": "no duration", "as": "wrong"}))
    assert says in failed(session, args, "choose")
    result = session.perform(prepared_for(session, "choose", args))
    assert (result.message, result.outputs) == (result.error, {})


def test_a_negative_timeout_fails_the_call() -> None:
    assert failed(new(), {"timeout": "-1s"}) == "run: timeout: expected a duration of 0s or more, found -1s"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"number": -1, "inner": {"text": 1}}, "choose: inner.text: expected a string, found an integer"),
        ({"inner": {"text": "${a.b}"}, "numbr": 1}, "choose: unknown argument 'numbr'; did you mean 'number'?"),
        ({"inner": {"timeout": "9999999h", "text": None}}, "choose: inner.text: expected a string, found null"),
        ({"number": -1, "inner": {"timeout": "2 seconds"}}, "choose: inner.timeout: invalid duration '2 seconds'"),
        ({"pattern": "${a.b}"}, "choose: pattern: expected a string matching regex '^a'"),
    ],
)
def test_what_the_schema_refuses_is_an_error_whatever_else_is_wrong(args: object, says: str) -> None:
    code, message = refused(REQUEST | {"operation": "choose", "args": args})
    assert code == -32602
    assert message.startswith(says)


@pytest.mark.parametrize("params", [None, [], "x", 7])
def test_params_that_are_no_object_are_refused(params: object) -> None:
    assert refused(params)[0] == -32602


def test_what_a_known_host_sends_is_enough() -> None:
    """mcpchecker: no phase, no env, no timeout, and null where there are no arguments."""
    params = {"operation": "run", "args": None, "context": {"workdir": "/task", "phase": ""}}
    call = new().prepare(params, no_log)
    assert call.args == Run()
    assert (call.context.phase, call.context.env, call.context.agent) == ("", {}, None)


def test_an_operation_is_given_all_that_the_host_says() -> None:
    call = prepared(
        new(),
        {"text": "x"},
        phase="verify",
        env={"A": "1", "B": ""},
        agent={"prompt": "p", "output": "o"},
        further="ignored",
    )
    context = call.context
    assert call.args == Run(text="x")
    assert (context.workdir, context.phase, context.env) == (Path("/task"), "verify", {"A": "1", "B": ""})
    assert context.agent is not None
    assert (context.agent.prompt, context.agent.output) == ("p", "o")


@pytest.mark.parametrize("null", ["phase", "env", "timeout", "agent"])
def test_null_is_nothing(null: str) -> None:
    context = prepared(new(), **{null: None}).context
    assert (context.env, context.agent) == ({}, None)


def test_a_part_of_the_agents_context_may_be_missing() -> None:
    agent = prepared(new(), agent={"output": "o"}).context.agent
    assert agent is not None
    assert (agent.prompt, agent.output) == (None, "o")


def test_a_relative_workdir_is_one_of_the_extensions_own() -> None:
    assert prepared(new(), workdir=".").context.workdir == Path.cwd()
    assert prepared(new(), workdir="a/../b").context.workdir == Path.cwd() / "b"


def test_bytes_that_are_no_utf_8_may_be_in_a_path() -> None:
    assert os.fsencode(prepared(new(), workdir="/\udcff").context.workdir) == b"/\xff"


# --- Deadlines ---

HOUR = 3600.0


@pytest.mark.parametrize(
    ("context", "own", "seconds", "latest"),
    [
        ({}, None, None, None),
        ({}, "1h", HOUR, HOUR + OWN_SECONDS),
        ({"timeout": "1h"}, None, HOUR - 1, HOUR - 0.1),
        ({"timeout": "100s"}, "1h", 99.0, 99.9),
        ({"timeout": "1h"}, "100s", 100.0, 100.0 + OWN_SECONDS),
        ({"timeout": "5s"}, None, 4.5, 4.95),
        ({"phase": ""}, None, 28.0, 28.0 + ANSWER_SECONDS),
        ({"phase": ""}, "1h", 28.0, 28.0 + ANSWER_SECONDS),
        ({"phase": ""}, "20s", 20.0, 28.0 + ANSWER_SECONDS),
        ({"phase": "", "timeout": "1h"}, None, 28.0, 28.0 + ANSWER_SECONDS),
        ({"phase": "", "timeout": "10s"}, None, 9.0, 9.9),
    ],
)
def test_the_soonest_of_all_limits_counts(
    context: dict[str, object], own: str | None, seconds: float | None, latest: float | None
) -> None:
    call = prepared(new(), {"timeout": own} if own else {}, **context)
    assert call.answer_seconds == (None if latest is None else pytest.approx(latest))
    remaining = call.context.deadline.remaining()
    if seconds is None:
        assert remaining == float("inf")
    else:
        assert seconds - 3 < remaining <= seconds


def test_a_configuration_says_how_long_operations_take_where_the_host_says_nothing() -> None:
    call = prepared(new({"maxOperationTime": "2m"}), phase="")
    assert call.answer_seconds == 120.0 + ANSWER_SECONDS


def test_another_field_named_timeout_limits_nothing() -> None:
    assert prepared_for(new(), "other", {"timeout": "x"}).context.deadline.remaining() == float("inf")


# --- Outputs for later calls ---


def test_outputs_are_kept_under_a_name_and_secret_ones_too() -> None:
    redactor = Redactor()
    session = Session(extension, redactor)
    result = session.perform(prepared(session, {"text": "first", "as": "one"}))
    assert result.outputs == {"text": "first"}
    call = prepared(session, {"text": "${one.text} ${one.secret} $${x}", "script": "${one.text}"})
    assert call.args == Run(text="first first-secret ${x}", script="${one.text}")
    assert redactor.redact_text("it is first-secret") == "it is [redacted:output.secret#1]"


@pytest.mark.parametrize(
    ("operation", "args", "says"),
    [
        ("other", {"as": "one"}, "other failed"),
        ("run", {"text": "${x.y}", "as": "one"}, "run failed"),
        ("run", {"txt": "x", "as": "one"}, "run failed"),
        ("crash", {"as": "one"}, "crash failed"),
    ],
)
def test_an_operation_that_fails_unsets_its_name(operation: str, args: object, says: str) -> None:
    """Another task in the same workdir may have set it; its value must not be taken for this one's."""
    session = new()
    session.perform(prepared(session, {"text": "of an earlier task", "as": "one"}))
    with suppress(RpcError):
        assert not session.perform(prepared_for(session, operation, args)).success
    assert failed(session, {"text": "${one.text}"}) == f"run: text: ${{one.text}} was not set: {says}"
    session.perform(prepared(session, {"text": "again", "as": "one"}))
    assert prepared(session, {"text": "${one.text}"}).args == Run(text="again")


def test_what_a_call_gives_that_was_given_up_is_not_kept() -> None:
    session = new()
    late = prepared(session, {"text": "late", "as": "one"})
    session.give_up(late)
    assert session.perform(late).success
    assert "${one.text} was not set: run failed" in failed(session, {"text": "${one.text}"})


# --- Tasks that share a workdir ---


def interleaved(scopes: tuple[dict[str, str], dict[str, str]]) -> list[object]:
    """Let two tasks set the same name, one after the other, and return what each reads then."""
    session = new()
    for number, scope in enumerate(scopes):
        session.perform(prepared(session, {"text": f"of task {number}", "as": "one"} | scope))
    return [prepared(session, {"text": "${one.text}"} | scope).args for scope in scopes]


def test_tasks_that_share_a_workdir_are_apart_by_their_scopes() -> None:
    assert interleaved(({"scope": "a"}, {"scope": "b"})) == [Run(text="of task 0"), Run(text="of task 1")]
    assert interleaved(({}, {"scope": "b"})) == [Run(text="of task 0"), Run(text="of task 1")]
    assert interleaved(({}, {})) == [Run(text="of task 1"), Run(text="of task 1")]


def test_state_is_that_of_the_scope() -> None:
    session = new()
    contexts = [prepared(session, {"scope": scope} if scope else {}).context for scope in ("", "a", "b", "a")]
    assert [context.scope for context in contexts] == ["", "a", "b", "a"]
    states: list[dict[str, str]] = [context.state(dict) for context in contexts]
    assert [[one is other for other in states] for one in states] == [
        [True, False, False, False],
        [False, True, False, True],
        [False, False, True, False],
        [False, True, False, True],
    ]


@extension.operation()
def shorten(args: Run, context: Context) -> Result:
    """Show a part of the text."""
    return Result.ok(args.text, outputs={"text": args.text[:1]}, whole={"text": args.text})


def test_a_later_step_gets_the_complete_value_of_an_output_that_was_shortened() -> None:
    session = new()
    shown = session.perform(prepared_for(session, "shorten", {"text": "long", "as": "s"}))
    assert shown.outputs == {"text": "l"}
    assert prepared(session, {"text": "${s.text}"}).args == Run(text="long")


def test_a_verbatim_call_is_left_as_it_is_by_the_operation_too() -> None:
    session = new()
    session.perform(prepared(session, {"text": "first", "as": "one"}))
    args = {"text": "${HOME} $${x} ${one.text}"}
    call = prepared(session, {**args, "verbatim": True})
    assert call.args == Run(text=args["text"])
    assert call.context.expand("${one.text}") == call.context.template("${one.text}") == "${one.text}"
    assert refused({**REQUEST, "args": {"verbatim": "yes"}})[1] == 'run: verbatim: expected true or false, found "yes"'


def test_an_operation_can_replace_references_in_texts_of_its_own() -> None:
    session = new()
    session.perform(prepared(session, {"text": "first", "as": "one"}))
    context = prepared(session).context
    assert context.expand({"a": ["${one.text}", 1]}, "file") == {"a": ["first", 1]}
    assert context.expand("[${one.text}]", insert=str.upper) == "[FIRST]"
    with pytest.raises(InvalidArgs) as caught:
        context.expand({"a": ["${unknown}", "${one.txt}"]}, "file")
    assert "\n  file.a[0]: ${unknown} is not known in this workdir\n  file.a[1]: " in str(caught.value)
    with pytest.raises(InvalidArgs, match=r"file: .*is not known"):
        context.template("${request.body} ${two.text}", "file")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${one.text}", ""),
        ("${one.text}0", "choose: count: expected an integer <= 10"),
        ("x${one.text}", "choose: count: expected an integer, found a string"),
        ("${two.text}", "choose: count: ${two.text} is not known"),
        ("${two.text|3}", ""),
    ],
)
def test_a_reference_may_replace_a_number_of_the_right_type(text: str, says: str) -> None:
    session = new()
    session.perform(prepared(session, {"text": "7", "as": "one"}))
    call = prepared_for(session, "choose", {"count": text, "code": "${two.text|abc}"})
    if says:
        assert failed(session, {"count": text}, "choose").startswith(says)
        return
    assert isinstance(call.args, Choice)
    assert (call.args.count, call.args.code) in {(7, "abc"), (3, "abc")}
    wrong: tuple[dict[str, object], ...] = ({"count": "7"}, {"count": text, "number": "7"})
    assert [refused({**REQUEST, "operation": "choose", "args": args}, session)[0] for args in wrong] == [-32602] * 2


def test_a_failure_of_several_references_has_a_short_message() -> None:
    session = new()
    result = session.perform(prepared(session, {"text": "${a.b} ${c.d}"}))
    assert result.message == "run: 2 references without a value"
    assert "\n  text: ${a.b} is not known in this workdir\n  text: ${c.d} is" in result.error


@pytest.mark.parametrize("name", ["request", "uuid"])
def test_names_of_values_that_no_step_keeps_are_refused(name: str) -> None:
    assert failed(new(), {"as": name}).startswith(f"run: as: ${{{name}}} is for ")


def test_without_a_name_nothing_is_kept() -> None:
    session = new()
    session.perform(prepared(session, {"text": "first"}))
    assert "no operation has been called with" in failed(session, {"text": "${one.text}"})


def test_as_is_no_argument_of_the_operation() -> None:
    assert prepared(new(), {"as": "9_a-B"}).save_as == "9_a-B"
    assert prepared(new(), {"as": "name"}).args == Run()
    assert prepared(new(), {"as": ""}).save_as == ""


class Impersonation(Args):
    as_: str = msgspec.field(name="as")


def ask(args: Impersonation, context: Context) -> Result:
    """Say who."""
    return Result.ok(args.as_)


def test_as_is_an_argument_of_an_operation_that_declares_it() -> None:
    asking = Extension("asking", version="1.0.0")
    asking.add(Operation("ask", ask))
    request = REQUEST | {"operation": "ask", "args": {"as": "system:admin"}}
    call = Session(asking, Redactor()).prepare(request, no_log)
    assert (call.args, call.save_as) == (Impersonation(as_="system:admin"), "")
    assert properties_of(params_schema(Impersonation)) == COMMON | {"as": {"type": "string"}}


def test_variables_of_the_task_that_look_secret_are_hidden() -> None:
    redactor = Redactor()
    prepared(Session(extension, redactor), env={"DB_PASSWORD": "swordfish", "PLACE": "Lisbon"})
    assert redactor.redact_text("swordfish in Lisbon") == "[redacted:env.DB_PASSWORD#1] in Lisbon"


def test_half_of_a_character_is_not_a_fault() -> None:
    result = new().perform(prepared_for(new(), "encode", {"text": "a\ud800"}))
    assert result.error == r"encode: expected text, found half of a character: '\ud800', a lone surrogate"
