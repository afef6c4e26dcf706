"""Passwords after options of one letter."""

from __future__ import annotations

import pytest

from ext_sdk.core.redaction.redactor import Redactor


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mysql -uroot -pW7rk2vXq db", "mysql -uroot -p[redacted:option.p#1] db"),
        ("sshpass -p W7rk2vXq ssh host", "sshpass -p [redacted:option.p#1] ssh host"),
        ("curl -u ada:W7rk2vXq https://x", "curl -u ada:[redacted:option.u#1] https://x"),
        ("smbclient -U ada%W7rk2vXq //x", "smbclient -U ada%[redacted:option.U#1] //x"),
        ('["redis-cli","-a","W7rk2vXq"]', '["redis-cli","-a","[redacted:option.a#1]"]'),
        ('["run","-p","W7rk2vXq"]', '["run","-p","[redacted:option.p#1]"]'),
    ],
)
def test_the_password_of_a_command_is_redacted(text: str, redacted: str) -> None:
    assert Redactor({}, rules=True).redact(text.encode()).decode() == redacted


@pytest.mark.parametrize(
    "text",
    [
        "mysql -p W7rk2vXq",  # prompts for the password, and opens a database
        "curl -u ada https://x",
        "ssh -p W7rk2vXq host",
        "mymysql -pW7rk2vXq",
        '["run","-p","8080:80"]',
    ],
)
def test_other_options_are_kept(text: str) -> None:
    assert Redactor({}, rules=True).redact(text.encode()).decode() == text
