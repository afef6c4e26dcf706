"""The redactor as its users see it: what goes in, what comes out, what it is called."""

from __future__ import annotations

import html
import json
import shlex
import subprocess
import sys

import pytest

from ext_sdk.core.redaction.redactor import Redactor

SECRET = "hunter2-S3cr3t"
TOKEN = "9f8e7d6c5b4a-Refresh-01"


def test_a_text_without_secrets_is_returned_as_it_is() -> None:
    data = b'{"method":"execute","params":{"operation":"run"}}'
    assert Redactor({"x": SECRET}, rules=True).redact(data) is data


def test_without_secrets_and_rules_nothing_is_replaced() -> None:
    assert Redactor().redact(b'{"password":"x"}') == b'{"password":"x"}'


def test_only_known_values_are_replaced_unless_rules_are_asked_for() -> None:
    text = f'{{"password":"other","x":"{SECRET}"}}'
    assert Redactor({"env.X": SECRET}).redact_text(text) == '{"password":"other","x":"[redacted:env.X#1]"}'


def test_the_same_value_has_the_same_number_wherever_and_however_it_is_spelt() -> None:
    redactor = Redactor(rules=True)
    first = redactor.redact_text('{"password":"a/b"}')
    assert first == '{"password":"[redacted:key.password#1]"}'
    assert redactor.redact_text('{"password":"other"}') == '{"password":"[redacted:key.password#2]"}'
    assert redactor.redact_text('{"password":"a\\/b"}') == first
    assert redactor.redact_text('{"password":"\\u0061/b"}') == first
    assert redactor.redact_text("password: a/b\n") == "password: [redacted:key.password#1]\n"


def test_numbers_follow_the_order_of_the_text_and_belong_to_a_rule() -> None:
    text = '{"token":"b1","password":"a1","list":[{"token":"a1"},{"token":"b1"}]}'
    assert Redactor(rules=True).redact_text(text) == (
        '{"token":"[redacted:key.token#1]","password":"[redacted:key.password#1]",'
        '"list":[{"token":"[redacted:key.token#2]"},{"token":"[redacted:key.token#1]"}]}'
    )


def test_two_values_of_one_name_are_told_apart() -> None:
    redactor = Redactor({"env.X": "first-value"})
    redactor.add("env.X", "second-value")
    assert redactor.redact_text("second-value first-value") == "[redacted:env.X#1] [redacted:env.X#2]"


def test_a_known_value_is_called_by_its_name_under_a_telling_key_too() -> None:
    redactor = Redactor({"env.API_TOKEN": SECRET}, rules=True)
    assert redactor.redact_text(f'{{"token":"{SECRET}"}}') == '{"token":"[redacted:env.API_TOKEN#1]"}'
    assert redactor.redact_text(f"Authorization: Bearer {SECRET}") == "Authorization: Bearer [redacted:env.API_TOKEN#1]"


def test_a_value_that_has_a_known_one_in_it_is_replaced_as_a_whole() -> None:
    redactor = Redactor({"x": SECRET}, rules=True)
    assert redactor.redact_text(f'{{"password":"a{SECRET}b"}}') == '{"password":"[redacted:key.password#1]"}'


def test_the_longer_of_two_known_values_counts() -> None:
    redactor = Redactor({"a": "hunter2", "b": "hunter2-long"})
    assert redactor.redact_text("hunter2-long hunter2") == "[redacted:b#1] [redacted:a#1]"


def test_one_value_under_two_names_is_called_by_the_first_of_them() -> None:
    assert (
        Redactor({"env.GH_TOKEN": SECRET, "env.GITHUB_TOKEN": SECRET}).redact_text(SECRET)
        == "[redacted:env.GH_TOKEN#1]"
    )


def test_says_which_rules_replaced_something() -> None:
    redactor = Redactor({"env.A": SECRET, "env.B": "not-to-be-seen"}, rules=True)
    assert list(redactor.fired) == []
    redactor.redact_text(f'{{"x":"{SECRET}","password":"p","h":"Authorization: Bearer abc1"}}')
    assert list(redactor.fired) == ["bearer", "env.A", "key.password"]


