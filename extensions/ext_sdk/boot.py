"""Start of an extension: respond to `initialize` first, and import the rest while the host reads.

A host first waits for the manifest, and for nothing else. So the manifest is prepared (`ext-sdk prepare`),
and until the response is sent nothing is imported but the wire and the check of a configuration: no operation, no
schema library, and `re` only for a configuration with a value that has a pattern. The server responds to all other
first lines. The same holds for `serve`, with the prepared tools instead of the manifest.
"""

from __future__ import annotations

import os
import sys

from ext_sdk.core.stdio import CLOSED, PeerGone, Stdio, claim_standard_files
from ext_sdk.core.wire.errors import INTERNAL_ERROR, MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.jsonrpc import Request, parse

from . import core
from .core import gevals_spec, unsupported_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .definition import Definition
    from .server.server import Adapter, Server
    from .server.serving import Serving

USAGE_ERROR = 2

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
    for_host = _serving(arguments) is not None or not _called_by_a_person(arguments)
    code = run(load, arguments, prepared, target)
    if for_host:
        _exit(code)
    return code


def _called_by_a_person(arguments: Sequence[str]) -> bool:
    """Return True for arguments, or a terminal as stdin."""
    return bool(arguments) or os.isatty(0)


def _serving(arguments: Sequence[str]) -> Serving | None:
    """Return the options of `serve`; None for another command line, or one that the complete parser must read."""
    if arguments[:1] != ["serve"]:
        return None
    from .server.serving import Serving

    return Serving.read(arguments[1:])


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
    if reason := unsupported_system():
        return _refuse(reason, arguments)
    serving, by_person = _serving(arguments), _called_by_a_person(arguments)
    if sys.stdout is None and (serving or not by_person):
        claim_standard_files()  # standard error may be closed, too
        os.write(2, f"{os.path.basename(sys.argv[0])}: {CLOSED}\n".encode())  # noqa: PTH119
        return USAGE_ERROR
    if serving:
        return _run_protocol(load, serving, prepared, target)
    if by_person:
        from ext_sdk.server.cli import main

        return main(load(), arguments, lambda serving: _run_protocol(load, serving, prepared, target))
    stdio = _claim()
    try:
        received, eof, answered = _answer_first(stdio, lambda request: _manifest_for(request, prepared))
        definition = _load_or_refuse(load, stdio, received, answered=answered)
        from ext_sdk.server.server import GevalsAdapter

        return _serve(definition, stdio, GevalsAdapter, received, eof, answered=answered, target=target)
    except (PeerGone, KeyboardInterrupt):
        return 1  # nothing was started that needs a cleanup


def _refuse(reason: str, arguments: Sequence[str]) -> int:
    """Report on stderr, and to a host as the error of its first request, that nothing can run. Return the exit code."""
    text = f"{os.path.basename(sys.argv[0])}: {reason}"  # noqa: PTH119
    os.write(2, f"{text}\n".encode())
    serving = _serving(arguments)
    if serving.protocol == "mcp" if serving else not _called_by_a_person(arguments):
        from contextlib import suppress

        error = dumps({"code": INTERNAL_ERROR, "message": text})
        with suppress(PeerGone):
            _answer_first(Stdio.claim(), lambda _: error, member=b"error")
    return USAGE_ERROR


def _load_or_refuse(load: Callable[[], Definition], stdio: Stdio, received: bytes, *, answered: bool) -> Definition:
    """Load the extension and the server. If that fails, respond with the reason to all requests, then raise the error.

    Hosts that have their manifest would wait for a response until their deadline.

    Args:
        received: what was read already.
        answered: the first message has its response.
    """
    try:
        definition = load()
        import ext_sdk.core.redaction.secret_names
        import ext_sdk.server.server  # noqa: F401
    except Exception as error:
        text = f"{os.path.basename(sys.argv[0])}: cannot be loaded: {core.load_failure(error)}"  # noqa: PTH119
        response, eof = dumps({"code": INTERNAL_ERROR, "message": text}), False
        if answered:
            received = received.partition(b"\n")[2]
        while not eof:
            received, eof, _ = _answer_first(stdio, lambda _: response, received, member=b"error")
            received = received.partition(b"\n")[2]
        raise
    return definition


