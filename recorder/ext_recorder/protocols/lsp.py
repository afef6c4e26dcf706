"""Language Server Protocol."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

DIALECT = Dialect(
    "lsp",
    "content-length",
    "the Language Server Protocol",
    bound={"initialize": {"root": "/params/rootUri", "folder": "/params/workspaceFolders/0/uri"}},
    volatile={
        "initialize": ("/params/processId", "/params/clientInfo", "/params/capabilities", "/params/locale"),
    },
    references={"$/cancelRequest": ("/params/id",)},
    client_generated={"*": ("/params/workDoneToken", "/params/partialResultToken")},
    echoed_names={"$/progress": ("/params/token",)},
    subject={"workspace/executeCommand": "/params/command"},
    final=("exit",),  # "A notification to ask the server to exit its process."
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import ANY, LIST, OBJECT, TEXT, VERSION_2, WHOLE, Clause, Rules, StateMachine, either, record

    text_document = record(uri=TEXT, languageId=TEXT, version=WHOLE, text=TEXT)
    position = record(textDocument=record(uri=TEXT), position=record(line=WHOLE, character=WHOLE))
    between = ("< window/logMessage", "< window/showMessage", "< telemetry/event", "< $/progress")
    ready = (
        *between, "> initialized", "> textDocument/didOpen", "> textDocument/didChange", "> textDocument/didClose",
        "> textDocument/hover", "> textDocument/completion", "> textDocument/definition", "> textDocument/references",
        "> textDocument/documentSymbol", "> textDocument/formatting", "> workspace/didChangeConfiguration",
        "< textDocument/publishDiagnostics",
    )  # fmt: skip
    return Rules(
        "Language Server Protocol",
        {
            "initialize": Clause(
                "Initialize Request", "processId, rootUri, capabilities; the answer has capabilities."
            ),
            "lifecycle": Clause("Server lifecycle", "initialize first; after shutdown only exit."),
            "open": Clause("DidOpenTextDocument Notification", "uri, languageId, version and text of the document."),
            "diagnostics": Clause("PublishDiagnostics Notification", "uri and diagnostics."),
            "position": Clause("TextDocumentPositionParams", "textDocument and position."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            "> initialize": ("initialize", record(processId=either(WHOLE, {"type": "null"}), capabilities=OBJECT)),
            "< = initialize": ("initialize", record(capabilities=OBJECT, serverInfo_=OBJECT)),
            "> textDocument/didOpen": ("open", record(textDocument=text_document)),
            "> textDocument/hover": ("position", position),
            "> textDocument/completion": ("position", position),
            "> textDocument/definition": ("position", position),
            "< textDocument/publishDiagnostics": ("diagnostics", record(uri=TEXT, diagnostics=LIST)),
            "> shutdown": ("lifecycle", ANY),
            "> exit": ("lifecycle", ANY),
        },
        machines=(
            StateMachine(
                "lifecycle",
                "started",
                {
                    "started": {"> initialize": "initializing", "> exit": "over"},
                    "initializing": dict.fromkeys(between, "initializing")
                    | {"< = initialize": "ready", "< ! initialize": "started", "> exit": "over"},
                    "ready": dict.fromkeys(ready, "ready") | {"> shutdown": "shut down", "> exit": "over"},
                    "shut down": dict.fromkeys(between, "shut down")
                    | {"> exit": "over", "< = shutdown": "shut down", "< textDocument/publishDiagnostics": "shut down"},
                    "over": dict.fromkeys((*between, "< textDocument/publishDiagnostics"), "over"),
                },
            ),
        ),
    )
