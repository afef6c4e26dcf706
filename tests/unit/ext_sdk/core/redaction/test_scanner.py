"""What is recognised as a secret without being known, and what is not."""

from __future__ import annotations

import base64
import json

import pytest

from ext_sdk.core.redaction.redactor import Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g"
BASIC = base64.b64encode(b"bob:hunter2").decode()
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabcd==\n-----END RSA PRIVATE KEY-----"

# (text, what of it is replaced, by which rule)
FOUND = [
    # members of JSON
    ('{"password":"p"}', "p", "key.password"),
    ('{"apiKey" : "a b" }', "a b", "key.apiKey"),
    ('{"private_key":"x\\"y\\\\"}', 'x\\"y\\\\', "key.private_key"),
    ('{"client-key-data":"LS0t"}', "LS0t", "key.client-key-data"),
    ('{"x":{"auth":"YWJj"}}', "YWJj", "key.auth"),
    ('{"pass\\u0077ord":"p"}', "p", "key.password"),
    ('{"a":"{\\"password\\":\\"p\\\\\\"q\\",\\"b\\":1}"}', 'p\\\\\\"q', "key.password"),
    ('{"a":"{\\"b\\":\\"{\\\\\\"token\\\\\\": \\\\\\"t\\\\\\"}\\"}"}', "t", "key.token"),
    ('["--password","p","-x"]', "p", "key.password"),
    ('{"env":[{"name":"DB_PASSWORD","value":"p"}]}', "p", "key.DB_PASSWORD"),
    ('{"secrets":["s",null,1]}', "s", "key.secrets"),
    ('level=info msg="{\\"token\\":\\"t\\"}"', "t", "key.token"),
    # lines, headers, assignments
    ("password: p q", "p q", "key.password"),
    ("  - token: t", "t", "key.token"),
    ('api_key: "k"', "k", "key.api_key"),
    ("export API_TOKEN=t", "t", "key.API_TOKEN"),
    ('{"y":"users:\\n- user:\\n    client-key-data: LS0t\\n"}', "LS0t", "key.client-key-data"),
    ("password: |\n  one\n  two\nnext: 1", "one\n  two", "key.password"),
    ("curl --token t -v", "t", "key.token"),
    ("--password='p q' x", "p q", "key.password"),
    ("GET /?a=1&access_token=t&b=2", "t", "key.access_token"),
    ("{'password': 'p', 'x': 1}", "p", "key.password"),
    ("{user: u, password: p, x: 1}", "p", "key.password"),
    ("Server=db;Password=p;Database=d", "p", "key.Password"),
    ("x-api-key: k", "k", "key.x-api-key"),
    ("< Set-Cookie: a=b; Path=/", "a=b; Path=/", "key.Set-Cookie"),
    ("error: bad token: t0k3n!", "t0k3n!", "key.token"),
    # credentials
    ("Authorization: Bearer t", "t", "bearer"),
    ('{"Authorization":["Bearer t"]}', "t", "bearer"),
    ("authorization: basic Og==", "Og==", "basic"),
    ('{"authorization":"Digest a=1"}', "a=1", "authorization"),
    ('["Bearer abcdefg1"]', "abcdefg1", "bearer"),
    (f"sent Basic {BASIC}.", BASIC, "basic"),
    ("postgres://bob:p%40ss@db/x", "p%40ss", "url-password"),
    ('{"u":"redis:\\/\\/:p@h"}', "p", "url-password"),
    ("https://0123456789abcdefghij@github.com/x", "0123456789abcdefghij", "url-password"),
    ("https://hooks.slack.com/services/T0/B0/abc", "T0/B0/abc", "slack"),
    # tokens by their shapes
    ("see sk-proj-abcdef123456 here", "sk-proj-abcdef123456", "sk"),
    ("sk_live_abcdef123456", "sk_live_abcdef123456", "stripe"),
    ("ghp_" + "a1" * 18, "ghp_" + "a1" * 18, "github"),
    ("github_pat_" + "a1_" * 10, "github_pat_" + "a1_" * 10, "github"),
    ("glpat-abcdefghij0123456789", "glpat-abcdefghij0123456789", "gitlab"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "aws"),
    ("xoxb-1234567890-abc", "xoxb-1234567890-abc", "slack"),
    ("AIza" + "a" * 35, "AIza" + "a" * 35, "google"),
    ("npm_" + "a" * 36, "npm_" + "a" * 36, "npm"),
    (f'{{"m":"line\\n{JWT}"}}', JWT, "jwt"),
    (PEM, "MIIEow\nabcd==", "private-key"),
    ("-----BEGIN PRIVATE KEY-----\nMII", "MII", "private-key"),
    (base64.b64encode(PEM.encode()).decode(), base64.b64encode(PEM.encode()).decode(), "private-key"),
    # Kubernetes
    ('{"kind":"Secret","data":{"a":"YWJj"}}', "YWJj", "kubernetes-secret"),
    ('{"x":"{\\"stringData\\":{\\"a\\":\\"b\\"},\\"kind\\":\\"Secret\\"}"}', "b", "kubernetes-secret"),
    ("kind: Secret\ndata:\n  a: YWJj\ntype: Opaque", "YWJj", "kubernetes-secret"),
]

