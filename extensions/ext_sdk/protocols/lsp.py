"""The Language Server Protocol."""

from __future__ import annotations

from .dialect import Dialect

DIALECT = Dialect(
    "lsp",
    "content-length",
    "the Language Server Protocol",
    bound={"initialize": {"root": "/params/rootUri", "folder": "/params/workspaceFolders/0/uri"}},
    volatile={
        "initialize": ("/params/processId", "/params/clientInfo", "/params/capabilities", "/params/locale"),
    },
    references={"$/cancelRequest": ("/params/id",)},
    minted={"*": ("/params/workDoneToken", "/params/partialResultToken")},
    echoed={"$/progress": ("/params/token",)},
    subject={"workspace/executeCommand": "/params/command"},
    final=("exit",),  # "A notification to ask the server to exit its process."
)
