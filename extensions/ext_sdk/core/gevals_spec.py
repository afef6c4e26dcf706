"""The gevals extension protocol, version 0.0.1, as data.

This module is on the start-up path of every extension: it imports nothing.
"""

from __future__ import annotations

PROTOCOL_VERSION = "0.0.1"
FRAMING = "ndjson"  # Transport: each message is one line terminated by "\n", in UTF-8

# Methods. The host calls the first three, the extension notifies by the last.
INITIALIZE = "initialize"
EXECUTE = "execute"
SHUTDOWN = "shutdown"
LOG = "log"
METHODS = (INITIALIZE, EXECUTE, SHUTDOWN)

PHASES = ("setup", "verify", "cleanup")  # Context Object, `phase`
LOG_LEVELS = ("debug", "info", "warn", "error")  # Log, `level`; ordered by weight

# Error Handling: the codes of JSON-RPC 2.0, then those that the spec adds in its reserved range.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601  # also: unknown operation
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
OPERATION_FAILED = -32000
TIMEOUT = -32001
REQUIREMENT_NOT_MET = -32002

ERROR_NAMES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    OPERATION_FAILED: "Operation failed",
    TIMEOUT: "Timeout",
    REQUIREMENT_NOT_MET: "Requirement not met",
}

# Files of an extension's package, which `ext_sdk.prepare` writes. It responds to INITIALIZE from the manifest, and the
# schema of the configuration (see `server.config_check`). `serve` responds in other protocols from the tools, one line
# for each operation (see `server.serving`). `ext-host lint` reads the operations.
MANIFEST_FILE = "manifest.json"
CONFIG_FILE = "config-schema.json"
OPERATIONS_FILE = "operations.json"
TOOLS_FILE = "tools.ndjson"

# Where a message names something of the machine it was sent on: {method: {binding: JSON pointer}}. A recorder
# sets these apart, so that a session recorded in one directory plays in another (Execute, `context.workdir`).
BOUND: dict[str, dict[str, str]] = {EXECUTE: {"workdir": "/params/context/workdir"}}

# What differs from run to run without meaning anything: {method: JSON pointers}. Method "*" is every method.
VOLATILE: dict[str, tuple[str, ...]] = {}

# The extension exits by itself after answering this (Shutdown).
FINAL = (SHUTDOWN,)
