"""Start of `serve` without heavy imports: its options, the operations that are served, the first response.

`ext_sdk.prepare` writes the operations as tools of the Model Context Protocol, which are also the source for other
protocols: their names, descriptions and schemas are the same. As with the manifest, a client gets its first response
from these data, and the rest is imported while it reads.
"""

from __future__ import annotations

import os

from ext_sdk.core.gevals_spec import INVALID_PARAMS
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.json_codec import loads, quote, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from ext_sdk.core.wire.jsonrpc import Request
    from ext_sdk.operation import Operation

    from .server import Adapter, Server

# The adapter of each protocol: module and class, which is called with the server, the options and the tools.
PROTOCOLS = {
    "gassist": "ext_sdk.server.gassist:GAssistAdapter",
    "mcp": "ext_sdk.server.mcp:McpAdapter",
    "pi": "ext_sdk.server.pi:PiAdapter",
}
OPTIONS = ("--protocol", "--allow", "--deny", "--workdir", "--config")

# Effects of an operation, in the head of the prepared tools.
READ_ONLY, ADDITIVE, DESTRUCTIVE = "read-only", "additive", "destructive"

AGENT = "agent"  # what an operation needs that uses the answer of an agent


class ServingError(Exception):
    """Options of `serve` that can't be used."""


class Serving:
    """Options of `serve`.

    Attributes:
        protocol: one of PROTOCOLS.
        allow: names and patterns of operations that are served although they may destroy something.
        deny: names and patterns of operations that are not served.
        workdir: the working directory; "" if the client or the current directory decides.
        config: the configuration as JSON; "" for the defaults.
    """

    __slots__ = ("allow", "config", "deny", "protocol", "workdir")

    def __init__(
        self, protocol: str, *, allow: Iterable[str] = (), deny: Iterable[str] = (), workdir: str = "", config: str = ""
    ) -> None:
        self.protocol = protocol
        self.allow = [name for text in allow for name in map(str.strip, text.split(",")) if name]
        self.deny = [name for text in deny for name in map(str.strip, text.split(",")) if name]
        self.workdir = workdir
        self.config = config

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Serving | None:
        """Return the options on a command line; None if the complete parser must read them: for help, and errors.

        Args:
            arguments: behind the word `serve`.
        """
        values: dict[str, list[str]] = {name: [] for name in OPTIONS}
        words = iter(arguments)
        for word in words:
            name, equals, value = word.partition("=")
            value = value if equals else next(words, "")
            if name not in values or not value.strip(" ,") or value.startswith("--"):
                return None
            values[name].append(value)
        protocol, workdir, config = (next(iter(values[f"--{name}"]), "") for name in ("protocol", "workdir", "config"))
        if protocol not in PROTOCOLS or any(len(values[f"--{name}"]) > 1 for name in ("protocol", "workdir", "config")):
            return None
        if workdir and not os.path.isdir(workdir):  # noqa: PTH112
            return None
        return cls(protocol, allow=values["--allow"], deny=values["--deny"], workdir=workdir, config=config)

    def configuration(self) -> object:
        """Return the configuration; None for the defaults. Raises ServingError."""
        if not self.config:
            return None
        try:
            return loads(self.config)
        except MessageError as error:
            raise ServingError(f'--config: expected an object of JSON, as \'{{"name": "value"}}\': {error}') from error

    def adapter(self) -> Callable[[Server, Serving, Tools], Adapter]:
        """Import the adapter of the protocol, and return its class."""
        from importlib import import_module

        module, _, name = PROTOCOLS[self.protocol].partition(":")
        adapter: Callable[[Server, Serving, Tools], Adapter] = getattr(import_module(module), name)
        return adapter


