"""No secret reaches the disk: not in headers, URLs or bodies, not in any spelling, not in compressed content."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving
from tests.support.secret_encodings import spellings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.host import Session

TOKEN = "s3cr3t+Value/that-is~long 42"
BEARER = "bearer-of-nobody-0123456789"
SENDING = """
import base64, gzip, json, os, urllib3
from urllib.parse import quote
pool, url, token = urllib3.PoolManager(), {url!r}, os.environ["API_TOKEN"]
def send(method, path, **more):
    answer = pool.request(method, url + path, **more)
    return answer.status, answer.data
for name in ("Authorization", "Proxy-Authorization", "X-Api-Key", "Cookie", "X-Plain"):
    send("GET", "/echo/1", headers={{name: token}})
send("GET", "/echo/2", headers={{"Authorization": "Bearer {bearer}"}})
send("GET", "/echo/3", headers={{"Authorization": "Basic " + base64.b64encode(f"ada:{{token}}".encode()).decode()}})
send("GET", "/echo/4?access_token=" + quote(token, safe=""))
send("GET", "/" + quote(token, safe=""))
for body in (token, token.encode().hex(), quote(token), json.dumps({{"a": {{"deep": token + chr(34)}}}})):
    send("POST", "/made", body=body)
for offset in range(3):
    send("POST", "/made", body=base64.b64encode(b"x" * offset + token.encode() + b"tail"))
    send("POST", "/made", body=base64.urlsafe_b64encode(b"x" * offset + token.encode() + b"tail"))
send("POST", "/made", body=gzip.compress(("x" * 100000 + token + "y" * 100000).encode()),
     headers={{"Content-Encoding": "gzip"}})
send("POST", "/made", body="x" * (4 * 1024 * 1024 - 10) + token + "y" * (2 * 1024 * 1024))
secret = {{"kind": "Secret", "apiVersion": "v1", "data": {{"any": "bm8gb25lIGtub3dzIHRoaXM="}}, "type": "Opaque"}}
print(*send("POST", "/made", body=json.dumps(secret)))
"""


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The recording of a child that sends secrets in every place and encoding."""
    cassette = tmp_path_factory.mktemp("sent") / "session.yaml"
    with serving() as server:
        child = script(SENDING.format(url=server.origin, bearer=BEARER))
        return Recorded(cassette, server.origin, record(cassette, child, {"API_TOKEN": TOKEN}))


class Recorded(NamedTuple):
    """A recording of SENDING."""

    cassette: Path
    url: str
    session: Session


def test_no_encoding_of_a_secret_is_in_the_files(sent: Recorded) -> None:
    assert (sent.session.code, sent.session.err) == (0, b"")
    cassette = sent.cassette
    assert len(document(cassette)["interactions"]) == 22
    for path in cassette.parent.iterdir():
        text = path.read_bytes()
        assert [each for secret in (TOKEN, BEARER) for each in spellings(secret) if each in text] == []
        assert b"bm8gb25lIGtub3dzIHRoaXM" not in text
    # And in what is compressed, or in base64 for being long.
    for each in document(cassette)["interactions"]:
        request, response = each["request"], each["response"]
        assert isinstance(request, dict)
        assert isinstance(response, dict)
        for body in (request["body"], response["body"]["string"]):
            data = body if isinstance(body, bytes) else str(body).encode()
            data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            assert TOKEN.encode() not in data


def test_the_recording_plays_with_another_secret(sent: Recorded) -> None:
    other = script(SENDING.format(url=sent.url, bearer="another-of-nobody-9876543210"))
    again = replay(sent.cassette, other, {"API_TOKEN": "an0th3+Value/that-is~long 24"})
    assert (again.code, again.err) == (0, b"")
    assert again.out.startswith(b"201 ")


def test_credentials_of_a_kubeconfig_are_secrets_and_its_names_are_kept(tmp_path: Path) -> None:
    cassette, kubeconfig = tmp_path / "session.yaml", tmp_path / "kubeconfig"
    program = (
        "import os, urllib3, yaml\n"
        "config = yaml.safe_load(open(os.environ['KUBECONFIG']))\n"
        "server, user = config['clusters'][0]['cluster']['server'], config['users'][0]['user']\n"
        "urllib3.PoolManager().request('POST', server + '/a', body='x' + user.get('token', '') + 'x')\n"
        "print(config['current-context'], len(config['clusters']), sorted(config['users'][0]['user']))"
    )
    with serving() as server:
        kubeconfig.write_text(
            f"current-context: c\nclusters:\n- {{name: one, cluster: {{server: '{server.origin}'}}}}\n"
            "- {name: other, cluster: {server: 'https://other.example.com'}}\n"
            "contexts:\n- {name: c, context: {cluster: one, user: ada}}\n"
            f"users:\n- {{name: ada, user: {{token: {BEARER}}}}}\n"
        )
        plain = record(cassette, script(program), {"KUBECONFIG": str(kubeconfig)})
    assert plain.out == b"c 2 ['token']\n"
    text = (tmp_path / "session.http.yaml").read_bytes()
    assert [each for each in spellings(BEARER) if each in text] == []
    assert b"other.example.com" not in text  # a cluster that nobody asked is nobody's business
    kubeconfig.unlink()
    again = replay(
        cassette, script(program.replace("'x' + user.get('token', '') + 'x'", "'x[redacted:kubeconfig#1]x'"))
    )
    assert (again.out, again.err, again.code) == (b"c 1 []\n", b"", 0)


def test_what_cannot_be_looked_into_is_not_written(cassette: Path) -> None:
    with serving() as server:
        child = script(
            f"import urllib3\nurllib3.PoolManager().request('POST', {server.origin!r} + '/made', body=b'?',"
            " headers={'Content-Encoding': 'br'})"
        )
        plain = record(cassette, child)
    assert plain.code == 3
    assert b"a body in br, which cannot be searched for secrets" in plain.err
    assert document(cassette)["interactions"] == []
