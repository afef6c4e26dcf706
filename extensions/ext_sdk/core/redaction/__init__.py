"""Redaction: secrets are replaced in everything that is written: cassettes, results, logs.

Every writer uses a ``Redactor``. It finds known values (of variables that look secret, or added by hand) in all their
encodings, and, for a recorder, texts that look like a secret. Each is replaced by a numbered placeholder,
``[redacted:RULE#N]``: the same value always by the same one, so that a live request still matches a recorded one that
was redacted.

`redactor` is on the start-up path, and imports ``re`` only when a text may hold a secret.
"""
