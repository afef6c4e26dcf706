"""Public names for authors of extensions: typed operations with arguments in and results out.

    import ext_sdk

    class Greet(ext_sdk.Args):
        name: str

    extension = ext_sdk.Extension("greeter", version="1.0.0", description="Says hello")

    @extension.operation()
    def greet(args: Greet, context: ext_sdk.Context) -> ext_sdk.Result:
        \"\"\"Say hello to a person.\"\"\"
        return ext_sdk.Result.ok(f"Hello, {args.name}!", outputs={"name": args.name})

    if __name__ == "__main__":
        raise SystemExit(extension.run())

Names are imported at their first use (PEP 562): an extension responds to `initialize` before any of them is needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from msgspec import Meta

    from ext_sdk.core import __version__

    from .args import Args, Computed, Config, Template, Verbatim
    from .context import Agent, Context, HostCallFailed, HostCalls, HostOutput, Log, Secrets
    from .duration import Duration
    from .extension import Extension
    from .operation import Operation
    from .polling import Deadline, OnTimeout
    from .result import InvalidArgs, NotKept, OperationFailed, RequirementNotMet, Result, conclude_wait

__all__ = [
    "Agent",
    "Args",
    "Computed",
    "Config",
    "Context",
    "Deadline",
    "Duration",
    "Extension",
    "HostCallFailed",
    "HostCalls",
    "HostOutput",
    "InvalidArgs",
    "Log",
    "Meta",
    "NotKept",
    "OnTimeout",
    "Operation",
    "OperationFailed",
    "RequirementNotMet",
    "Result",
    "Secrets",
    "Template",
    "Verbatim",
    "__version__",
    "conclude_wait",
]

_HOMES = {
    "Agent": "ext_sdk.context",
    "Args": "ext_sdk.args",
    "Computed": "ext_sdk.args",
    "Config": "ext_sdk.args",
    "Context": "ext_sdk.context",
    "Deadline": "ext_sdk.polling",
    "Duration": "ext_sdk.duration",
    "Extension": "ext_sdk.extension",
    "HostCallFailed": "ext_sdk.context",
    "HostCalls": "ext_sdk.context",
    "HostOutput": "ext_sdk.context",
    "InvalidArgs": "ext_sdk.result",
    "Log": "ext_sdk.context",
    "Meta": "msgspec",
    "NotKept": "ext_sdk.result",
    "OnTimeout": "ext_sdk.polling",
    "Operation": "ext_sdk.operation",
    "OperationFailed": "ext_sdk.result",
    "RequirementNotMet": "ext_sdk.result",
    "Result": "ext_sdk.result",
    "Secrets": "ext_sdk.context",
    "Template": "ext_sdk.args",
    "Verbatim": "ext_sdk.args",
    "__version__": "ext_sdk.core",
    "conclude_wait": "ext_sdk.result",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ext_sdk' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
