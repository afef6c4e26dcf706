"""Forms of secrets: each is found wherever a message may have it; and what resembles them and is none.

The secrets are assembled from pieces, so that no scanner finds a token in this file.
"""

from __future__ import annotations

import base64
import json
import random
import string

import pytest

from ext_sdk.core.redaction.redactor import Redactor

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
RED, RESET = "\x1b[31m", "\x1b[0m"


def some(length: int, letters: str = ALNUM) -> str:
    """Return pseudo-random characters, always the same ones."""
    return "".join(random.Random(f"{length} {letters}").choices(letters, k=length))


def b64(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


UUID = "0b0e6f5a-5a0c-4f7e-9f63-2f1a4b1f9c11"
UPPER = string.ascii_uppercase + string.digits

# (what it is, what stands before the secret, the secret): the secret must not be in what is written.
FORMS = [
    ("age", "", "AGE-SECRET-" + "KEY-1" + some(58, UPPER)),
    ("alibaba", "", "LT" + "AI" + some(20)),
    ("artifactory", "", "AK" + "Cp" + some(69)),
    ("atlassian", "", "ATA" + "TT3" + some(180)),
    ("aws", "", "AK" + "IA" + some(16, UPPER)),
    ("aws session", "", "AS" + "IA" + some(16, UPPER)),
    ("aws signature", "https://s3.example/x?X-Amz-Date=1&X-Amz-Signature=", some(64, HEX)),
    ("gcs signature", "https://storage.example/x?X-Goog-Signature=", some(128, HEX)),
    ("aws security token", "https://s3.example/x?X-Amz-Security-Token=", some(90)),
    ("key of a URL", "https://api.example/v1/models?alt=sse&key=", some(24)),
    ("subprotocol of Kubernetes", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.", some(30)),
    ("subprotocol of a model", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.", some(24)),
    ("azure", "", "abc8" + "Q~" + some(31)),
    ("azure sas", "https://a.blob.example/c?sv=2024-11-04&sp=r&sig=", some(43).replace("/", "%2F") + "%3D"),
    ("azure account key", "AccountName=a;AccountKey=", some(86) + "=="),
    ("basic", "Authorization: Basic ", b64("bob:" + some(12))),
    ("bearer", "Authorization: Bearer ", some(24)),
    ("bitbucket", "", "AT" + "BB" + some(32)),
    ("brevo", "", "xkey" + "sib-" + some(64, HEX) + "-" + some(16)),
    ("cloudfront", "https://d.cloudfront.example/x?Expires=1&Signature=", some(80) + "__"),
    ("connection string", "Server=db;User Id=u;Password=", some(12)),
    ("cookie", "Cookie: session=", some(32)),
    ("curl", "curl -u bob:", some(12)),
    ("databricks", "", "da" + "pi" + some(32, HEX)),
    ("digitalocean", "", "dop_" + "v1_" + some(64, HEX)),
    ("discord webhook", "https://discord.com/api/webhooks/123456789012/", some(68)),
    ("docker", "", "dckr_" + "pat_" + some(27)),
    ("docker login", "docker login -u bob -p ", some(12)),
    ("doppler", "", "dp." + "pt." + some(43)),
    ("figma", "", "fi" + "gd_" + some(43)),
    ("flyio", "", "fo" + "1_" + some(43)),
    ("github", "", "gh" + "p_" + some(36)),
    ("github server", "", "gh" + "s_" + some(36)),
    ("github fine-grained", "", "github_" + "pat_" + some(22) + "_" + some(59)),
    ("gitlab", "", "gl" + "pat-" + some(20)),
    ("gitlab runner", "", "gl" + "rt-" + some(20)),
    ("google", "", "AI" + "za" + some(35)),
    ("google client secret", "", "GOC" + "SPX-" + some(28)),
    ("google refresh", "", "1/" + "/0" + some(60)),
    ("grafana", "", "gl" + "sa_" + some(32) + "_" + some(8, HEX)),
    ("groq", "", "gs" + "k_" + some(52)),
    ("heroku", "", "HR" + "KU-AA" + some(58)),
    ("hubspot", "", "pat-" + "eu1-" + UUID),
    ("huggingface", "", "h" + "f_" + some(34)),
    ("json in base64", "", b64(json.dumps({"user": "bob", "token": some(12)}))),
    ("jwt", "", f"{b64(json.dumps({'alg': 'HS256'}))}.{b64(json.dumps({'sub': '1'}))}.{some(43)}".replace("=", "")),
    ("key", "api_key: ", some(24)),
    ("langsmith", "", "lsv" + "2_pt_" + some(32, HEX) + "_" + some(10, HEX)),
    ("linear", "", "lin_" + "api_" + some(40)),
    ("mailgun", "", "ke" + "y-" + some(32, HEX)),
    ("mysql", "mysql -h db -uroot -p", some(12)),
    ("newrelic", "", "NR" + "AK-" + some(27, UPPER)),
    ("notion", "", "nt" + "n_" + some(46)),
    ("npm", "", "np" + "m_" + some(36)),
    ("nvidia", "", "nv" + "api-" + some(64)),
    ("option", "tool --password ", some(12)),
    ("perplexity", "", "pp" + "lx-" + some(48)),
    ("planetscale", "", "pscale_" + "tkn_" + some(43)),
    ("postgres", "postgres://bob:", some(12) + "@db/x"),
    ("postman", "", "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX)),
    ("pulumi", "", "pu" + "l-" + some(40, HEX)),
    ("pypi", "", "py" + "pi-AgEI" + some(60)),
    ("query", "https://api.example/v1?access_token=", some(20)),
    ("redis-cli", "redis-cli -h x -a ", some(12)),
    ("replicate", "", "r" + "8_" + some(37)),
    ("rubygems", "", "ruby" + "gems_" + some(48, HEX)),
    ("sendgrid", "", "S" + "G." + some(22) + "." + some(43)),
    ("sentry", "", "sn" + "tryu_" + some(64, HEX)),
    ("shopify", "", "sh" + "pat_" + some(32, HEX)),
    ("sk", "", "s" + "k-proj-" + some(48)),
    ("sk-ant", "", "s" + "k-ant-api03-" + some(93) + "AA"),
    ("slack", "", "xo" + "xb-" + "123456789012-123456789012-" + some(24)),
    ("slack webhook", "https://hooks.slack.com/services/", "T0/B0/" + some(24)),
    ("sourcegraph", "", "sg" + "p_" + some(40, HEX)),
    ("square", "", "sq0" + "atp-" + some(22)),
    ("sshpass", "sshpass -p ", some(12)),
    ("stripe", "", "s" + "k_live_" + some(24)),
    ("stripe webhook", "", "wh" + "sec_" + some(32)),
    ("supabase", "", "sb" + "p_" + some(40, HEX)),
    ("tavily", "", "tv" + "ly-dev-" + some(32)),
    ("teams webhook", "https://x.webhook.office.com/webhookb2/", f"{UUID}@{UUID}/IncomingWebhook/{some(32)}/{UUID}"),
    ("telegram", "https://api.telegram.org/bot", "123456789" + ":AA" + some(33)),
    ("terraform", "", some(14) + ".atlas" + "v1." + some(64)),
    ("twilio", "", "S" + "K" + some(32, HEX)),
    ("url with a token", "https://", some(30) + "@github.com/x.git"),
    ("vault", "", "hv" + "s." + some(95)),
    ("vault batch", "", "hv" + "b." + some(140)),
    ("xai", "", "xa" + "i-" + some(80)),
]  # fmt: skip

PLACES = {
    "JSON": lambda before, secret: json.dumps({"text": f"{before}{secret}"}),
    "JSON in JSON": lambda before, secret: json.dumps({"text": json.dumps({"inner": f"see:\n{before}{secret}\tok"})}),
    "JSON in JSON in JSON": lambda before, secret: json.dumps([json.dumps([json.dumps([f"{before}{secret}"])])]),
    "colour": lambda before, secret: f"{RED}{before}{RESET}{RED}{secret}{RESET}",
    "colour after a word": lambda before, secret: (
        f"warn{RED} {before}{secret}{RESET}ok" if before else f"warn{RED}{secret}"
    ),
    "escaped colour": lambda before, secret: json.dumps({"log": f"{RED}{before}{secret}{RESET}"}),
    "escaped colour in JSON": lambda before, secret: json.dumps([json.dumps([f"{RED}{before}{secret}{RESET}"])]),
    "colour as shells write it": lambda before, secret: f"\\033[1;32m{before}{secret}\\033[0m",
    "a line of stderr": lambda before, secret: f"2026-11-22 ERROR request failed: {before}{secret}",
    "a line of stderr, repr": lambda before, secret: f"DEBUG {['a line', f'{before}{secret}']!r}",
    "after an escaped line feed": lambda before, secret: f'{{"x":"done\\n{before}{secret}\\n"}}',
    "after an escaped quote": lambda before, secret: f'{{"x":"say \\"{before}{secret}\\""}}',
    "after percent-encoding": lambda before, secret: f"GET /?q=a%20b%0A{before}{secret}",
}


def without_end(secret: str) -> str:
    """Return the part that may not be seen: a host after the password may."""
    return secret.partition("@db")[0].partition("@github")[0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("before", "secret"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_a_form_is_found_in_every_place(before: str, secret: str, place: str) -> None:
    text = PLACES[place](before, secret)
    redacted = Redactor(rules=True).redact_text(text)
    assert without_end(secret) not in redacted
    assert "[redacted:" in redacted
    if text.startswith(("{", "[")):
        json.loads(redacted)
    assert Redactor(rules=True).redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        '{"password":12345678}',
        '{"a":"{\\"password\\": 12345678}"}',
        f'{RED}"password"{RESET}: {RED}12345678{RESET}',
        "password: 12345678",
        '["--password",12345678]',
    ],
)
def test_a_password_of_digits_is_found(text: str) -> None:
    assert "12345678" not in Redactor(rules=True).redact_text(text)


@pytest.mark.parametrize(
    "words",
    [
        ["prog", "-p", "hunter2x"],
        ["mysql", "-uroot", "-phunter2"],
        ["docker", "login", "-u", "bob", "-p", "it's hunter2"],
        ["curl", "-sS", "-u", "bob:hunter2", "https://x.example"],
        ["sshpass", "-phunter2", "ssh", "x"],
        ["redis-cli", "-a", "hunter2"],
        ["smbclient", "//x/y", "-U", "bob%hunter2"],
        ["ldapsearch", "-D", "cn=x", "-w", "hunter2"],
        ["mosquitto_pub", "-u", "bob", "-P", "hunter2"],
        ["prog", "--password", "hunter2"],
        ["prog", "--password=hunter2"],
        ["prog", "-token", "hunter2"],
    ],
    ids=" ".join,
)
def test_a_password_among_arguments_is_found(words: list[str]) -> None:
    for text in (json.dumps(words), json.dumps({"argv": words}), json.dumps([json.dumps(words)])):
        redacted = Redactor(rules=True).redact_text(text)
        assert "hunter2" not in redacted
        assert words[0] in redacted


# Messages of a protocol that defines these values.
DEFINED = [
    '{"jsonrpc":"2.0","method":"$/progress","params":{"token":"0b0e6f5a","value":{"kind":"begin"}}}',
    '{"jsonrpc":"2.0","id":3,"method":"window/workDoneProgress/create","params":{"token":"3f2a91"}}',
    '{"jsonrpc":"2.0","method":"window/workDoneProgress/cancel","params":{"token":"3f2a91"}}',
    '{"method":"notifications/progress","params":{"progressToken":"abc-12345678","progress":1}}',
    '{"method":"tools/call","params":{"_meta":{"progressToken":"0b0e6f5a1234"},"name":"x"}}',
    f'{{"id":1,"result":{{"tools":[],"nextCursor":"{b64(json.dumps({"token": "page-2-of-7"}))}"}}}}',
    f'{{"id":1,"method":"tools/list","params":{{"cursor":"{b64(json.dumps({"token": "page-2-of-7"}))}"}}}}',
]

NOT_FOUND = [
    # names and numbers that identify
    f'{{"id":"{UUID}","sessionId":"{UUID}"}}',
    '{"sha":"9fceb02d0ae598e95dc970b74767f19372d61af8","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}',
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '{"etag":"W/\\"5f3a9c7e1b2d4f60\\"","version":"1.2.3-alpha.4+build.20261122"}',
    "registry.example.com/team/app@sha256:" + "0a" * 32,
    '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}',
    "arn:aws:iam::123456789012:role/deploy-role",
    "projects/my-project-123456/locations/europe-west1/keyRings/ring",
    "AKIA is a prefix, ASIA too, ghp_ as well, and sk-",
    # protocols
    '{"nextPageToken":"CAUQAA","pageToken":"CAUQAA","continuationToken":"abc1","syncToken":"x1y2"}',
    '{"legend":{"tokenTypes":["namespace","class"],"tokenModifiers":["declaration"]},"full":{"delta":true}}',
    '{"method":"textDocument/semanticTokens/full","params":{"textDocument":{"uri":"file:///a.py"}}}',
    '{"result":{"data":[0,5,4,1,0,3,2,5,7,0],"resultId":"12"}}',
    '{"usage":{"input_tokens":1234,"output_tokens":56789,"max_tokens":4096,"total_tokens":58023}}',
    '{"logprobs":[{"token":"Hello","logprob":-0.31},{"token":" world","logprob":-1.2}]}',
    '{"token":7,"tokens":["the","cat"],"tokenizer":"cl100k_base","eos_token":"</s>"}',
    # words and names
    "pip install sk-learn==1.2.3 scikit-learn sk-learn-contrib-v2-large",
    '{"model":"claude-sonnet-4-5-20250929","fallback":"gpt-4o-2024-08-06"}',
    '{"className":"sk-fading-circle sk-circle12 sk-loading-indicator"}',
    "task-1 disk-usage risk-assessment-2026-final-version",
    "msg.payload_type hvs.example app.pt.models.resnet50 SG.example",
    "npm_config_cache npm_lifecycle_event hf_transfer github_pat_ gho_st",
    "DISK_USAGE TASKS SKIPPED RISK SKU-1234",
    "the bearer of bad news, basic knowledge, authorization required",
    '{"author":"a b","authority":"x","keyboard":"us","monkey":"m","passenger":"p"}',
    "def signature(self, sig=None): signature = inspect.signature(f)",
    '{"signatures":[{"label":"f(token: str, password: str)"}],"activeSignature":0}',
    '{"label":"f(token: str, password: str=\\"\\", secret: bytes = None)"}',
    '{"title":"Reset password","description":"Enter the token that was sent to you"}',
    '{"inputSchema":{"properties":{"token":{"type":"string"},"password":{"type":"string"}}}}',
    # paths and addresses
    "/home/bob/.config/app/token.json ~/.ssh/id_rsa.pub C:\\\\tokens\\\\new",
    "https://example.com/a/b/c?page=2&sort=name#token",
    "https://example.com/store?key=users-by-their-email-address&key=1234567890123456789012",
    "https://github.com/owner/repo/blob/9fceb02d0ae598e95dc970b74767f19372d61af8/src/token.py",
    "git@github.com:owner/repo.git bob@example.com",
    "http://localhost:8080/path@2x.png",
    "mkdir -p build/out2 && cp -u a1b2c3d4 x",
    '["docker","run","-p","8080:80","nginx"]',
    '["python","-p","plugin"]',
    "curl -u bob https://example.com/file1",
    # data
    f'{{"type":"image","mimeType":"image/png","data":"{base64.b64encode(random.Random(1).randbytes(3000)).decode()}"}}',
    f'{{"blob":"{base64.urlsafe_b64encode(random.Random(2).randbytes(3000)).decode()}"}}',
    f'{{"config":"{b64(json.dumps({"page": 2, "size": 50}))}"}}',
    f'{{"x":"{random.Random(3).randbytes(500).hex()}"}}',
    "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "a1B2" * 10 + " bob@host",
    f"{RED}error{RESET}: {RED}unexpected token{RESET} at line 3",
]


@pytest.mark.parametrize("text", DEFINED, ids=[text[:40] for text in DEFINED])
def test_a_value_that_a_protocol_defines_stays(text: str) -> None:
    assert Redactor(rules=True).redact_text(text) == text


@pytest.mark.parametrize("text", NOT_FOUND, ids=[text[:40] for text in NOT_FOUND])
def test_what_resembles_a_secret_stays(text: str) -> None:
    assert Redactor(rules=True).redact_text(text) == text
    assert Redactor(rules=True).redact_text(json.dumps([text])) == json.dumps([text])


def test_random_bytes_stay_the_same() -> None:
    generator = random.Random(7)
    redactor = Redactor({"env.PIN": "1234", "env.TOKEN": "a-longer-secret-1"}, rules=True)
    data = generator.randbytes(1_000_000)
    assert redactor.redact(data) == data
    assert b"".join(redactor.redact(line) for line in data.splitlines(keepends=True)) == data


@pytest.mark.parametrize("guess", [b"PWD=abc", b"pwd=1a2b", b'"token":"x1"', b"password: x", b"AKIA" + b"A1" * 8])
def test_nothing_is_guessed_in_bytes_that_are_not_text(guess: bytes) -> None:
    data = b"\x81\xfe" + guess + b"\xff\x01\x93"
    assert Redactor(rules=True).redact(data) == data


def test_a_known_value_is_replaced_in_bytes_that_are_not_text_unless_it_may_be_there_by_chance() -> None:
    redactor = Redactor({"env.PIN": "1234", "env.TOKEN": "longer-1"}, rules=True)
    assert redactor.redact(b"\x81\xfe1234\xff longer-1\x93") == b"\x81\xfe1234\xff [redacted:env.TOKEN#1]\x93"


HIDDEN = b"password=[redacted:key.password#1]"


@pytest.mark.parametrize(
    ("data", "redacted"),
    [
        (b"\x89PNG\x0d\xff\x00\x81\npassword=hunter2\n\xfe", b"\x89PNG\x0d\xff\x00\x81\n" + HIDDEN + b"\n\xfe"),
        (b"A=b\0password=hunter2\0C=d\0", b"A=b\0" + HIDDEN + b"\0C=d\0"),
        (b"Ger\xe4te password=hunter2 f\xfcr Gr\xf6\xdfe", b"Ger\xe4te " + HIDDEN + b" f\xfcr Gr\xf6\xdfe"),
    ],
    ids=["a line among bytes", "variables", "Latin-1"],
)
def test_lines_of_text_are_searched_whatever_is_around_them(data: bytes, redacted: bytes) -> None:
    assert Redactor(rules=True).redact(data) == redacted


def test_a_token_next_to_what_a_protocol_defines_is_found() -> None:
    text = '{"method":"$/progress","params":{"token":"p1","value":{"token":"hunter2x"}}}'
    redacted = Redactor(rules=True).redact_text(text)
    assert redacted == text.replace("hunter2x", "[redacted:key.token#1]")


def test_a_known_value_is_replaced_even_as_a_progress_token() -> None:
    text = '{"method":"$/progress","params":{"token":"hunter2x"}}'
    assert "hunter2x" not in Redactor({"env.X": "hunter2x"}, rules=True).redact_text(text)
