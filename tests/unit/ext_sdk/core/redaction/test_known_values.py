"""Known values, in whatever spelling they come."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from ext_sdk.core.redaction.redactor import Redactor

SECRET = "Pa$$w0rd/+\u00e9 x\n\\\"'"


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(each):04X}" for each in text)


SPELLINGS = {
    "literal": SECRET,
    "json": json.dumps(SECRET),
    "json in utf-8": json.dumps(SECRET, ensure_ascii=False),
    "json in json": json.dumps(json.dumps(SECRET)),
    "json in json in json": json.dumps(json.dumps(json.dumps(SECRET, ensure_ascii=False))),
    "every character escaped": escaped(SECRET),
    "every character escaped, in json": json.dumps(escaped(SECRET)),
    "escaped escapes": escaped(escaped(SECRET)),
    "escaped slash": json.dumps(SECRET).replace("/", "\\/"),
    "as bytes": "".join(f"\\x{each:02x}" for each in SECRET.encode()),
    "url": quote(SECRET, safe=""),
    "url in lower case": quote(SECRET, safe="").lower().replace("pa", "Pa"),
    "url twice": quote(quote(SECRET, safe=""), safe="/"),
    "form": quote(SECRET, safe=" ").replace(" ", "+"),
    "hexadecimal": SECRET.encode().hex(),
    "hexadecimal in upper case": SECRET.encode().hex().upper(),
}


@pytest.mark.parametrize("spelling", [each for each in SPELLINGS if each != "url twice"])
def test_is_found_in_every_spelling(spelling: str) -> None:
    redacted = Redactor({"x": SECRET}).redact_text(f"<{SPELLINGS[spelling]}>")
    assert redacted.strip('<>"\\') == "[redacted:x#1]"


@pytest.mark.parametrize("before", ["", "u:", "user:", "x" * 57])
@pytest.mark.parametrize("after", ["", "!", "more"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_is_found_in_base64_at_any_offset(before: str, after: str, encode: object) -> None:
    assert callable(encode)
    encoded = encode(f"{before}{SECRET}{after}".encode()).decode()
    redacted = Redactor({"x": SECRET}).redact_text(f'{{"Authorization":"Basic {encoded}"}}')
    json.loads(redacted)
    kept = redacted.removeprefix('{"Authorization":"Basic ').removesuffix('"}').split("[redacted:x#1]")
    assert len(kept) == 2
    assert len(kept[0]) <= -(-len(before) * 8 // 6)
    assert len(kept[1].rstrip("=")) <= -(-len(after) * 8 // 6)


def test_is_found_in_base64_with_escaped_slashes() -> None:
    value = "\u00ff\u00fe\u00ff\u00ff\u00fa\u00ff\u00ff"
    encoded = base64.b64encode(value.encode("latin-1")).decode()
    assert "/" in encoded
    redactor = Redactor({"x": value.encode("latin-1").decode("utf-8", "surrogateescape")})
    assert redactor.redact_text(encoded.replace("/", "\\/")).startswith("[redacted:x#1]")


def test_a_value_of_several_lines_is_found_line_by_line() -> None:
    key = "-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END X-----"
    redactor = Redactor({"env.KEY": key})
    assert [redactor.redact_text(f"{line}\n") for line in key.splitlines()] == [
        "-----BEGIN X-----\n",
        "[redacted:env.KEY#1]\n",
        "[redacted:env.KEY#1]\n",
        "-----END X-----\n",
    ]
    assert redactor.redact_text(json.dumps({"k": key})) == '{"k": "[redacted:env.KEY#1]"}'


@pytest.mark.parametrize("path", ["C:\\token-dir-1", "\\\\server\\token-dir-1", "\\token-dir-1"])
@pytest.mark.parametrize("value", ["token-dir-1", "nabcdef", "u0041bc"])
def test_a_backslash_before_it_does_not_hide_it(path: str, value: str) -> None:
    text = json.dumps({"path": path.replace("token-dir-1", value)})
    redacted = Redactor({"x": value}).redact_text(text)
    assert json.loads(redacted) == {"path": path.replace("token-dir-1", "[redacted:x#1]")}


@pytest.mark.parametrize("value", ["a\\b\\c", "C:\\new\\table", "100%41sure", "tail\\", "\\\\unc\\share", 'q"u\'o"te'])
def test_a_value_with_escapes_of_its_own_is_found_at_every_depth(value: str) -> None:
    redactor = Redactor({"x": value})
    once = json.dumps(value)
    for text in (value, once, json.dumps(once), json.dumps(json.dumps(once)), quote(value)):
        assert "[redacted:x#1]" in redactor.redact_text(text)


def test_what_surrounds_it_is_kept_byte_for_byte() -> None:
    text = '{"a":1.0,"n":12345678901234567890123,"\\u0061":"\\/\\u00e9\\n<Pa$$w0rd1>\\"","a":2}'
    assert Redactor({"x": "Pa$$w0rd1"}).redact_text(text) == text.replace("Pa$$w0rd1", "[redacted:x#1]")


def test_an_escape_beside_it_is_never_cut() -> None:
    redactor = Redactor({"x": "00e9", "y": "YWJj"})
    text = '["\\u00e9","x\\nYWJj","\\\\00e9"]'
    redacted = redactor.redact_text(text)
    assert json.loads(redacted) == ["\u00e9", "x\n[redacted:y#1]", "\\[redacted:x#1]"]