@pytest.mark.parametrize("value", ["", " ", "abc", " ab\n", "true", "null", "jsonrpc", "result"])
def test_values_too_short_or_too_common_to_be_secrets_are_ignored(value: str) -> None:
    text = '{"jsonrpc":"2.0","id":1,"result":{"abc":true,"x":null}}'
    assert Redactor({"x": value}).redact_text(text) == text


def test_space_around_a_value_is_not_part_of_it() -> None:
    assert Redactor({"x": f"{SECRET}\n"}).redact_text(SECRET) == "[redacted:x#1]"


def test_a_rule_is_named_without_quotes_and_spaces_whatever_its_name() -> None:
    redacted = Redactor({'env."A B"%%\u00e9': SECRET}).redact_text(f'["{SECRET}"]')
    assert json.loads(redacted) == ["[redacted:env._A_B____#1]"]


def test_a_rule_named_after_a_key_does_not_tell_a_secret_of_the_key() -> None:
    redacted = Redactor({"x": SECRET}, rules=True).redact_text(f'{{"{SECRET}_password":"p"}}')
    assert redacted == '{"[redacted:x#1]_password":"[redacted:key#1]"}'


def test_a_long_value_found_by_a_rule_is_known_from_then_on() -> None:
    redactor = Redactor(rules=True)
    assert redactor.redact_text(f'{{"session":"{TOKEN}"}}') == f'{{"session":"{TOKEN}"}}'
    redacted = redactor.redact_text(f'{{"before":"{TOKEN}","refresh_token":"{TOKEN}"}}')
    assert redacted == '{"before":"[redacted:key.refresh_token#1]","refresh_token":"[redacted:key.refresh_token#1]"}'
    assert redactor.redact_text(f"GET /?session={TOKEN}") == "GET /?session=[redacted:key.refresh_token#1]"


@pytest.mark.parametrize("value", ["sk-abc123secret", "zzz-secret-val-1"])
def test_a_value_of_twelve_characters_with_a_digit_is_long_enough_to_be_known(value: str) -> None:
    redactor = Redactor(rules=True)
    redactor.redact_text(json.dumps({"token": value}))
    assert redactor.redact_text(f"200 /item {value}") == "200 /item [redacted:key.token#1]"


@pytest.mark.parametrize(
    "value", ["short1", "justaverylongword", "/a/path/with/1/2/3", "several words 1 2 3 4", "123456789012345678"]
)
def test_what_may_stand_in_a_text_for_another_reason_is_not_remembered(value: str) -> None:
    redactor = Redactor(rules=True)
    redactor.redact_text(json.dumps({"password": value}))
    assert redactor.redact_text(json.dumps({"x": value})) == json.dumps({"x": value})


def test_what_is_remembered_is_bounded() -> None:
    redactor = Redactor(rules=True)
    for number in range(1000):
        redactor.redact_text(f'{{"password":"Value-{number:020}"}}')
    assert len(redactor._learned) <= 32
    assert redactor.redact_text(f"Value-{999:020}") == "[redacted:key.password#1000]"


def test_placeholders_are_left_alone_even_by_a_secret_that_looks_like_one() -> None:
    redactor = Redactor({"x": "redacted", "y": "bearer", "z": "[redacted:bearer#1]"}, rules=True)
    text = '{"password":"[redacted:bearer#1]","h":"Authorization: Bearer [redacted:env.X#2]"}'
    assert redactor.redact_text(text) == text


def test_the_number_of_a_placeholder_from_outside_is_not_given_to_another_value() -> None:
    redactor = Redactor(rules=True)
    redactor.redact_text('{"token":"[redacted:key.token#4]"}')
    assert redactor.redact_text('{"token":"mine"}') == '{"token":"[redacted:key.token#5]"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id":1234,"n":[1.234e3,51234]}', '{"id":"[redacted:pin#1]","n":[1.234e3,"[redacted:pin#1]"]}'),
        ("1234", '"[redacted:pin#1]"'),
        ('{"x":false,"password":87654321}', '{"x":false,"password":"[redacted:key.password#1]"}'),
        ('{"x":"{\\"token\\":20261121}"}', '{"x":"{\\"token\\":\\"[redacted:key.token#1]\\"}"}'),
        ('["alse",false]', '["[redacted:word#1]",false]'),
        ('{"a":"x","b":"y"}', '{"a":"x","b":"y"}'),
    ],
)
def test_json_stays_json(text: str, expected: str) -> None:
    redactor = Redactor({"pin": "1234", "word": "alse", "structure": '","b":"'}, rules=True)
    redacted = redactor.redact_text(text)
    assert redacted == expected
    json.loads(redacted)


