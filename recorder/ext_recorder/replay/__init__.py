"""Replay a cassette in place of the recorded child.

A player (`strict`, `any_order`) is sans-IO: it takes the host's bytes, and fills an action buffer with what to write,
close and exit with. The event loop performs these actions on files.
"""
