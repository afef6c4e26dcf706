"""Whatever an operation answers fits a line, says what was cut, and loses nothing."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ext_sdk import Result
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.server.line_limit import LineLimiter
from tests.support.line_limit import read

# Characters of every cost in JSON: 1, 2, 3, 4 and 6 bytes, and escapes of 2.
pieces = st.one_of(
    st.text(max_size=20),
    st.tuples(st.sampled_from(["x", "\0", "ä", "€", "😀", '"', "\n", "\ud800", "ab\x7f"]), st.integers(1, 40_000)).map(
        lambda pair: pair[0] * pair[1]
    ),
)
texts = st.lists(pieces, max_size=3).map("".join)
names = st.one_of(st.text("abcXYZ-_", min_size=1, max_size=10), st.integers(1, 3000).map(lambda count: "ab" * count))
results = st.builds(
    Result, success=st.booleans(), message=texts, error=texts, outputs=st.dictionaries(names, texts, max_size=12)
)
data = st.dictionaries(names, st.one_of(texts, st.lists(texts, max_size=3), st.integers(), st.floats()), max_size=8)
ids = st.one_of(st.none(), st.integers(), st.text(max_size=100), st.floats(allow_nan=False, allow_infinity=False))
# Values that are short, so that their placeholders are longer than they are.
secrets = st.dictionaries(st.sampled_from(["a", "b" * 90]), st.sampled_from(["xxxx", "nnnn", "\0\0\0\0", "ääää"]))


class Files:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.texts: dict[str, str] = {}

    def keep(self, name: str, text: str) -> str:
        self.texts[f"{self.directory}/{len(self.texts)}-{name}"] = text
        return list(self.texts)[-1]


directories = st.sampled_from(["/tmp", "/long" * 100, "/longest" * 500])


@given(ids, results, directories)
@settings(max_examples=60)
def test_every_result_fits_and_what_is_cut_stands_whole_in_a_file(id: object, result: Result, directory: str) -> None:
    files = Files(directory)
    answer = read(LineLimiter(Redactor(), files.keep).result(id, result))  # type: ignore[arg-type]
    assert answer["id"] == id
    found = answer["result"]
    assert isinstance(found, dict)
    assert found["success"] == result.success
    outputs: dict[str, str] = found.get("outputs", {})
    given = {"message": result.message, "error": "" if result.success else result.error} | result.outputs
    if "outputsFile" in outputs and "outputsFile" not in result.outputs:
        assert json.loads(files.texts[outputs["outputsFile"]]) == result.outputs
        given = {name: text for name, text in given.items() if name in ("message", "error")}
    for name, text in given.items():
        shown = outputs[name] if name in result.outputs else found.get(name, "")
        if shown != text:
            assert "characters" in shown
            if f"{name}File" not in result.outputs:
                assert files.texts[outputs[f"{name}File"]] == text


@given(st.sampled_from(["debug", "info", "warn", "error"]), texts, data)
@settings(max_examples=60)
def test_every_log_fits(level: str, message: str, data: dict[str, object]) -> None:
    line = read(LineLimiter(Redactor(), Files("/tmp").keep).log(level, message, data))
    params = line["params"]
    assert isinstance(params, dict)
    assert params["level"] == level
    assert isinstance(params["message"], str)
    assert set(params.get("data", {})) in (set(data), {"cut"})


@given(ids, st.integers(-40000, 0), texts)
@settings(max_examples=60)
def test_every_error_fits(id: object, code: int, message: str) -> None:
    answer = read(LineLimiter(Redactor(), Files("/tmp").keep).error(id, RpcError(code, message)))  # type: ignore[arg-type]
    assert answer["id"] == id
    assert isinstance(answer["error"], dict)
    assert answer["error"]["code"] == code


@given(results, data, secrets)
@settings(max_examples=60)
def test_lines_fit_with_placeholders_longer_than_the_secrets_and_no_secret_is_in_them(
    result: Result, data: dict[str, object], secrets: dict[str, str]
) -> None:
    files = Files("/tmp")
    fitter = LineLimiter(Redactor(secrets), files.keep)
    answers = [
        read(fitter.result(1, result)),
        read(fitter.log("info", result.message, data)),
        read(fitter.error(1, RpcError(-1, result.error))),
    ]
    for secret in secrets.values():
        assert not any(secret in text for text in files.texts.values())
        assert not any(secret in json.dumps(answer, ensure_ascii=False) for answer in answers)
        assert not any(secret in text for answer in answers for text in strings(answer))


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return strings([*value.keys(), *value.values()])
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []
