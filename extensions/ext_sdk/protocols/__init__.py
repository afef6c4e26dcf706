"""Protocols: one module per specification, as data, and `dialect`, which gives all of them one shape.

`gevals` holds the constants of the gevals extension protocol, `jsonrpc` what plain JSON-RPC 2.0 says by
itself. Nothing here does I/O, starts threads or asks for the time.
"""