def test_text_that_only_begins_like_json_loses_its_secrets_all_the_same() -> None:
    redactor = Redactor({"x": SECRET, "pin": "1234"}, rules=True)
    assert redactor.redact_text(f"[INFO] {SECRET} 1234 [done]") == "[INFO] [redacted:x#1] [redacted:pin#1] [done]"
    assert redactor.redact_text(f'{{"x": {SECRET}}}') == '{"x": [redacted:x#1]}'
    assert redactor.redact_text(f'{{"password": "{SECRET}') == '{"password": "[redacted:x#1]'


def test_json_too_deep_to_be_parsed_stays_json() -> None:
    text = "[" * 100_000 + '"a","1234",1234' + "]" * 100_000
    redacted = Redactor({"pin": "1234"}).redact_text(text)
    assert redacted == text.replace('"1234",1234', '"[redacted:pin#1]","[redacted:pin#1]"')


def test_bytes_that_are_no_text_are_kept() -> None:
    redactor = Redactor({"x": SECRET}, rules=True)
    assert redactor.redact(b"\xff\x00" + SECRET.encode() + b"\xfe\r\n") == b"\xff\x00[redacted:x#1]\xfe\r\n"


def test_lone_surrogates_of_a_text_are_kept() -> None:
    assert Redactor({"x": SECRET}).redact_text(f"\ud800{SECRET}\udc80") == "\ud800[redacted:x#1]\udc80"


def test_messages_one_at_a_time_give_what_they_gave_before() -> None:
    lines = [f'{{"id":{n},"token":"t{n % 3}","x":"{SECRET}"}}' for n in range(9)]
    one, other = Redactor({"x": SECRET}, rules=True), Redactor({"x": SECRET}, rules=True)
    assert [one.redact_text(line) for line in lines] == other.redact_text("\n".join(lines)).split("\n")


def test_importing_it_does_not_import_what_makes_a_start_slow() -> None:
    code = (
        "import sys; from ext_sdk.core.redaction.redactor import Redactor\n"
        "x = Redactor({'a': 'hunter2'}, rules=True); x.redact(b'plain')\n"
        "print(sorted({'re', 'json', 'typing', 'enum', 'threading', 'dataclasses', 'functools'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert run.stdout == "[]\n", run.stderr


@pytest.mark.parametrize("before", ["", " ", '"', "key=", "\\n", "\\u000a", "é", "task-1 ", "x/"])
def test_a_token_is_found_wherever_a_word_may_begin(before: str) -> None:
    text = f"{before}sk-abcdefgh12345678"
    assert Redactor(rules=True).redact_text(text) == f"{before}[redacted:sk#1]"


def test_a_token_is_not_found_in_the_middle_of_a_word() -> None:
    text = '{"workdir":"/tmp/task-12345678abcdefgh"}'
    assert Redactor(rules=True).redact_text(text) is text


def test_a_secret_is_found_as_shells_and_html_write_it() -> None:
    value = 'p&ss, <w0rd> "it\'s" $x{1}=~#^[a]|b;c*(d)!`e`?\\f'
    redactor = Redactor({"K": value})
    quoted = subprocess.run(["bash", "-c", 'printf %q "$1"', "_", value], capture_output=True, text=True, check=True)
    traced = subprocess.run(["bash", "-xc", 'true "$1"', "_", value], capture_output=True, text=True, check=True)
    plain = value.replace("~", "")  # bash escapes a tilde after some characters, and others not
    assert Redactor({"K": plain}).redact_text(quoted.stdout.replace("\\~", "").replace("~", "")) == "[redacted:K#1]"
    assert redactor.redact_text(traced.stderr).strip() == "+ true '[redacted:K#1]'"
    assert redactor.redact_text(shlex.quote(value)) == "'[redacted:K#1]'"
    for form in (html.escape(value), html.escape(value, quote=False), html.escape(value).replace("&#x27;", "&#39;")):
        assert redactor.redact_text(f"<b>{form}</b>") == "<b>[redacted:K#1]</b>"
