"""Whatever a host sends: it is a call, or an error of the protocol that is short enough to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk import Args, Context, Duration, Extension, InvalidArgs, Result, Verbatim
from ext_sdk.context import Place
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.server.session import Call, Session
from ext_sdk.server.validation import validate
from ext_sdk.server.variables import Variables

if TYPE_CHECKING:
    from pathlib import Path


class Inner(Args):
    mode: Literal["all", "any"] = "all"
    count: int = 0


class Everything(Args):
    text: str = ""
    script: Annotated[str, Verbatim] = ""
    timeout: Duration | None = None
    number: int | str = 0
    inner: Inner | None = None
    several: list[Inner] = msgspec.field(default_factory=list)
    table: dict[str, Inner] = msgspec.field(default_factory=dict)


extension = Extension("probe", version="1.0.0")


@extension.operation()
def run(args: Everything, context: Context) -> Result:
    """Do nothing."""
    return Result.ok()


texts = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        ["run", "setup", "", "1s", "-1s", "${a.b}", "$${", "/tmp", "\0", "\ud800", "all", "as", "9" * 5000]
    ),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def nearly(fields: dict[str, st.SearchStrategy[object]]) -> st.SearchStrategy[object]:
    """An object with some of these members, and sometimes another value altogether."""
    return values | st.fixed_dictionaries({}, optional=dict(fields))


inner = nearly({"mode": values | st.just("any"), "count": values, "cuont": values})
args = nearly(
    {
        "text": texts,
        "script": texts,
        "timeout": texts,
        "number": values,
        "inner": inner,
        "several": st.lists(inner, max_size=2),
        "table": st.dictionaries(texts, inner, max_size=2),
        "as": texts,
    }
)
context = nearly(
    {
        "workdir": texts,
        "phase": texts,
        "env": values,
        "timeout": texts,
        "agent": nearly({"prompt": values, "output": values}),
    }
)
params = nearly({"operation": st.just("run") | values, "args": args, "context": context})


@given(params)
def test_params_are_a_call_or_an_error_of_the_protocol(params: object) -> None:
    session = Session(extension, Redactor())
    try:
        call = session.prepare(params, lambda level, message, data: None)
    except RpcError as error:
        outcome: Call | RpcError = error
    else:
        outcome = call
    if isinstance(outcome, RpcError):
        assert outcome.code in (-32601, -32602)
        assert 0 < len(outcome.message) < 1000
    else:
        assert isinstance(outcome.args, Everything)
        assert outcome.context.workdir.is_absolute()


@given(values | nearly({"protocolVersion": st.just("0.0.1") | values, "config": values}))
def test_an_initialize_is_taken_or_an_error_of_the_protocol(params: object) -> None:
    outcome: list[RpcError] = []
    try:
        Session(extension, Redactor()).initialize(params)
    except RpcError as error:
        outcome.append(error)
    assert all(error.code == -32602 and len(error.message) < 1000 for error in outcome)


@given(args)
def test_arguments_are_typed_or_refused(value: object) -> None:
    try:
        typed = validate(Everything, value)
    except InvalidArgs:
        return
    assert isinstance(typed, Everything)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workdir")


@given(text=st.text("ab.${} ", max_size=30), value=st.text("ab.${}", max_size=10))
def test_an_escaped_text_is_the_text(workdir: Path, text: str, value: str) -> None:
    variables = Variables()
    place = Place.of(workdir)
    variables.keep(place, "a", {"b": value})
    escaped = text.replace("${", "$${")
    if "$$" not in text:  # a `$` in front makes another escape of it
        assert variables.expansion(place).expand({"x": escaped}) == {"x": text}
    assert variables.expansion(place).expand({"x": "${a.b}"}) == {"x": value}


@given(value=values)
def test_values_without_references_come_back_as_they_are(workdir: Path, value: object) -> None:
    if "${" not in repr(value):
        assert Variables().expansion(Place.of(workdir)).expand({"x": value}) == {"x": value}