NOT_FOUND = [
    '{"password":"","token":null,"secret":true,"pwd":"/work"}',
    '{"token":7,"progressToken":"p1","workDoneToken":"w","max_tokens":4096,"nextPageToken":"n"}',
    '{"properties":{"password":{"type":"string"}},"required":["user","password","name"]}',
    '{"secretName":"tls","imagePullSecrets":[{"name":"x"}],"secretKeyRef":{"key":"k","name":"n"}}',
    '{"password":"${API.password}","token":"$TOKEN","secret":"{{ .secret }}","apiKey":"<your key>"}',
    '{"client-certificate-data":"LS0t","publicKey":"abc","key":"k","monkey":"m","author":"a"}',
    '{"tokens":["the","cat"],"token_type":"x","passwordFile":"/x","tokenizer":"t"}',
    "unexpected token: end of file",
    "the bearer of this, basic knowledge, a bearer authentication",
    "task-sk-ip disk-usage sk-loading-indicator",
    "http://host:8080/path@x mail bob@example.com",
    "token count 12, password accepted, key: value",
    "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----",
    '{"kind":"ConfigMap","data":{"a":"b"}}',
    "--token --other",
    "eyJ.not.jwt eyJhbGciOiJIUzI1NiJ9",
]


@pytest.mark.parametrize(("text", "secret", "rule"), FOUND, ids=[f"{rule} {text[:24]!r}" for text, _, rule in FOUND])
def test_recognises(text: str, secret: str, rule: str) -> None:
    redactor = Redactor(rules=True)
    assert text.count(secret) >= 1
    before, _, after = text.rpartition(secret)
    assert redactor.redact_text(text) == f"{before}[redacted:{rule}#1]{after}"
    assert redactor.fired == (rule,)


@pytest.mark.parametrize("text", NOT_FOUND, ids=[text[:32] for text in NOT_FOUND])
def test_leaves_alone(text: str) -> None:
    assert Redactor(rules=True).redact_text(text) == text


def test_each_string_of_a_list_is_a_secret_of_its_own() -> None:
    redacted = Redactor(rules=True).redact_text('{"secrets":["a","b",12345,null,"a"],"x":["a"]}')
    assert json.loads(redacted) == {
        "secrets": [f"[redacted:key.secrets#{n}]" if n else None for n in (1, 2, 3, 0, 1)],
        "x": ["a"],
    }


def test_a_kubeconfig_shows_no_credentials_in_json_and_in_yaml() -> None:
    user = {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ", "token": "t1", "password": "p w"}
    kubeconfig = {"users": [{"name": "bob", "user": user}], "current-context": "kind"}
    lines = "".join(f"    {key}: {value}\n" for key, value in user.items())
    for text in (json.dumps(kubeconfig), json.dumps(json.dumps(kubeconfig)), f"users:\n- name: bob\n  user:\n{lines}"):
        redacted = Redactor(rules=True).redact_text(text)
        assert "Q0VSVA==" in redacted
        assert redacted.count("[redacted:key.") == 3
        assert not [each for each in ("S0VZ", "t1", "p w") if each in redacted]


def test_all_data_of_a_kubernetes_secret_is_hidden_whatever_the_keys() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"c": "see"}}
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(manifest)}
    text = json.dumps({"kind": "SecretList", "items": [{**manifest, "metadata": {"annotations": note, "name": "n"}}]})
    redacted = Redactor(rules=True).redact_text(text)
    json.loads(redacted)
    assert not [each for each in ("YQ==", "Yg==", "see") if each in redacted]
    assert '"name": "n"' in redacted


def test_block_scalars_in_the_data_of_a_kubernetes_secret_are_hidden() -> None:
    manifest = "kind: Secret\ndata:\n  a: |\n    one\n    two\n  b: 'three'\nmetadata:\n  name: n\n"
    redacted = Redactor(rules=True).redact_text(json.dumps({"manifest": manifest}))
    assert not [each for each in ("one", "two", "three") if each in redacted]
    assert "name: n" in redacted


def test_several_private_keys_are_several_values() -> None:
    other = PEM.replace("MIIEow", "MIIOther")
    redacted = Redactor(rules=True).redact_text(json.dumps([PEM, other, PEM]))
    assert [each.split("\n")[1] for each in json.loads(redacted)] == [f"[redacted:private-key#{n}]" for n in (1, 2, 1)]


def test_a_private_key_that_comes_line_by_line_is_hidden_but_for_its_last_line() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "wEi=="]
    redactor = Redactor(rules=True)
    assert [redactor.redact_text(f"{line}\r\n") for line in lines] == [
        f"{lines[0]}\r\n",
        "[redacted:private-key#1]\r\n",
        "wEi==\r\n",
    ]


@pytest.mark.parametrize("line", ["0123456789abcdef" * 4, "a" * 64, "/usr/lib/" * 8 + "x.so", "A" * 200])
def test_other_long_words_are_no_lines_of_a_key(line: str) -> None:
    assert Redactor(rules=True).redact_text(line) == line
