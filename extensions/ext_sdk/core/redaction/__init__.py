"""Keeping secrets out of everything that is written: cassettes, results, logs.

One :class:`Redactor` stands before every writer. It knows values (of variables that look secret, or added by hand)
in all their spellings, and, for a recorder, what secrets look like when nobody named them. Each is replaced by a
numbered placeholder, ``[redacted:RULE#N]``: the same value always by the same one, so that a request which was
redacted on the way to a cassette and a live one still match.

Nothing here imports ``re`` until a text looks as if it held a secret: the module is on the start-up path.
"""
