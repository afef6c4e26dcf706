"""Variables of a recorded command."""

from __future__ import annotations

import shlex

from ext_recorder.messages.redaction import Redaction
from ext_recorder.run.environment import (
    NODE_PRELOAD,
    base_urls,
    kept_variables,
    remark,
    replay_variables,
    variables,
)


def test_a_base_url_keeps_its_path_and_servers_share_a_listener() -> None:
    environ = {"OPENAI_BASE_URL": "https://gateway.example/v1/", "GROQ_BASE_URL": "https://gateway.example/groq"}
    found = {base.name: base for base in base_urls(environ, ())}
    assert found["OPENAI_BASE_URL"].path == "/v1"
    assert found["GROQ_BASE_URL"].listener is found["OPENAI_BASE_URL"].listener
    assert found["ANTHROPIC_BASE_URL"].listener.entry.origin is not None
    assert found["ANTHROPIC_BASE_URL"].listener.entry.origin.host == "api.anthropic.com"
    for base in found.values():
        base.listener.socket.close()


def test_an_address_of_loopback_is_left_to_a_command_that_may_start_its_server() -> None:
    for served, environ, expected in (
        ((), {}, False),
        (("127.0.0.1:11434",), {}, True),
        ((), {"OLLAMA_HOST": "127.0.0.1:5000"}, True),
    ):
        found = base_urls(environ, served)
        assert ("OLLAMA_HOST" in {base.name for base in found}) is expected
        for base in found:
            base.listener.socket.close()


def test_options_of_the_user_are_kept() -> None:
    environ = {"NODE_OPTIONS": "--max-old-space-size=99", "JAVA_TOOL_OPTIONS": "-Xmx1g"}
    added = variables(environ, 8080, "/b.pem", "/a folder/b.p12", [])
    assert shlex.split(added["NODE_OPTIONS"]) == ["--require", str(NODE_PRELOAD), "--max-old-space-size=99"]
    java = shlex.split(added["JAVA_TOOL_OPTIONS"])
    assert (java[0], "-Djavax.net.ssl.trustStore=/a folder/b.p12" in java) == ("-Xmx1g", True)
    assert added["HTTPS_PROXY"] == added["http_proxy"] == "http://127.0.0.1:8080"
    assert added["NODE_EXTRA_CA_CERTS"] == added["SSL_CERT_FILE"] == "/b.pem"


def test_the_header_has_addresses_and_placeholders_but_no_keys() -> None:
    environ = {"OPENAI_BASE_URL": "http://u:hunter2@host/v1", "MY_API_KEY": "hunter2", "HF_TOKEN": "", "OTHER": "x"}
    kept = kept_variables(environ, lambda text: text.replace("hunter2", "[redacted]"))
    assert kept == {"OPENAI_BASE_URL": "http://u:[redacted]@host/v1", "MY_API_KEY": "ext-recorder"}
    secrets = ("OPENAI_BASE_URL", "OTHER", "NOT_SET", "HTTPS_PROXY")
    with_secrets = kept_variables(environ | {"HTTPS_PROXY": "http://u:p@h"}, lambda _: "clean", secrets)
    assert with_secrets == {"OPENAI_BASE_URL": "clean", "MY_API_KEY": "ext-recorder", "OTHER": "ext-recorder"}


def test_a_replay_sets_addresses_and_placeholders_but_nothing_that_could_run_code() -> None:
    good = {"OPENAI_BASE_URL": "http://gateway.example/v1", "AWS_REGION": "eu-west-1"}
    good |= dict.fromkeys(("MY_API_KEY", "MODEL_KEY", "DB_PASSWORD", "DATABASE_URL", "DEMO_PIN"), "ext-recorder")
    bad = dict.fromkeys(("PATH", "PYTHONPATH", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "EDITOR"), "ext-recorder")
    bad |= {"GITHUB_TOKEN": "a value", "LD_LIBRARY_PATH": "/tmp/evil"}
    kept, remarks = replay_variables(good | bad, Redaction(["DEMO_PIN"]))
    assert kept == good
    assert [text.partition(" ")[0] for text in remarks] == [name for name in bad if name != "PATH"]
    assert replay_variables({"DEMO_PIN": "ext-recorder"}, Redaction())[0] == {}


def test_the_remark_on_isolation_names_what_was_not_checked() -> None:
    assert remark("") == "isolated: the command ran without any network but loopback"
    assert remark("namespaces: no") == (
        "not isolated from the network (namespaces: no), so it was not checked that no program bypassed the proxy"
    )
