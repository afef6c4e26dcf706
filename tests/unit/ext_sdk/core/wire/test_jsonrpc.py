"""JSON-RPC 2.0 messages: what is one, what is none, and why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ext_sdk
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Message, Notification, Request, Response, encode, parse

BIG = 10**30

# (payload, message); each is also what encode() makes of the message, but for white space and spelling.
MESSAGES: list[tuple[str, Message]] = [
    ('{"jsonrpc":"2.0","id":1,"method":"m"}', Request(1, "m")),
    ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,null,true]}}', Request(1, "m", {"a": [1, None, True]})),
    ('{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', Request(1, "m", [])),
    ('{"jsonrpc":"2.0","id":null,"method":"m"}', Request(None, "m")),
    ('{"jsonrpc":"2.0","id":"","method":""}', Request("", "")),
    ('{"jsonrpc":"2.0","id":"1","method":"m"}', Request("1", "m")),
    ('{"jsonrpc":"2.0","id":1.5,"method":"m"}', Request(1.5, "m")),
    ('{"jsonrpc":"2.0","id":-0.0,"method":"m"}', Request(-0.0, "m")),
    (f'{{"jsonrpc":"2.0","id":{BIG},"method":"m"}}', Request(BIG, "m")),
    ('{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', Request("\ud800", "m")),
    ('{"jsonrpc":"2.0","method":"log","params":{"message":"\\u0000ä😀"}}', Notification("log", {"message": "\0ä😀"})),
    ('{"jsonrpc":"2.0","method":"log"}', Notification("log")),
    ('{"jsonrpc":"2.0","id":1,"result":{}}', Response(1, {})),
    ('{"jsonrpc":"2.0","id":1,"result":null}', Response(1, None)),
    ('{"jsonrpc":"2.0","id":1,"result":false}', Response(1, False)),  # noqa: FBT003
    (
        '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}',
        ErrorResponse(1, RpcError(-32601, "no such method")),
    ),
    (
        '{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":"","data":{"a":[]}}}',
        ErrorResponse(None, RpcError(0, "", {"a": []})),
    ),
]

# Other spellings of messages, which are read and never written.
SPELLINGS: list[tuple[str, Message]] = [
    (' \r\n\t{ "method" : "m" , "id" : 1 , "jsonrpc" : "2.0" } \n', Request(1, "m")),
    ('{"jsonrpc":"2.0","id":1,"method":"m","params":null}', Request(1, "m")),
    ('{"jsonrpc":"2.0","id":1,"method":"m","further":{"is":"ignored"}}', Request(1, "m")),
    ('{"json\\u0072pc":"2\\u002e0","id":1,"method":"\\u006d"}', Request(1, "m")),
    ('{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}', ErrorResponse(1, RpcError(1, "m"))),
    ('{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}', ErrorResponse(None, RpcError(1, "m"))),
]

NOT_JSON = [
    "",
    " ",
    "hello",
    "{",
    "[",
    "{}}",
    "{} {}",
    "{,}",
    '{"a":1,}',
    '{"a"}',
    '{"a":}',
    '{"a" 1}',
    '{"a":1 "b":2}',
    "{'a':1}",
    "{a:1}",
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-Infinity}',
    '{"a":1e999}',
    '{"a":-1e999}',
    '{"a":01}',
    '{"a":.5}',
    '{"a":1.}',
    '{"a":+1}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":"\\u12"}',
    '{"a":"',
    '{"a',
    '{"a":tru}',
    '\ufeff{"jsonrpc":"2.0","id":1,"method":"m"}',
    '\xa0{"jsonrpc":"2.0","id":1,"method":"m"}',
    "1 2",
    "[1] [2]",
]

# (payload, what the error says, the id that the answer must carry)
NO_MESSAGE: list[tuple[str, str, object]] = [
    ("1", "expected a JSON object", None),
    ('"x"', "expected a JSON object", None),
    ("null", "expected a JSON object", None),
    ("[]", "batches are not accepted", None),
    ('[{"jsonrpc":"2.0","id":1,"method":"m"}]', "batches are not accepted", None),
    ("{}", 'expected "jsonrpc": "2.0", found nothing', None),
    ('{"id":7,"method":"m"}', "found nothing", 7),
    ('{"jsonrpc":"1.0","id":"a","method":"m"}', 'found "1.0"', "a"),
    ('{"jsonrpc":2.0,"id":7,"method":"m"}', "found 2.0", 7),
    ('{"jsonrpc":"2.0","id":7}', "expected a method, or an id with either", 7),
    ('{"jsonrpc":"2.0","id":7,"method":null}', "a method that is a string, found null", 7),
    ('{"jsonrpc":"2.0","id":7,"method":["m"]}', 'found ["m"]', 7),
    ('{"jsonrpc":"2.0","id":true,"method":"m"}', "an id that is a string, a number or null, found true", None),
    ('{"jsonrpc":"2.0","id":{},"method":"m"}', "found {}", None),
    ('{"jsonrpc":"2.0","id":[1],"method":"m"}', "found [1]", None),
    ('{"jsonrpc":"2.0","id":7,"method":"m","params":1}', "an object or an array, found 1", 7),
    ('{"jsonrpc":"2.0","id":7,"method":"m","params":"x"}', 'found "x"', 7),
    ('{"jsonrpc":"2.0","id":7,"method":"m","params":false}', "found false", 7),
    ('{"jsonrpc":"2.0","id":7,"method":"m","result":1}', "neither result nor error", 7),
    ('{"jsonrpc":"2.0","id":7,"method":"m","error":null}', "neither result nor error", 7),
    ('{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1,"message":"m"}}', "either a result or an error", 7),
    ('{"jsonrpc":"2.0","result":1}', "an id with either a result", None),
    ('{"jsonrpc":"2.0","id":7,"error":null}', "an error that is an object", 7),
    ('{"jsonrpc":"2.0","id":7,"error":{"message":"m"}}', "an integer code", 7),
    ('{"jsonrpc":"2.0","id":7,"error":{"code":true,"message":"m"}}', "an integer code", 7),
    ('{"jsonrpc":"2.0","id":7,"error":{"code":1.0,"message":"m"}}', "an integer code", 7),
    ('{"jsonrpc":"2.0","id":7,"error":{"code":1}}', "a message that is a string", 7),
    ('{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}', "the name 'id' is given twice", None),
    (
        '{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1,"a":1}}',
        "the name 'a' is given twice within 'params'",
        7,
    ),
    ('{"jsonrpc":"2.0","id":7,"method":"m","params":[{"b":[{"c":1,"c":2}]}]}', "'c' is given twice", 7),
    ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1,"\\u0061":1}}', "'a' is given twice", 7),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES + SPELLINGS)
def test_a_message_is_read(text: str, message: Message) -> None:
    assert parse(text.encode()) == message


@pytest.mark.parametrize(("text", "message"), MESSAGES)
def test_a_message_is_written_on_one_line_of_utf_8(text: str, message: Message) -> None:
    assert encode(message).decode() == text


def request(params: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}'.encode()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ('{"a":' + "9" * 5000 + "}", "the JSON has an integer of more than 4,300 digits"),
        ("[-" + "1" * 4301 + "]", "the JSON has an integer of more than 4,300 digits"),
        ('{"a":' * 301 + "1" + "}" * 301, "the JSON is nested too deeply: more than 300 levels"),
        ("[" * 301 + "]" * 301, "the JSON is nested too deeply"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_over_a_limit_is_refused_with_its_id(params: str, says: str) -> None:
    with pytest.raises(MessageError, match=says) as caught:
        parse(request(params))
    assert (caught.value.code, caught.value.id) == (-32600, 7)


def test_json_within_the_limits_is_read() -> None:
    for params in ("[" * 300 + "]" * 300, "[" + "9" * 4300 + "]", "[" + ",".join(["[{}]"] * 1000) + "]"):
        assert isinstance(parse(request(params)), Request)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_json_that_no_interpreter_can_read_is_refused(text: str) -> None:
    with pytest.raises(MessageError, match="nested too deeply"):
        parse(text.encode())


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: text[:30])
def test_what_is_not_json_is_a_parse_error(text: str) -> None:
    with pytest.raises(MessageError) as caught:
        parse(text.encode())
    assert (caught.value.code, caught.value.id) == (-32700, None)


@pytest.mark.parametrize("text", [text for text in NOT_JSON if len(text) < 4000], ids=lambda text: text[:30])
def test_what_is_not_json_here_is_not_json_elsewhere(text: str) -> None:
    """The table itself is right: the reference reader refuses all of it, given Python's extensions are off."""

    def refuse(name: str) -> object:
        raise ValueError(name)

    def finite(digits: str) -> float:
        return float(digits) if abs(float(digits)) != float("inf") else float(refuse(digits))  # type: ignore[arg-type]

    with pytest.raises(ValueError):  # noqa: PT011  (each text has its own)
        json.loads(text, parse_constant=refuse, parse_float=finite)


