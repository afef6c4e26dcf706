"""Bytes to messages and back, without any I/O: framing, JSON-RPC 2.0, and the calls of a connection.

    bytes --framing--> frames --jsonrpc--> messages --connection--> calls

Nothing here reads, writes, waits or reads the clock, so one implementation serves a server, a host, a recorder and a
test. The modules import neither `re` nor `json` where the interpreter has its C scanner: an extension answers its first
request before those would be loaded. `ext_sdk.wire` has the public names.
"""