class Tools:
    """Operations of an extension as tools, of which some are served.

    Args:
        content: lines of JSON: the head (see `mcp.build_tools`), then each tool.

    Attributes:
        name: name of the extension.
        version: version of the extension.
        description: description of the extension.
        lines: the tools that are served, by name: each a JSON object.
        withheld: names of operations that are only served if they are allowed.
        denied: names of operations that `--deny` excludes.
        unusable: names of operations that need what is not available here, with the reason.
        aliases: other names of operations, which are not tools.
        target: the Extension as `package.module:name`, if the tools were prepared; "" if they were built.
    """

    def __init__(self, content: bytes) -> None:
        first, *lines = content.rstrip().split(b"\n")
        head = loads(first.decode())
        assert isinstance(head, dict)
        self.head = head
        self.name, self.version, self.description = (str(head[name]) for name in ("name", "version", "description"))
        self.effects: Mapping[str, str] = head["operations"]
        self.aliases: Mapping[str, str] = head["aliases"]
        self.lines = dict(zip(self.effects, lines, strict=True))
        self.withheld: list[str] = []
        self.denied: list[str] = []
        self.unusable: dict[str, str] = {}
        self.target = ""
        self._allow: Sequence[str] = ()

    def select(self, serving: Serving) -> None:
        """Keep the tools that are served.

        An operation that may destroy something is only served if `--allow` names it, or, over G-Assist, after the user
        has confirmed each call. `--deny` counts more than `--allow`, but an exact name in `--allow` counts more than a
        pattern in `--deny`.

        Raises:
            ServingError: a pattern matches no operation, or no operation is left.
        """
        self._allow = serving.allow
        for option, patterns in (("--allow", serving.allow), ("--deny", serving.deny)):
            for pattern in patterns:
                if not any(matches(name, pattern) for name in self.effects):
                    known = suggest(pattern, self.effects)
                    if pattern in self.aliases:
                        known = f"it is another name of {self.aliases[pattern]}"
                    raise ServingError(f"{option} {pattern}: matches no operation of {self.name}; {known}")
        for name, effect in self.effects.items():
            exact = name in serving.allow and name not in serving.deny
            if not exact and any(matches(name, pattern) for pattern in serving.deny):
                self.denied.append(name)
            elif effect == DESTRUCTIVE and not any(matches(name, pattern) for pattern in serving.allow):
                self.withheld.append(name)
        confirmed = serving.protocol == "gassist"
        for name in self.denied if confirmed else (*self.withheld, *self.denied):
            del self.lines[name]
        self._leave_out_unusable()
        if not self.lines:
            raise ServingError(f"no operation is left to serve; {self.notice()}")

    def _leave_out_unusable(self) -> None:
        """Remove the tools that need what is not available: the answer of an agent, or another operation."""
        for name, need in self.head.get("needs", {}).items():
            if name in self.lines and need not in self.lines:
                self.unusable[name] = (
                    "only hosts of evals send the answer of an agent"
                    if need == AGENT
                    else f"it requires {need}, which is not served"
                )
        for name in self.unusable:
            del self.lines[name]

    def notice(self) -> str:
        """Return which operations are not served, and how to serve them; "" if all are."""
        parts = []
        if self.withheld:
            names = ", ".join(self.withheld)
            parts.append(
                f"not served without --allow, because they may destroy something: {names} "
                f"(serve one with --allow {self.withheld[0]}, all with --allow '*')"
            )
        if self.denied:
            parts.append(f"not served because of --deny: {', '.join(self.denied)}")
        if self.unusable:
            reasons = [f"{name} ({reason})" for name, reason in self.unusable.items()]
            parts.append(f"not served because they would fail: {', '.join(reasons)}")
        return "; ".join(parts)

    def check(self, operation: Operation) -> None:
        """Check that an operation that may destroy something is not served because its prepared tool is stale.

        Raises:
            RpcError: INVALID_PARAMS if `--allow` does not name it, and the prepared tool has another effect.
        """
        name = operation.name
        allowed = self.effects[name] == DESTRUCTIVE or any(matches(name, pattern) for pattern in self._allow)
        if operation.destructive and not allowed:
            text = f"{name} was not run: it may destroy something, but was prepared as {self.effects[name]}"
            raise RpcError(INVALID_PARAMS, f"{text}; {self._prepare()}, or start the server with --allow {name}")

    def _prepare(self) -> str:
        return f"run `ext-sdk prepare {self.target or 'PACKAGE.MODULE:NAME'}`"

    def unknown(self, name: str, live: Container[str], known: Iterable[str], kind: str = "tool") -> str:
        """Return why an unknown tool is refused, and the remedy.

        Args:
            live: the names in the extension, which may be newer than the prepared tools.
            known: the names that are served.
            kind: term of the protocol.
        """
        stale = f"the extension has it, but its prepared {kind}s are stale: {self._prepare()}"
        return f"unknown {kind}: {name[:LONGEST_NAME]}; {stale if name in live else suggest(name, known)}"

    def refusal(self, name: str, live: Container[str] = ()) -> str:
        """Return why a tool that is not served is refused, and the remedy; `live`: see `unknown`."""
        if name in self.withheld:
            return f"{name} is not served, because it may destroy something; start the server with --allow {name}"
        if name in self.denied:
            return f"{name} is not served, because --deny excludes it; start the server without that option"
        if name in self.unusable:
            return f"{name} is not served, because {self.unusable[name]}"
        if name in self.aliases:
            return f"unknown tool: {name}; use {self.aliases[name]}"
        return self.unknown(name, live, self.lines)