@pytest.mark.parametrize(("text", "says", "id"), NO_MESSAGE)
def test_json_that_is_no_message_is_an_invalid_request(text: str, says: str, id: object) -> None:
    with pytest.raises(MessageError) as caught:
        parse(text.encode())
    assert (caught.value.code, caught.value.id) == (-32600, id)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"\xff", "not UTF-8: invalid start byte at byte 0"),
        (b'{"a":"\xc3"}', "not UTF-8: invalid continuation byte at byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),  # a surrogate as bytes
        (b'{"a":"\xc0\x80"}', "not UTF-8"),  # NUL in two bytes
        ('{"jsonrpc":"2.0"}'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_is_not_utf_8_is_a_parse_error_with_its_place(payload: bytes, says: str) -> None:
    with pytest.raises(MessageError, match=says) as caught:
        parse(payload)
    assert caught.value.code == -32700


def test_an_error_says_where_the_json_ends() -> None:
    with pytest.raises(MessageError, match="expected ',' or '}' at character 7"):
        parse(b'{"a":1 "b":2}')
    with pytest.raises(MessageError, match="expected a value at character 5"):
        parse(b'{"a":hello}')
    with pytest.raises(MessageError, match="more text after the object, at character 3"):
        parse(b"{} {}")


# --- Batches ---


def test_a_batch_keeps_its_order_and_says_which_elements_are_no_messages() -> None:
    text = '[{"jsonrpc":"2.0","id":1,"method":"m"}, 7 ,{"jsonrpc":"2.0","method":"n"},{"id":3},[]]'
    first, second, third, fourth, fifth = batch(text)
    assert first == Request(1, "m")
    assert third == Notification("n")
    assert [(type(one), getattr(one, "code", None), getattr(one, "id", None)) for one in (second, fourth, fifth)] == [
        (MessageError, -32600, None),
        (MessageError, -32600, 3),
        (MessageError, -32600, None),
    ]


def test_a_name_given_twice_is_seen_in_a_batch_too() -> None:
    refused, accepted = batch('[{"jsonrpc":"2.0","id":1,"id":2,"method":"m"},{"jsonrpc":"2.0","id":2,"method":"m"}]')
    assert isinstance(refused, MessageError)
    assert "'id' is given twice" in str(refused)
    assert accepted == Request(2, "m")


@pytest.mark.parametrize("text", ["[]", " [ ] "])
def test_an_empty_batch_is_an_invalid_request(text: str) -> None:
    with pytest.raises(MessageError, match="an empty batch") as caught:
        parse(text.encode(), batches=True)
    assert caught.value.code == -32600


@pytest.mark.parametrize("text", ['[{"jsonrpc":"2.0","id":1,"method":"m"},{]', "[1,]", "[1", "[1] 2", "[,]"])
def test_a_batch_that_is_not_json_is_one_parse_error(text: str) -> None:
    with pytest.raises(MessageError) as caught:
        parse(text.encode(), batches=True)
    assert caught.value.code == -32700


def batch(text: str) -> list[Message | MessageError]:
    found = parse(text.encode(), batches=True)
    assert isinstance(found, list)
    return found


# --- JSON ---


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_float_that_json_does_not_have_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps([value])


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object()])
def test_an_object_that_json_does_not_have_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        encode(Response(1, value))


