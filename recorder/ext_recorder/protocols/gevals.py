"""Extension protocol of gevals 0.0.1. Its constants are in ext_sdk, because extensions need them as well."""

from __future__ import annotations

from ext_sdk.core import gevals_spec

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

DIALECT = Dialect(
    "gevals",
    gevals_spec.FRAMING,
    "the gevals extension protocol",
    bound=gevals_spec.BOUND,
    volatile=gevals_spec.VOLATILE,
    failed={"/result/success": False},
    subject={gevals_spec.EXECUTE: "/params/operation"},
    final=gevals_spec.FINAL,
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        ANY,
        FLAG,
        OBJECT,
        TEXT,
        VERSION_2,
        Clause,
        OnlyWhileOpen,
        Rules,
        StateMachine,
        list_of,
        map_of,
        one_of,
        record,
    )

    agent = record(prompt_=TEXT, output_=TEXT)
    context = record(
        workdir=TEXT,
        phase=one_of("setup", "verify", "cleanup"),
        env_=map_of(TEXT),
        timeout_=TEXT,
        agent_=agent,
    )
    manifest = record(
        name=TEXT,
        version=TEXT,
        protocolVersion=TEXT,
        description_=TEXT,
        requires_=list_of(record(command_=TEXT)),
        operations=map_of(record(description_=TEXT, params=OBJECT)),
    )
    return Rules(
        "gevals extension protocol 0.0.1",
        {
            "initialize": Clause("Initialize, Request", "protocolVersion is required, a string."),
            "manifest": Clause(
                "Initialize, Manifest Fields", "name, version, protocolVersion and operations are required."
            ),
            "execute": Clause("Execute, Params Fields and Context Object", "operation, args, context are required."),
            "result": Clause("Execute, Result Fields", "success is required; outputs are texts."),
            "log": Clause("Log (Notification), Params Fields", "level and message are required."),
            "log-during": Clause("Log (Notification)", "Progress is reported during execution."),
            "shutdown": Clause("Shutdown", "Termination is asked for by a request and answered."),
            "lifecycle": Clause("Lifecycle", "initialize once, then execute, then shutdown, then the exit."),
            "messages": Clause("Messages", "initialize, execute, shutdown are the host's, log is the extension's."),
            "stdout": Clause("Transport", "Output is messages, one a line; debug logs go to stderr."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            "> initialize": ("initialize", record(protocolVersion=TEXT, config_=OBJECT)),
            "< = initialize": ("manifest", manifest),
            "> execute": ("execute", record(operation=TEXT, args=OBJECT, context=context)),
            "< = execute": ("result", record(success=FLAG, message_=TEXT, error_=TEXT, outputs_=map_of(TEXT))),
            "< log": ("log", record(level=one_of("debug", "info", "warn", "error"), message=TEXT, data_=OBJECT)),
            "> shutdown": ("shutdown", ANY),
            "< = shutdown": ("shutdown", OBJECT),
        },
        machines=(
            StateMachine(
                "lifecycle",
                "spawned",
                {
                    "spawned": {"> initialize": "initializing", "> execute": "one-shot"},
                    "one-shot": {},
                    "initializing": {"< = initialize": "ready", "< ! initialize": "spawned"},
                    "ready": {"> execute": "ready", "> shutdown": "ending"},
                    "ending": {"< = shutdown": "over", "< ! shutdown": "ready"},
                    "over": {},
                },
            ),
        ),
        during=(OnlyWhileOpen("log-during", ("< log",), ("execute",)),),
        closed="messages",
        junk="stdout",
    )