def read_tools(content: bytes, serving: Serving) -> Tools:
    """Return the tools that are served. Raises ServingError; see Tools.select."""
    tools = Tools(content)
    tools.select(serving)
    return tools


def matches(name: str, pattern: str) -> bool:
    """Return True if a name matches a pattern, in which `*` matches any characters."""
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    if not name.startswith(first) or not name.endswith(others[-1]) or len(name) < len(first) + len(others[-1]):
        return False
    at, end = len(first), len(name) - len(others[-1])
    for part in others[:-1]:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


# --- Model Context Protocol: the requests that may begin a session ---

# Revisions with a handshake, and those in which each request describes itself in `_meta`.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


def first_result(request: Request, tools: Tools) -> str | None:
    """Return the result of a valid `initialize` or `server/discover` of MCP as JSON; None for all other requests."""
    params = request.params
    if not isinstance(params, dict):
        return None
    if request.method == "initialize":
        version = params.get("protocolVersion")
        described = all(isinstance(params.get(name, {}), dict) for name in ("capabilities", "clientInfo"))
        if not isinstance(version, str) or not described:
            return None
        version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return f'{{"protocolVersion":"{version}",{tools.head["initialize"]}'
    meta = params.get("_meta")
    if request.method == "server/discover" and isinstance(meta, dict) and meta.get(VERSION_KEY) in MODERN_VERSIONS:
        return str(tools.head["discover"]) if isinstance(meta.get(CAPABILITIES_KEY), dict) else None
    return None


# --- G-Assist: the request that begins a session ---

GASSIST_VERSION = "2.0"
GASSIST_LIMIT_BYTES = 10_485_760  # of a message


def gassist_functions(extension: str, operations: Iterable[str]) -> dict[str, str]:
    """Return the operations by the names of their functions, such as `shell_write_file`.

    An engine has one table of functions for all plugins, so each name begins with that of the extension. The engine
    reserves `rise_`.
    """
    prefix = f"{extension}_".replace("-", "_")
    if prefix.lower().startswith("rise_"):
        prefix = f"ext_{prefix}"
    names: dict[str, str] = {}
    for operation in operations:
        name = prefix + operation.replace("-", "_")
        while name in names:  # a-b and a_b
            name += "_"
        names[name] = operation
    return names


def gassist_result(tools: Tools) -> str:
    """Return the result of `initialize` as JSON: the members of the specification, and those that NVIDIA's SDKs add.

    It is put together from texts: the encoder would take longer to import than all the rest.
    """
    name, version, description, protocol = map(quote, (tools.name, tools.version, tools.description, GASSIST_VERSION))
    commands = ",".join(
        f'{{"name":{quote(function)},"description":{quote(tools.head["summaries"][operation])}}}'
        for function, operation in gassist_functions(tools.name, tools.effects).items()
        if operation in tools.lines
    )
    return (
        f'{{"name":{name},"version":{version},"capabilities":["streaming","passthrough"],"description":{description},'
        f'"protocol_version":{protocol},"commands":[{commands}]}}'
    )


