"""`ext-recorder run`: record a command with everything that it starts, or replay it."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import (
    BIND,
    EXACT,
    MASK,
    MATCH_ON,
    ORDERS,
    REDACTING,
    REPEAT,
    SPEED,
    behind,
    bindings,
    ignore,
    redaction,
    value_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values

MODE = Option(
    "mode",
    "once: replay the recording if it exists, otherwise record it; none: replay only; new_episodes: replay, and add "
    "what the recording does not have; all: record again. The old recording stays until the new one is complete.",
    "MODE",
    choices=("once", "none", "new_episodes", "all"),
    default="once",
)
WRAP = Option(
    "wrap",
    "Configuration file in COMMAND whose children on stdio are recorded, too: an Eval or Agent file of mcpchecker, or "
    "one with mcpServers or servers. Repeatable. Default on replay: the recorded files.",
    "FILE",
    many=True,
    key=False,
)
REAL = Option(
    "real", "Child that runs on replay, with its HTTP requests answered from the recording. Repeatable.", "NAME",
    many=True,
)  # fmt: skip
ONLY = Option(
    "only", "Child to record; the others run without the recorder. Repeatable. Default: all.", "NAME", many=True
)
FILES = Option(
    "files",
    "Child whose changed files are recorded, too, so that its replay changes them again. Repeatable. ACP agents of "
    "--wrap are included, and extensions if there are none.",
    "NAME",
    many=True,
)
ORDER = Option(
    "order",
    "any: children accept requests in any order; strict: requests must arrive in the recorded order.",
    "ORDER",
    choices=ORDERS,
    default="any",
)
LEARN = Option(
    "learn",
    "Replay, and write rules into FOLDER/recording.yaml for requests that differ only in what looks volatile: dates, "
    "UUIDs, counters, paths, ports.",
    key=False,
)
PASS_THROUGH = Option(
    "pass-through",
    "Server whose traffic is forwarded unrecorded, as bytes: HOST with its subdomains, HOST:PORT, *.SUFFIX. For HTTP/2 "
    "without HTTP/1.1 (gRPC), and programs with certificates of their own. Repeatable. Default on replay: as recorded.",
    "HOST",
    many=True,
)
IGNORE = ignore("JSON pointer to a value in messages of children, such as /params/args/seed, or in HTTP requests")
# Options of `replay` and `record` for each child.
FOR_CHILDREN = (ORDER, IGNORE, MASK, REPEAT, SPEED, BIND, *REDACTING)


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    from ext_recorder.http.request_matching import WORDS
    from ext_recorder.messages.comparison_rules import AGENT_FOLDERS, OWN_PORTS
    from ext_recorder.messages.path_bindings import RUN_CWD
    from ext_recorder.run.children import ChildOptions
    from ext_recorder.run.session import RunOptions
    from ext_recorder.run.session import run as run_command

    command = behind(values, "run FOLDER", "the command to run")
    rules = redaction(values)
    if rules:
        rules.require()
    of_messages = tuple(word for word in values["match-on"] if word not in WORDS or word in {"method", "params"})
    children = {option.name: values[option.name] for option in FOR_CHILDREN} | {"match-on": of_messages}
    children["mask"] = (*children["mask"], OWN_PORTS)
    options = RunOptions(
        mode=value_of(values, "mode"),
        bind=bindings(values),
        redact=rules,
        ignore=values["ignore"],
        mask=values["mask"] if values["exact"] else (*values["mask"], AGENT_FOLDERS),
        match_on=values["match-on"],
        exact=bool(values["exact"]),
        learn=bool(values["learn"]),
        pass_through=values["pass-through"],
    )
    children["bind"] = (*(f"{RUN_CWD}?={folder}" for folder in RunOptions().bindings.values()), *children["bind"])
    options = options._replace(
        children=ChildOptions(values["wrap"], values["real"], values["only"], children, values["files"])
    )
    run_command(value_of(values, "FOLDER"), command, options)


COMMAND = Command(
    "run",
    "Run a command, and record it with everything that it starts; or replay it.",
    """
Runs COMMAND in this terminal and records in FOLDER the HTTP traffic of all programs that it starts, in any language. If
FOLDER exists, COMMAND runs with the recorded responses, and nothing reaches the network. The exit code is that of
COMMAND; it is 3 if a replay differed from the recording, or if COMMAND succeeded and could not be recorded. If COMMAND
is interrupted, FOLDER stays as it was, and `ext-recorder recover FOLDER.partial` makes a recording of what there is.

    ext-recorder run recordings/create-pod -- some-eval-host eval.yaml
    ext-recorder run --mode none recordings/create-pod -- some-eval-host eval.yaml

With --wrap, the children that COMMAND starts on standard input and output are recorded as well, and on replay their
cassettes replace them. FILE is a configuration file in COMMAND: an Eval or Agent file of mcpchecker with the files that
it names, or a list of MCP servers as Claude, Cursor and VS Code have it. FILE is not changed: COMMAND gets a copy.

    ext-recorder run --wrap eval.yaml recordings/create-pod -- mcpchecker check eval.yaml
    ext-recorder run --wrap mcp.json recordings/ask -- claude -p "List my pods" --mcp-config=mcp.json

Each start of a child has a cassette of its own in FOLDER/children. A replayed child takes the next one of its name and
command, and responds to requests in any order. Executables that `ext-recorder shim` has written take part, too.

To work on one child, replay the others. With --real, this child runs, and its HTTP requests are answered from the
recording. With --only, it is the only one that is recorded.

    ext-recorder run --real kubernetes recordings/create-pod -- mcpchecker check eval.yaml
    ext-recorder run --wrap eval.yaml --only kubernetes recordings/kubernetes -- mcpchecker check eval.yaml

An ACP agent that edits files is replayed in one of two ways: with --real, it runs and gets the recorded responses of
its model; otherwise its recorded changes of files are made again, so that checks see the same files. They are next to
its cassette, as a patch. Other agents run on replay; for them, extensions change the files of their tasks again.

What is known to differ in each run need not match, such as session ids in requests to models: see
docs/reference/http-apis.md, and --exact. For other differences, --learn proposes rules. It answers a request that
differs only in dates, UUIDs, counters, paths, ports and random texts by the response of the closest recorded one,
reports it, and exits with 3. The rules are then in recording.yaml, each with its reason. Review them: they apply to
each replay. A rule `path` also puts the live path into responses, so that an agent works in its own folder.

    ext-recorder run --learn recordings/create-pod -- some-eval-host eval.yaml

--ignore, --mask and --match-on apply to the messages of children and to HTTP requests. Ports in URLs of loopback may
differ in messages of children, because hosts start servers of their own at any free port. In HTTP requests, the names
of the temporary folders may differ that mcpchecker makes for agents. Secrets are replaced before anything is written to
disk; --redact and --redact-except adjust this.
""",
    run,
    arguments=("FOLDER",),
    tail="COMMAND",
    options=(
        MODE,
        LEARN,
        WRAP,
        REAL,
        ONLY,
        FILES,
        PASS_THROUGH,
        BIND,
        *REDACTING,
        ORDER,
        IGNORE,
        MASK,
        MATCH_ON,
        EXACT,
        REPEAT,
        SPEED,
    ),
)
COMMANDS = (COMMAND,)
