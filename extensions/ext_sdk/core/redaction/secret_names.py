"""Names of secrets: of JSON members, YAML keys, headers, options and environment variables."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

LONGEST: Final = 64  # characters; longer names are not checked


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name is split into words (``clientKeyData`` -> client, key, data), and its last word decides.
_SECRET_WORDS: Final = _set(
    "password passwd passphrase passcode passwort pwd secret secrets token apikey credential credentials "
    "authorization cookie cookies jwt"
)
_SECRET_ENDINGS: Final = ("password", "passwd", "passphrase", "secret", "token", "apikey", "secretkey", "accesskey")
# These decide only together with the word before them.
_SECRET_PAIRS: Final = {
    "key": _set(
        "api private access secret encryption signing client ssh auth account master service license storage "
        "shared subscription session app application deploy admin rsa pem tls host webhook"
    ),
    "tokens": _set("access auth api refresh session bearer personal"),
    "pass": _set("db database smtp user admin root ftp mail proxy basic login ssh sudo registry"),
    "auth": _set("basic http proxy registry docker"),
    "id": frozenset(["secret"]),  # Vault's secret_id
    "signature": _set("amz goog"),  # of signed URLs; a function has a signature as well
}
# Words after the one that decides: ``client-key-data``, ``DB_PASSWORD_VALUE``, ``AWS_ACCESS_KEY_ID``.
_QUALIFIERS: Final = _set("data value val base64 b64 old new current previous raw plain text")
# Tokens that correlate or count and give no access: MCP's progressToken, LSP's workDoneToken, pages, vocabularies.
_HARMLESS_TOKENS: Final = _set(
    "progress cancellation cancel page next previous continuation continue done result partial sync resume start "
    "starting scroll delta change watch resumption idempotency eos bos pad unk stop sep mask cls max min image video "
    "audio"
)
# A variable with one of these as its last word holds a property of a secret, not the secret.
_ABOUT_SECRETS: Final = _set(
    "file files path paths dir directory url uri sock socket name names host port user username type kind ttl expiry "
    "expires expiration timeout count limit length size max min enabled disabled required region endpoint version "
    "provider helper command cmd issuer audience algorithm agent program prompt policy store keyring"
)
_ABOUT_COUNTS: Final = _set("max min num count limit")
_PATHS: Final = tuple(
    _set("~/ ./ ../ /home/ /root/ /etc/ /var/ /run/ /tmp/ /usr/ /opt/ /mnt/ /srv/ /Users/ /Library/ /private/ /app/")
)
_HARMLESS_VALUES: Final = _set(
    "true false yes no on off none null undefined enabled disabled required optional always never"
)
_SHORTEST: Final = 4  # characters; shorter values are not secrets


def words(name: str) -> list[str]:
    """Return the words of a name in lower case, split at separators and at the humps of camelCase."""
    parts: list[str] = []
    word = ""
    previous = ""
    for at, character in enumerate(name):
        if not character.isalnum():
            hump = True
        else:
            following = name[at + 1 : at + 2]
            hump = character.isupper() and (not previous.isupper() or following.islower())
        if hump and word:
            parts.append(word.lower())
            word = ""
        if character.isalnum():
            word += character
        previous = character
    return [*parts, word.lower()] if word else parts


def looks_secret(name: str) -> bool:
    """Return True if the value of a member, key, header or option of this name should not be shown."""
    if len(name) > LONGEST:
        return False
    parts = words(name)
    while len(parts) > 1 and (parts[-1] in _QUALIFIERS or parts[-1].isdigit()):
        parts.pop()
    parts[-1:] = [word.rstrip("0123456789") or word for word in parts[-1:]]
    if parts[-3:] == ["access", "key", "id"]:
        parts.pop()
    if not parts:
        return False
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last == "token":
        return before not in _HARMLESS_TOKENS
    if last in _SECRET_WORDS or parts == ["auth"]:
        return True
    if last in _SECRET_PAIRS:
        return before in _SECRET_PAIRS[last]
    return last.endswith(_SECRET_ENDINGS)


def secret_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that hold secrets.

    The name of a variable decides (``API_TOKEN``, ``DB_PASSWORD_VALUE``), or a URL with a password as its value.

    Returns:
        ``{"env.API_TOKEN": value}``, sorted by name.
    """
    secrets: dict[str, str] = {}
    for name, value in sorted(environ.items()):
        secret = value.strip() if _names_secret(name) else _url_password(value)
        is_path = secret.startswith(_PATHS) and not secret.endswith("=") and len(secret) < 4096
        if len(secret) >= _SHORTEST and secret.lower() not in _HARMLESS_VALUES and not is_path:
            secrets[f"env.{name}"] = secret
    return secrets


def _names_secret(name: str) -> bool:
    parts = words(name.upper())
    if len(parts) == 1:
        return parts[0] not in {"pwd", "oldpwd"} and looks_secret(parts[0])
    if not parts or parts[-1] in _ABOUT_SECRETS or parts == ["old", "pwd"] or _ABOUT_COUNTS & set(parts):
        return False
    if parts[-1] in {"key", "auth", "pass"}:
        return True
    return any(looks_secret("_".join(parts[:end])) for end in range(1, len(parts) + 1))


def _url_password(value: str) -> str:
    """Return the password in ``scheme://user:password@host``; "" if there is none."""
    scheme, found, rest = value.partition("://")
    if not found or not scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        return ""
    for end in "/?#":
        rest = rest.partition(end)[0]
    user, found, _ = rest.rpartition("@")
    return user.partition(":")[2] if found else ""
