"""Names that announce a secret."""

from __future__ import annotations

import pytest

from ext_sdk.core.redaction.secret_names import looks_secret, secret_variables, words

TELLING = """
password passwd passphrase pgpassword PASSWORD db_pass old_password password1 token access_token accessToken id_token
authToken X-Auth-Token x-amz-security-token api_token _authToken secret client_secret clientSecret secret_id apiKey
api_key api-key APIKey X-API-Key AWS_SECRET_ACCESS_KEY aws_access_key_id AccountKey SharedAccessKey private_key
privateKey client-key-data tls.key ssh_key credentials auth authorization Proxy-Authorization cookie Set-Cookie
DB_PASSWORD_VALUE refreshTokens pwd
"""

HARMLESS = """
key keys publicKey primaryKey monkey keyboard pass passed bypass compass author authority token_type tokenType tokens
max_tokens token_count tokenizer progressToken workDoneToken partialResultToken nextPageToken cancellationToken
eos_token secretName secretRef secretKeyRef passwordFile client-certificate-data username name value data
"""


@pytest.mark.parametrize("name", TELLING.split())
def test_announces_a_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", [*HARMLESS.split(), "", "-", "x" * 1000 + "_password"])
def test_announces_none(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clientKeyData", ["client", "key", "data"]),
        ("X-API-Key", ["x", "api", "key"]),
        ("HTTPServerToken", ["http", "server", "token"]),
        ("__a..b__", ["a", "b"]),
        ("", []),
    ],
)
def test_names_are_cut_into_words(name: str, expected: list[str]) -> None:
    assert words(name) == expected


def test_variables_with_telling_names_hold_secrets() -> None:
    environment = {
        "API_TOKEN": "tok1",
        "DB_PASSWORD_VALUE": "pass",
        "OPENAI_API_KEY": "sk-1",
        "STRIPE_KEY": "k1k1",
        "MYSQL_PWD": "pwd1",
        "SECRET_SALT": "salt",
        "TOKEN_2": "tok2",
        "NPM_CONFIG__AUTH": "YWJj",
        "password": "p4ss",
    }
    assert secret_variables(environment) == {f"env.{name}": value for name, value in sorted(environment.items())}


def test_variables_about_secrets_hold_none() -> None:
    environment = {
        "PWD": "/tmp/work",
        "OLDPWD": "/tmp/other",
        "SSH_AUTH_SOCK": "/tmp/sock",
        "GIT_ASKPASS": "/bin/ask",
        "TOKEN_FILE": "file",
        "VAULT_TOKEN_PATH": "path",
        "MAX_TOKENS": "4096",
        "TOKENIZERS_PARALLELISM": "false",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/a/key.json",
        "X_SECRET": "true",
        "A_TOKEN": "abc",
        "B_TOKEN": "",
        "PATH": "/usr/bin",
        "HOME": "/root",
        "KUBECONFIG": "/root/.kube/config",
        "AUTHOR": "somebody",
    }
    assert secret_variables(environment) == {}


@pytest.mark.parametrize(
    ("value", "password"),
    [
        ("postgres://bob:hunter2@db:5432/x?ssl=1", "hunter2"),
        ("redis://:hunter2@cache", "hunter2"),
        ("http://u:a@bc@proxy:80/", "a@bc"),
        ("https://example.com:8080/a@b", ""),
        ("https://bob@example.com", ""),
        ("not a url: bob:hunter2@x", ""),
    ],
)
def test_a_variable_with_a_url_holds_its_password(value: str, password: str) -> None:
    assert secret_variables({"DATABASE": value}) == ({"env.DATABASE": password} if password else {})
