"""Protocols as data: one module for each, with its dialect and, in `rules()`, the rules of its specification.

A dialect (see `dialect`) names the parts of messages that matter to record and replay. Rules (see `rules`) are
used by `lint`, `conformance` and the tests; a function creates them because replay needs no schemas.

A new protocol needs a module, its name here, and its signature in `detection`.
"""

# Names of the protocols in the order of help texts. Each is a module of this package, except raw (see `dialect`). The
# part after a hyphen is a variant in the module before it: GO_DIALECT and go_rules() of waza-go are in `waza`.
NAMES = (
    "gevals", "pi", "gassist", "waza", "waza-go", "kaiak", "kaiak-head", "mcp", "lsp", "dap", "acp", "jsonrpc", "raw",
)  # fmt: skip