def test_numbers_keep_every_digit() -> None:
    assert loads("123456789012345678901234567890") == 123456789012345678901234567890
    assert dumps(9007199254740993) == "9007199254740993"
    assert dumps(0.1) == "0.1"
    assert isinstance(loads("1.0"), float)
    assert loads("1e308") == 1e308


def test_characters_are_written_as_they_are_but_for_those_that_json_escapes() -> None:
    assert dumps('ä😀\u2028\x7f"\\\n\0') == '"ä😀\u2028\x7f\\"\\\\\\n\\u0000"'


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    assert encode(Response(1, "\ud83d x")) == b'{"jsonrpc":"2.0","id":1,"result":"\\ud83d x"}'


def test_messages_of_one_kind_with_other_contents_differ() -> None:
    assert Request(1, "m") != Request(1, "n")
    assert Request(1, "m") != Notification("m")
    assert Request(None, "m") != Notification("m")
    assert ErrorResponse(1, RpcError(1, "m")) != ErrorResponse(1, RpcError(1, "m", {}))
    assert repr(Request(1, "m", {})) == "Request(id=1, method='m', params={})"
    assert repr(ErrorResponse(1, RpcError(1, "m"))) == "ErrorResponse(error=RpcError(1, 'm', None), id=1)"


def test_reading_messages_and_their_errors_imports_no_re() -> None:
    """All the ways to fail, in an interpreter that has not imported `json` before: they end in our error there too."""
    program = (
        "import sys; from ext_sdk.wire import parse, MessageError\n"
        'parse(b\'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1.5,"\\\\u00e4"]}}\')\n'
        "print(sorted({'re', 'json'} & set(sys.modules)))\n"
        "for text in sys.argv[1:]:\n"
        "    try: print('read', parse(text.encode()))\n"
        "    except MessageError as error: print(error.code)\n"
    )
    texts = [text for text in NOT_JSON if len(text) < 4000]
    environment = {"PYTHONPATH": str(Path(ext_sdk.__path__[0]).parent)}
    command = [sys.executable, "-S", "-c", program, *texts]  # -S: hooks of site-packages may import anything
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert ran.stdout.split("\n") == ["[]", *["-32700"] * len(texts), ""]