def _run_protocol(load: Callable[[], Definition], serving: Serving, prepared: str | None, target: str) -> int:
    """Serve the client of another protocol than gevals; see `run`."""
    from .server.serving import ServingError, read_tools

    file = os.path.join(os.path.dirname(prepared), gevals_spec.TOOLS_FILE) if prepared else ""  # noqa: PTH118, PTH120
    stdio = _claim(f"{os.path.basename(sys.argv[0])}.log" if serving.protocol == "gassist" else "")  # noqa: PTH119
    try:
        config, definition = serving.configuration(), None
        if os.path.exists(file):  # noqa: PTH110
            content = _read(file)
        else:
            from .server.mcp import build_tools

            content = build_tools(definition := load())
        try:
            tools = read_tools(content, serving)
        except ServingError as error:
            if definition is None:
                from .server.mcp import build_tools

                read_tools(build_tools(load()), serving)
                text = f"{error}; {file} is stale, the extension has it: run `ext-sdk prepare {target}`"
                raise ServingError(text) from error
            raise
        tools.target = "" if definition else target
        if (notice := tools.notice()) and serving.protocol != "gassist":  # whose engine reads stderr as messages
            os.write(2, f"ext-{tools.name}: {notice}\n".encode())
        received, eof, answered = b"", False, False
        # The adapters of other protocols read, and a configuration that may be invalid is validated, before a response.
        valid = not config or (prepared is not None and _is_certainly_valid(config, prepared))
        if valid and serving.protocol == "mcp":
            from .server.serving import first_result

            received, eof, answered = _answer_first(stdio, lambda request: first_result(request, tools))
        elif valid and serving.protocol == "gassist":
            from .server.serving import gassist_first_result

            result = lambda request: gassist_first_result(request, tools)  # noqa: E731
            received, eof, answered = _answer_first(stdio, result, after_length=True)
        elif valid and serving.protocol == "pi":
            from .server.serving import pi_register

            stdio.write(pi_register(tools))
            answered = True
        definition, adapter = definition or load(), serving.adapter()
        return _serve(
            definition,
            stdio,
            lambda server: adapter(server, serving, tools),
            received,
            eof,
            answered=answered,
            target=target,
            config=config,
        )
    except (PeerGone, KeyboardInterrupt):
        return 1
    except ServingError as error:
        os.write(2, f"{os.path.basename(sys.argv[0])} serve: {error}\n".encode("utf-8", "backslashreplace"))  # noqa: PTH119
        return USAGE_ERROR


def _claim(log: str = "") -> Stdio:
    """Return the descriptors of the host's messages. Signals end the process until the server handles them.

    Args:
        log: see Stdio.claim.
    """
    stdio = Stdio.claim(log)
    if TYPE_CHECKING:
        import signal as _signal
    else:
        import _signal  # `signal` imports `enum`
    for number in (_signal.SIGTERM, _signal.SIGHUP):  # nothing needs a cleanup yet
        _signal.signal(number, lambda *_: os._exit(0))
    return stdio


def _serve(
    definition: Definition,
    stdio: Stdio,
    adapter: Callable[[Server], Adapter],
    received: bytes,
    eof: bool,
    *,
    answered: bool,
    target: str,
    config: object = None,
) -> int:
    """Run the server, and return its exit code.

    Args:
        received: what was read already; `eof` if nothing follows.
        answered: the first message has its response.
        target: see `run`.
    """
    from .core.redaction.redactor import Redactor
    from .core.redaction.secret_names import secret_variables
    from .core.wire.errors import RpcError
    from .server.server import InitialIO, Server
    from .server.serving import ServingError

    def compare() -> str:
        from .prepare import stale_warning

        return stale_warning(target)

    try:
        server = Server(definition, stdio, Redactor(secret_variables(os.environ)), adapter, config)
    except RpcError as error:  # of `--config`
        raise ServingError(error.message) from error
    return server.run(InitialIO(received, manifest_sent=answered, eof=eof, compare=compare if target else None))


def _answer_first(
    stdio: Stdio,
    result_of: Callable[[Request], str | None],
    received: bytes = b"",
    *,
    after_length: bool = False,
    member: bytes = b"result",
) -> tuple[bytes, bool, bool]:
    """Read the first message, and respond if it is a request whose result is prepared.

    Args:
        result_of: returns the result as JSON; None if the server must find out what the request is.
        received: what was read already.
        member: member of the response that gets the result.
        after_length: messages are frames after their length in four bytes; else they are lines.

    Returns:
        What was received, True at the end of the input, and True if the response was sent.
    """
    from .server.serving import encoded_id, first_frame

    eof = False
    while (payload := first_frame(received, after_length=after_length)) is None and not eof:
        data = stdio.read()
        received, eof = received + data, not data
    try:
        request = parse(received if payload is None else payload)
    except MessageError:
        return received, eof, False
    # An id that needs an encoder, or may be too long, is left to the server.
    if not isinstance(request, Request) or (id := encoded_id(request.id)) is None:
        return received, eof, False
    if (result := result_of(request)) is None:
        return received, eof, False
    value = result.encode("utf-8", "backslashreplace")
    response = b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id, member, value)
    stdio.write(len(response).to_bytes(4, "big") + response if after_length else response + b"\n")
    return received, eof, True


def _manifest_for(request: Request, prepared: str | None) -> str | None:
    """Return the prepared manifest for an `initialize` that is certainly valid; None for another request.

    Another configuration, or another version, must be validated before the response, which takes the complete
    extension.
    """
    params = request.params
    if prepared is None or request.method != gevals_spec.INITIALIZE or not isinstance(params, dict):
        return None
    known = params.keys() <= {"protocolVersion", "config"}
    if not known or params.get("protocolVersion") != gevals_spec.PROTOCOL_VERSION:
        return None
    config = params.get("config")
    if not (config is None or config == {} or _is_certainly_valid(config, prepared)):
        return None
    try:
        return _read(prepared).decode()
    except OSError:
        return None


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
