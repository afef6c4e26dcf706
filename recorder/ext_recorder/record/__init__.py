"""Record a session: proxy between host and child, note queue, and the writer process that makes the cassette.

The proxy forwards bytes and parses nothing. The writer process, which is forked from it, finds the messages, redacts
secrets, replaces paths, and writes NAME.partial, which becomes NAME at the end of the session. `note_queue` decides
how long the proxy waits for it.
"""
