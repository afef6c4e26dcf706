"""Messages of a session, without I/O: which live message is the recorded one, and how the two are written.

Record, replay, verify and the tools share this: matching, ids, client-generated names, placeholders of paths and
secrets, comparison rules of users, and the texts by which differences are reported.
"""
