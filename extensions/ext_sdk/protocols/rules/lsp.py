"""The Language Server Protocol: its lifecycle and its general messages."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import ANY, LIST, OBJECT, TEXT, VERSION_2, WHOLE, either, record

_TEXT_DOCUMENT = record(uri=TEXT, languageId=TEXT, version=WHOLE, text=TEXT)
_POSITION = record(textDocument=record(uri=TEXT), position=record(line=WHOLE, character=WHOLE))
_BETWEEN = ("< window/logMessage", "< window/showMessage", "< telemetry/event", "< $/progress")
_READY = (
    *_BETWEEN, "> initialized", "> textDocument/didOpen", "> textDocument/didChange", "> textDocument/didClose",
    "> textDocument/hover", "> textDocument/completion", "> textDocument/definition", "> textDocument/references",
    "> textDocument/documentSymbol", "> textDocument/formatting", "> workspace/didChangeConfiguration",
    "< textDocument/publishDiagnostics",
)  # fmt: skip

RULES = Rules(
    "Language Server Protocol",
    {
        "initialize": Clause("Initialize Request", "processId, rootUri, capabilities; the answer has capabilities."),
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
        "> textDocument/didOpen": ("open", record(textDocument=_TEXT_DOCUMENT)),
        "> textDocument/hover": ("position", _POSITION),
        "> textDocument/completion": ("position", _POSITION),
        "> textDocument/definition": ("position", _POSITION),
        "< textDocument/publishDiagnostics": ("diagnostics", record(uri=TEXT, diagnostics=LIST)),
        "> shutdown": ("lifecycle", ANY),
        "> exit": ("lifecycle", ANY),
    },
    machines=(
        Machine(
            "lifecycle",
            "started",
            {
                "started": {"> initialize": "initializing", "> exit": "over"},
                "initializing": dict.fromkeys(_BETWEEN, "initializing")
                | {"< = initialize": "ready", "< ! initialize": "started", "> exit": "over"},
                "ready": dict.fromkeys(_READY, "ready") | {"> shutdown": "shut down", "> exit": "over"},
                "shut down": dict.fromkeys(_BETWEEN, "shut down") | {"> exit": "over", "< = shutdown": "shut down",
                                                                     "< textDocument/publishDiagnostics": "shut down"},
                "over": dict.fromkeys((*_BETWEEN, "< textDocument/publishDiagnostics"), "over"),
            },
        ),
    ),
)  # fmt: skip