def first_frame(received: bytes, *, after_length: bool) -> bytes | None:
    """Return the payload of the first frame; None if more bytes are needed, b"" if these are not a frame.

    Args:
        after_length: the frame is after its length in four bytes; else it is a line.
    """
    if not after_length:
        line, found, _ = received.partition(b"\n")
        return line if found else None
    if len(received) < 4:
        return None
    length = int.from_bytes(received[:4], "big")
    if length > GASSIST_LIMIT_BYTES:
        return b""
    return received[4 : 4 + length] if len(received) >= 4 + length else None


def gassist_first_result(request: Request, tools: Tools) -> str | None:
    """Return the result of a valid `initialize` of G-Assist as JSON; None for all other requests."""
    params = {} if request.params is None else request.params
    if request.method != "initialize" or not isinstance(params, dict):
        return None
    return gassist_result(tools) if params.get("protocol_version") in (None, GASSIST_VERSION) else None


# --- Pi: the message that begins a session ---

PI_VERSION = "1.0"
# Events that an extension subscribes to: the end of the session, and that the result of a call is no longer needed.
PI_SHUTDOWN, PI_CANCEL = "session_shutdown", "tool_call_cancel"
PI_METHODS = {
    "read": ("tool", "fs"),
    "write": ("tool", "fs"),
    "exec": ("exec", "tool"),
}  # others: the capability itself


def pi_tool_names(tools: Tools) -> dict[str, str]:
    """Return the operations that are served by the names of their tools, such as `shell-run`.

    Pi has one table of tools, in which a tool with the name of a built-in one, such as `read`, would replace it.
    """
    return {f"{tools.name}-{operation}": operation for operation in tools.lines}


def pi_positions(tool: str) -> list[int]:
    """Return where a line of the prepared tools has what `register` copies, in bytes: start and end of two parts.

    The first is the title and the description, the second the schema. The head of the tools has these positions,
    because `serve` would have to parse all schemas to find them, for a quarter of the time until its first message.
    """
    members = scan(tool).members
    title, description, schema = (members[name] for name in ("title", "description", "inputSchema"))
    return [len(tool[:at].encode()) for at in (title.start, description.end, schema.start, schema.end)]


def pi_register(tools: Tools) -> bytes:
    """Return the message `register`, as a line. Parts of the prepared tools are copied, so that nothing is parsed."""
    lines = []
    for name, operation in pi_tool_names(tools).items():
        tool, (title, described, schema, end) = tools.lines[operation], tools.head["pi"][operation]
        copied = tool[title:described], tool[schema:end]
        lines.append(b'{"name":%b,"label":%b,"parameters":%b}' % (quote(name).encode(), *copied))
    capabilities = [str(name) for name in tools.head.get("host_capabilities", ())]
    parts = [f'"name":{quote(tools.name)},"version":{quote(tools.version)},"api_version":"{PI_VERSION}"']
    parts.append(f'"capabilities":{_pi_list(capabilities)}')
    if capabilities:
        required = [
            f'{{"capability":{quote(name)},"methods":{_pi_list(PI_METHODS.get(name, (name,)))}}}'
            for name in capabilities
        ]
        manifest = f'{{"schema":"pi.ext.cap.v1","capabilities":[{",".join(required)}]}}'
        parts.append(f'"capability_manifest":{manifest}')
    command = f"Run an operation: /{tools.name} OPERATION {{ARGUMENTS AS JSON}}; without arguments, list the operations"
    before = f'{{"id":"register","version":"{PI_VERSION}","type":"register","payload":{{{",".join(parts)},"tools":['
    after = (
        f'],"slash_commands":[{{"name":{quote(tools.name)},"description":{quote(command)}}}],'
        f'"event_hooks":["{PI_SHUTDOWN}","{PI_CANCEL}"]}}}}\n'
    )
    return before.encode() + b",".join(lines) + after.encode()


def _pi_list(names: Iterable[str]) -> str:
    return f"[{','.join(map(quote, names))}]"


# --- All protocols ---


def encoded_id(id: object) -> bytes | None:
    """Return the id of a request as JSON; None for an id that needs an encoder, or may be too long.

    Hosts count, or use short names.
    """
    if isinstance(id, int) and -(2**63) <= id < 2**63:
        return b"%d" % id
    if isinstance(id, str) and len(id) <= 100:
        return quote(id).encode("utf-8", "backslashreplace")
    return None
