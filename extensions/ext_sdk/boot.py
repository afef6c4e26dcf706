"""Start of an extension: respond to `initialize` first, and import the rest while the host reads.

A host first waits for the manifest, and for nothing else. So the manifest is prepared (`ext-sdk prepare`),
and until the response is sent nothing is imported but the wire and the check of a configuration: no operation, no
schema library, and `re` only for a configuration with a value that has a pattern. The server responds to all other
first lines.
"""

from __future__ import annotations

import os
import sys

from ext_sdk.core.stdio import PeerGone, Stdio
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads, quote
from ext_sdk.core.wire.jsonrpc import Request, parse

from .core import gevals_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .definition import Definition

# Libraries import these names from a module that imports `inspect` and much else, although `typing` has them.
BACKPORTS = {"typing_extensions": dict.fromkeys(("NotRequired", "Required", "Self", "get_type_hints"), "typing")}


def serve(target: str) -> int:
    """Run as the console script of an extension. End the process after a host was served, unless a thread keeps it.

    Args:
        target: the Extension, as `package.module:name`; its package may have a prepared manifest.

    Returns:
        The exit code.
    """
    module, _, name = target.partition(":")

    def load() -> Definition:
        from importlib import import_module

        from .deferred_imports import defer

        defer(BACKPORTS)
        if for_host and os.path.exists(prepared):  # noqa: PTH110
            from .definition import Definition as Loaded

            Loaded.checked = False
        extension: Definition = getattr(import_module(module), name)
        return extension

    package = sys.modules[module.partition(".")[0]]
    prepared = os.path.join(package.__path__[0], gevals_spec.MANIFEST_FILE)  # noqa: PTH118  (no pathlib here)
    arguments = sys.argv[1:]
    for_host = not _called_by_a_person(arguments)
    code = run(load, arguments, prepared, target)
    if for_host:
        _exit(code)
    return code


def _called_by_a_person(arguments: Sequence[str]) -> bool:
    """Return True for arguments, or a terminal as stdin."""
    return bool(arguments) or os.isatty(0)


def _exit(code: int) -> None:
    """End the process without the teardown of the interpreter: it takes up to 100 ms, and the system frees everything.

    Exit handlers run: they remove temporary files, and save measured coverage. Does nothing if a thread that is not a
    daemon still runs: the interpreter waits for it.
    """
    threading = sys.modules.get("threading")
    if threading is not None and any(
        not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()
    ):
        return
    import atexit

    try:
        atexit._run_exitfuncs()  # noqa: SLF001  (there is no public name)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


def run(load: Callable[[], Definition], arguments: Sequence[str], prepared: str | None = None, target: str = "") -> int:
    """Serve a host on stdin and stdout, or a person.

    Args:
        load: returns the extension; called after the manifest was sent.
        arguments: of the command line; any of them, or a terminal as stdin, means that a person runs the program.
        prepared: path of the prepared manifest; None, or a missing file: it is built.
        target: the Extension as `package.module:name`, to warn of a stale manifest; "" for no warning.

    Returns:
        The exit code.
    """
    if _called_by_a_person(arguments):
        from ext_sdk.server.cli import main

        return main(load(), arguments)
    stdio = Stdio.claim()
    if TYPE_CHECKING:
        import signal as _signal
    else:
        import _signal  # `signal` imports `enum`
    for number in (_signal.SIGTERM, _signal.SIGHUP):  # until the server handles them: nothing needs a cleanup yet
        _signal.signal(number, lambda *_: os._exit(0))
    try:
        received, eof = b"", False  # up to the first line feed
        while b"\n" not in received and not eof:
            data = stdio.read()
            received, eof = received + data, not data
        manifest_sent = prepared is not None and _answer_initialize(stdio, received, prepared)
        definition = load()
        from .core.redaction.redactor import Redactor
        from .core.redaction.secret_names import secret_variables
        from .server.gevals import GevalsAdapter
        from .server.server import InitialIO, Server

        def compare() -> str:
            from .prepare import stale_warning

            return stale_warning(target)

        server = Server(definition, stdio, Redactor(secret_variables(os.environ)), GevalsAdapter)
        return server.run(
            InitialIO(received, manifest_sent=manifest_sent, eof=eof, compare=compare if target else None)
        )
    except (PeerGone, KeyboardInterrupt):
        return 1  # nothing was started that needs a cleanup


def _answer_initialize(stdio: Stdio, received: bytes, prepared: str) -> bool:
    """Respond to the first line with the prepared manifest, if it is an `initialize` that is certainly valid.

    Another configuration, or another version, must be validated before the response, which takes the complete
    extension.
    """
    try:
        request = parse(received.partition(b"\n")[0])
        manifest = _read(prepared)
    except (MessageError, OSError):
        return False
    if not isinstance(request, Request) or request.method != gevals_spec.INITIALIZE:
        return False
    params = request.params
    if not isinstance(params, dict) or not params.keys() <= {"protocolVersion", "config"}:
        return False
    if params.get("protocolVersion") != gevals_spec.PROTOCOL_VERSION:
        return False
    config = params.get("config")
    if not (config is None or config == {} or _is_certainly_valid(config, prepared)):
        return False
    id = request.id
    # Hosts count, or use short names; another id needs an encoder, or may be too long.
    if isinstance(id, int) and -(2**63) <= id < 2**63:
        encoded = b"%d" % id
    elif isinstance(id, str) and len(id) <= 100:
        encoded = quote(id).encode("utf-8", "backslashreplace")
    else:
        return False
    stdio.write(b'{"jsonrpc":"2.0","id":' + encoded + b',"result":' + manifest + b"}\n")
    return True


def _is_certainly_valid(config: object, prepared: str) -> bool:
    """Return True if the schema next to the prepared manifest accepts a configuration."""
    from ext_sdk.server.config_check import certainly_valid

    try:
        path = os.path.join(os.path.dirname(prepared), gevals_spec.CONFIG_FILE)  # noqa: PTH118, PTH120
        schema = loads(_read(path).decode())
    except OSError:
        return False
    return certainly_valid(config, schema)


def _read(path: str) -> bytes:
    """Return the content of a file, without the layers of `open`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size).rstrip()
    finally:
        os.close(descriptor)
