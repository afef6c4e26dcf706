"""Table of the page: a row for each call (request and responses), notification, stderr line, mark and HTTP interaction.

The table contains which message belongs to which call, and, of a recorded run, the phases of the tasks; the page only
draws it.
"""

from __future__ import annotations

import re
from array import array
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.tools.endpoints import LONGEST_RESULT, parts_of, summary, text_of
from ext_recorder.tools.timeline import content_of
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.tools.endpoints import Part
    from ext_recorder.tools.timeline import Entry, Timeline

    from .bodies import Bodies

# More rows than this are counted, but not shown: `trim` makes a shorter cassette.
MOST_ROWS = 200_000

_COLUMNS = (
    "source",  # the file that has it, and with it the lane
    "kind",  # call, notification, response (to no request), stderr, junk, other, mark, http; phase, task
    "status",  # ok, error, open, cancelled; "" if the row cannot fail
    "outcome",  # the status in detail: error -32601, 404 Not Found
    "stream",  # the side that begins it: in (host), out (child), err; "" if neither does
    "conn",
    "time",  # µs since the start
    "took",  # µs until the last response, or the cancellation; -1 without an end
    "method",
    "subject",
    "id",
    "parent",  # the row of the call to which it belongs; -1 if none
    "number",  # of the host's requests, as `trim --calls` counts them; of the interactions; 0 of others
    "line",
    "request",  # the body of the request, or of the only message; -1 if none
    "response",  # the body of the last response; -1 if none
    "says",  # the request in a few words; "" if the page shows the beginning of its body
    "answers",  # the response likewise
    "chat",  # the body with the conversation; -1 if none
    "client",  # name of the child that has sent an HTTP request; "" if it is not known
)
_TEXTS = frozenset(("kind", "status", "outcome", "stream", "method", "subject", "id", "says", "answers", "client"))
_NO_ROW = frozenset(("parent", "request", "response", "chat"))
_MICRO = 1e6
MOST_OPEN = 64  # overlapping calls above which the one around a row is not searched

# What people look for in a message, by protocol and method: the first pointer that exists.
_SAYS = {
    ("gevals", "execute"): ("/params/args",),
    ("acp", "session/prompt"): ("/params/prompt",),
    ("acp", "session/update"): ("/params/update/content", "/params/update/title", "/params/update/entries"),
    ("acp", "session/request_permission"): ("/params/toolCall/title",),
    ("mcp", "tools/call"): ("/params/arguments",),
    ("mcp", "sampling/createMessage"): ("/params/messages",),
}
_ANSWERS = {
    ("gevals", "execute"): ("/result/message", "/result/error"),
    ("acp", "session/prompt"): ("/result/stopReason",),
    ("acp", "session/request_permission"): ("/result/outcome",),
    ("mcp", "tools/call"): ("/result/content",),
}
_SUBJECTS = {("acp", "session/update"): "/params/update/sessionUpdate"}
_CHUNKS = frozenset(("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"))
AGENT = "agent"  # the phase between setup and verify


_STEP = (
    "/params/context/workdir",
    "/params/context/phase",
    "/params/context/agent/prompt",
    "/params/context/agent/output",
)


class Turn:
    """One turn of an agent.

    Attributes:
        prompt: parts of the prompt.
        reply: texts, thoughts and calls of tools, from its updates.
        kind: of the last update.
        row: of the first of those that are pieces of one text; -1 before it is appended.
    """

    def __init__(self, prompt: list[Part]) -> None:
        self.prompt = prompt
        self.reply: list[Part] = []
        self.kind = ""
        self.row = -1

    def add(self, kind: str, update: object) -> None:
        """Add an update: a piece of a text continues the last part if that is of the same kind."""
        if not isinstance(update, dict):
            return
        if kind in _CHUNKS:
            name = "thinking" if "thought" in kind else "text"
            for part in parts_of(update.get("content")):
                text, last = part.get("text"), self.reply[-1] if self.reply else {}
                if isinstance(text, str) and name in last:
                    last[name] = f"{last[name]}{text}"
                else:
                    self.reply.append({name: text} if isinstance(text, str) else part)
        elif kind == "tool_call":
            given = update.get("rawInput")
            self.reply.append({"call": str(update.get("title") or "tool"), "input": {} if given is None else given})
        elif kind == "tool_call_update" and update.get("status") in {"completed", "failed"}:
            result = summary(parts_of(update.get("content")), LONGEST_RESULT) or str(update["status"])
            self.reply.append({"result": result} | ({"failed": True} if update["status"] == "failed" else {}))


class Step(NamedTuple):
    """Call of an operation of an extension, which is a step of a task.

    Attributes:
        source: number of the cassette.
        task: folder of the task. Each cassette has placeholders of its own for folders.
        phase: setup, verify or cleanup.
        prompt, output: of the agent, which only steps of `verify` have.
    """

    row: int
    source: int
    task: str
    phase: str
    prompt: str
    output: str


SETUP, VERIFY, CLEANUP = "setup", "verify", "cleanup"
BETWEEN = "cleanup, setup"  # steps of one extension between two tasks, if the host does not name the phase
_PLACEHOLDER = re.compile(r"/tmp/[a-z]+(?:-\d+)?\b")  # noqa: S108


def tasks_of(steps: Iterable[Step]) -> list[list[Step]]:
    """Return the steps of each task, with their phases.

    Some hosts do not name the phase (mcpchecker sends ""). Steps of several extensions belong to one task if their
    agent had the same prompt.

    Args:
        steps: sorted by time.
    """
    runs: list[list[Step]] = []
    latest: dict[tuple[int, str], list[Step]] = {}
    for step in steps:
        before = latest.get((step.source, step.task), [])
        phases = {each.phase for each in before}
        phase = step.phase or (VERIFY if step.prompt or step.output else CLEANUP if VERIFY in phases else SETUP)
        is_next = VERIFY in phases and (phase == SETUP or (phase == VERIFY and before[-1].phase != VERIFY))
        if is_next and phase == VERIFY and not step.phase:
            for number, each in enumerate(before):
                before[number] = each._replace(phase=BETWEEN) if each.phase == CLEANUP else each
        if not before or is_next:
            before = latest[step.source, step.task] = []
            runs.append(before)
        before.append(step._replace(phase=phase))
    return _joined(runs)


def _joined(runs: Iterable[list[Step]]) -> list[list[Step]]:
    """Join the runs of one task in several extensions; those without a prompt stay as they are."""
    tasks: list[list[Step]] = []
    numbers: dict[tuple[int, str], int] = {}  # of the runs with one prompt, by extension
    known: dict[tuple[str, int], list[Step]] = {}
    rest = []
    for run in runs:
        prompt = next((_PLACEHOLDER.sub("", step.prompt) for step in run if step.prompt), "")
        if not prompt:
            rest.append(run)
            continue
        number = numbers[run[0].source, prompt] = numbers.get((run[0].source, prompt), -1) + 1
        if (prompt, number) in known:
            known[prompt, number].extend(run)
        else:
            known[prompt, number] = run
            tasks.append(run)
    return [*tasks, *rest]


class Rows:
    """Columns of the table, filled entry by entry. Call `begin` before the entries of a cassette.

    Attributes:
        left_out: number of entries that exceeded MOST_ROWS.
    """

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._columns = {name: array("q") for name in _COLUMNS}
        self._source = 0
        self._texts: dict[str, int] = {"": 0}
        self._further: dict[int, list[int]] = {}  # bodies of responses before the last one
        self._steps: list[Step] = []
        self.left_out = 0

    def begin(self, timeline: Timeline, source: int, started: float = 0.0) -> None:
        """Continue with the entries of another cassette.

        Args:
            source: its number.
            started: time of the recording at which its clock begins, in seconds.
        """
        self._timeline = timeline
        self._dialect = timeline.dialect
        self._source = source
        self._started = started
        self._calls: dict[int, int] = {}  # number of an open call of the timeline to its row
        self._open: dict[int, dict[int, None]] = {}  # rows of the host's open calls, by connection
        self._names: dict[tuple[int, str], int] = {}  # names in requests that the host generated, to their rows
        self._turns: dict[int, Turn] = {}  # of agents, by the row of the prompt
        self._methods: dict[int, str] = {}  # of calls without their last response, by row
        self._requests = 0

    def __len__(self) -> int:
        return len(self._columns["kind"])

    def add(self, entry: Entry, line: int) -> None:
        """Append an entry, or complete the row of the call that it answers."""
        if entry.call is not None and entry.call in self._calls and entry.kind != "request":
            self._answer(entry, line, self._calls[entry.call])
        elif len(self) >= MOST_ROWS:
            self.left_out += 1
        elif entry.message is not None:
            self._message(entry, entry.message, line)
        else:  # a stderr line, a mark, or bytes that are not a message
            # An empty line on standard error, and one that is not UTF-8, is a line.
            kind = "stderr" if entry.stream == "err" and entry.kind == "junk" else entry.kind
            mark = not entry.payload and kind not in {"stderr", "junk", "other"}
            text = entry.text if kind in {"stderr", "junk", "other"} else entry.payload  # without colors
            wrong = kind == "junk" or (kind == "exit" and entry.label != "exit 0")
            self.append(
                "mark" if mark else kind,
                self._started + entry.time,
                None,
                status="error" if wrong else "",
                stream=entry.stream,
                conn=entry.conn,
                method="" if kind == "stderr" else entry.label,
                line=line,
                request=-1 if mark else self._bodies.add_raw(text, line=line),
            )

    def append(self, kind: str, time: float, took: float | None, /, **values: int | str) -> int:
        """Append a row. Return its number. Columns that are not named are empty."""
        values = {"source": self._source, **values}
        values |= {"kind": kind, "time": round(time * _MICRO), "took": -1 if took is None else round(took * _MICRO)}
        for name, column in self._columns.items():
            value = values.get(name, -1 if name in _NO_ROW else 0)
            column.append(self._text(value) if isinstance(value, str) else value)
        return len(self) - 1

    def describe(self, row: int, **values: str) -> None:
        """Set texts of a row."""
        for name, value in values.items():
            self._set(row, name, value)

    def calls(self) -> Iterator[tuple[int, str, float, float]]:
        """Yield the row, id, start and end of each of the host's calls; the end is inf without an answer."""
        columns = self._columns
        texts = list(self._texts)
        kind, stream = self._texts.get("call", -1), self._texts.get("in", -1)
        for row in range(len(self)):
            if columns["kind"][row] == kind and columns["stream"][row] == stream:
                start, took = columns["time"][row] / _MICRO, columns["took"][row]
                yield row, texts[columns["id"][row]], start, float("inf") if took < 0 else start + took / _MICRO

    # --- Phases of a run ----------------------------------------------------------------------------------------------

    def add_phases(self, source: int) -> None:
        """Append a row for each phase of each task, and one for each of several tasks.

        Args:
            source: number of the host.
        """
        self._source = source
        ordered = sorted(self._steps, key=lambda step: self._columns["time"][step.row])
        tasks = self._adopted(tasks_of(ordered))
        for number, steps in enumerate(tasks, 1):
            phases = [list(group) for _, group in groupby(steps, lambda step: step.phase)]
            task = -1
            if len(tasks) > 1:
                said = next((step.prompt for step in steps if step.prompt), "")
                task = self._phase("task", f"task {number}", steps, self._span(steps), says=summary([{"text": said}]))
            for phase, following in pairwise([*phases, []]):
                row = self._phase("phase", phase[0].phase, phase, self._span(phase), parent=task)
                for step in phase:
                    self._columns["parent"][step.row] = row
                if following and following[0].phase == VERIFY and phase[0].phase != VERIFY:
                    span, step = (self._span(phase)[1], self._span(following)[0]), following[0]
                    said, done = (summary([{"text": text}]) for text in (step.prompt, step.output))
                    self._phase("phase", AGENT, [], span, parent=task, says=said, done=done)

    def _adopted(self, tasks: Sequence[list[Step]]) -> list[list[Step]]:
        """Return tasks in the order of time, and steps of extensions without a prompt as parts of other tasks.

        They belong to the task during which they were called, or that follows a setup, or that precedes a cleanup.
        """
        whole = [steps for steps in tasks if any(step.prompt for step in steps)]
        for steps in tasks:
            if any(steps is each for each in whole):
                continue
            start, end = self._span(steps)
            spans = [(self._span(each), each) for each in whole if any(step.prompt for step in each)]
            owners = [each for (first, last), each in spans if start <= last and end >= first]
            if not owners and {step.phase for step in steps} == {SETUP}:
                owners = [each for (first, _), each in sorted(spans, key=lambda item: item[0]) if first >= end][:1]
            elif not owners and {step.phase for step in steps} == {CLEANUP}:
                owners = [each for (_, last), each in sorted(spans, key=lambda item: item[0]) if last <= start][-1:]
            if len(owners) == 1:
                owners[0].extend(steps)
            else:
                whole.append(steps)
        time = self._columns["time"]
        for steps in whole:
            steps.sort(key=lambda step: time[step.row])
        return sorted(whole, key=lambda steps: time[steps[0].row])

    def _span(self, steps: Sequence[Step]) -> tuple[int, int]:
        columns = self._columns
        ends = [columns["time"][step.row] + max(0, columns["took"][step.row]) for step in steps]
        return min(columns["time"][step.row] for step in steps), max(ends)

    def _phase(
        self,
        kind: str,
        name: str,
        steps: Sequence[Step],
        span: tuple[int, int],
        *,
        parent: int = -1,
        says: str = "",
        done: str = "",
    ) -> int:
        ok, status = self._text("ok"), self._columns["status"]
        passed = sum(status[step.row] == ok for step in steps)
        whole = passed == len(steps)
        outcome = "ok" if whole else f"{len(steps) - passed} of {len(steps)} failed"
        return self.append(
            kind,
            span[0] / _MICRO,
            (span[1] - span[0]) / _MICRO,
            status=("ok" if whole else "error") if steps else "",
            outcome=outcome if steps else "",
            method=name,
            parent=parent,
            says=says,
            answers=done,
        )

    def totals(self) -> tuple[int, int]:
        """Return the number of steps, and of those that failed."""
        ok = self._text("ok")
        return len(self._steps), sum(self._columns["status"][step.row] != ok for step in self._steps)

    def nest(self, lanes: Sequence[int], names: Sequence[str]) -> None:
        """Put each row without a parent below the phase or call during which it happened, if there is only one.

        Args:
            lanes: lane of each source. A call is not a parent of rows of its own lane.
            names: of the lanes. A request whose client is known belongs to a call of that lane.
        """
        columns = self._columns
        kinds, time, took = columns["kind"], columns["time"], columns["took"]
        around = {self._texts.get("phase", -1), self._texts.get("task", -1)}
        call, open_, host = self._texts.get("call", -1), self._texts.get("open", -1), self._texts.get("in", -1)
        clients = {self._texts[name]: lane for lane, name in enumerate(names) if name in self._texts}
        ends = [
            start + length if length >= 0 else (1 << 62) if columns["status"][row] == open_ else start
            for row, (start, length) in enumerate(zip(time, took, strict=True))
        ]
        order = sorted(range(len(self)), key=lambda row: (time[row], -ends[row], kinds[row] not in around, row))
        active: list[int] = []
        for row in order:
            active = [span for span in active if ends[span] >= time[row]]
            if columns["parent"][row] < 0 and kinds[row] not in around and len(active) <= MOST_OPEN:
                lane = lanes[columns["source"][row]]
                found = [
                    span
                    for span in active
                    if ends[span] >= ends[row] and (kinds[span] in around or lanes[columns["source"][span]] != lane)
                ]
                client = clients.get(columns["client"][row])
                own = [span for span in found if lanes[columns["source"][span]] == client]
                if own or not columns["client"][row]:
                    columns["parent"][row] = _innermost(own or found, time, ends)
                else:
                    columns["parent"][row] = _innermost([span for span in found if kinds[span] in around], time, ends)
            if kinds[row] in around or (kinds[row] == call and columns["stream"][row] == host):
                active.append(row)

    def data(self) -> dict[str, object]:
        """Return the table as JSON values and arrays."""
        return {"texts": list(self._texts), "further": self._further, **self._columns}

    # --- One entry ----------------------------------------------------------------------------------------------------

    def _message(self, entry: Entry, message: ClassifiedMessage, line: int) -> None:
        host = entry.stream == "in"
        kind = "call" if entry.kind == "request" else "notification" if entry.kind == "notification" else "response"
        failed = entry.kind in {"error", "failure"}
        self._requests += kind == "call" and host
        about, parent = (self._dialect.name, message.method), self._parent(entry, message)
        says = self._shown(message, _SAYS.get(about, ()))
        turn = self._turns.get(parent)
        if turn is not None and kind == "notification":
            parent = self._continue(turn, message, parent, entry.time)
        row = self.append(
            kind,
            self._started + entry.time,
            None,
            status="open" if kind == "call" else "error" if failed else "",
            outcome="no answer" if kind == "call" else _failure(entry) if failed else "",
            stream=entry.stream,
            conn=entry.conn,
            method=message.method or ("answer to nothing" if kind == "response" else ""),
            subject=self._dialect.about(message) or self._shown(message, _SUBJECTS.get(about, ())),
            id=message.id,
            parent=parent,
            number=self._requests if kind == "call" and host else 0,
            line=line,
            request=self._bodies.add(entry.payload, content=content_of(message), line=line),
            says=says,
        )
        if turn is not None and turn.row < 0 and kind == "notification":
            turn.row = row
        if about == ("acp", "session/prompt") and kind == "call":
            self._turns[row] = Turn(parts_of(message.at("/params/prompt")))
        if about == ("gevals", "execute") and kind == "call":
            found = [message.at(pointer) for pointer in _STEP]
            self._steps.append(Step(row, self._source, *(each if isinstance(each, str) else "" for each in found)))
        if kind == "call" and entry.call is not None:
            self._calls[entry.call] = row
            self._methods[row] = message.method
            if host:
                self._open.setdefault(entry.conn, {})[row] = None
                for name in self._values(message, self._dialect.client_generated):
                    self._names[entry.conn, name] = row
        elif "cancel" in message.method.lower() and (call := self._referred(entry, message)) is not None:
            self._set(call, "status", "cancelled")
            self._set(call, "outcome", "cancelled")
            self._columns["took"][call] = self._columns["time"][row] - self._columns["time"][call]

    def _answer(self, entry: Entry, line: int, row: int) -> None:
        columns = self._columns
        if columns["response"][row] >= 0:
            self._further.setdefault(row, []).append(columns["response"][row])
        content = content_of(entry.message) if entry.message else ("", 0, 0)
        columns["response"][row] = self._bodies.add(entry.payload, content=content, line=line)
        columns["took"][row] = round((entry.took or 0.0) * _MICRO)
        self._summarize(entry, row)
        if entry.last and entry.call is not None:
            del self._calls[entry.call]
            del self._methods[row]
            self._open.get(columns["conn"][row], {}).pop(row, None)
            if columns["status"][row] != self._text("cancelled"):
                failed = entry.kind != "response"
                self._set(row, "status", "error" if failed else "ok")
                self._set(row, "outcome", _failure(entry) if failed else "ok")

    def _summarize(self, entry: Entry, row: int) -> None:
        """Set what a response says in a few words, and the conversation of an agent's turn."""
        message = entry.message
        if message is None:
            return
        about = (self._dialect.name, self._methods.get(row, ""))
        self._set(row, "answers", self._shown(message, ("/error/message", *_ANSWERS.get(about, ()))))
        turn = self._turns.pop(row, None)
        if turn is not None:
            if texts := [part for part in turn.reply if "text" in part]:
                self._set(row, "answers", summary(texts[-1:]))
            stop = message.at("/result/stopReason")
            chat = {"messages": [{"role": "user", "parts": turn.prompt}], "reply": turn.reply}
            self.add_chat(row, chat | {"stop": stop if isinstance(stop, str) else ""})

    def add_chat(self, row: int, chat: Mapping[str, object]) -> None:
        """Add the conversation of a row."""
        text = dumps(dict(chat))
        self._columns["chat"][row] = self._bodies.add(text, content=("chat", 0, len(text)))

    def _continue(self, turn: Turn, message: ClassifiedMessage, parent: int, time: float) -> int:
        """Add an update to the turn of an agent. Return its parent: for a piece of a text, the row of the first one."""
        kind, update = message.at("/params/update/sessionUpdate"), message.at("/params/update")
        if kind == turn.kind and kind in _CHUNKS and turn.row >= 0:
            turn.add(kind, update)
            self._set(turn.row, "says", summary(turn.reply[-1:]))
            columns = self._columns
            columns["took"][turn.row] = round((self._started + time) * _MICRO) - columns["time"][turn.row]
            return turn.row
        turn.kind, turn.row = (kind if isinstance(kind, str) else ""), -1
        turn.add(turn.kind, update)
        return parent

    def _shown(self, message: ClassifiedMessage, pointers: str | tuple[str, ...]) -> str:
        """Return the first value that a message has at these pointers, as text on one line."""
        for pointer in (pointers,) if isinstance(pointers, str) else pointers:
            value = message.at(pointer)
            if value is not MISSING and value not in ("", None, [], {}):
                return text_of(value)
        return ""

    def _parent(self, entry: Entry, message: ClassifiedMessage) -> int:
        """Return the row of the call that a message belongs to; -1 if it is not known.

        A message of the child belongs to the call whose id or name it repeats, else to the only one that is open.
        """
        if (call := self._referred(entry, message)) is not None:
            return call
        if entry.stream != "out" or entry.kind not in {"request", "notification"}:
            return -1
        for name in self._values(message, self._dialect.echoed_names):
            if (row := self._names.get((entry.conn, name))) is not None:
                return row
        opened = self._open.get(entry.conn, {})
        return next(iter(opened)) if len(opened) == 1 else -1

    def _referred(self, entry: Entry, message: ClassifiedMessage) -> int | None:
        """Return the row of the open call whose id a message names; None if it names none."""
        other = "in" if entry.stream == "out" else "out"
        for table, stream in ((self._dialect.references, entry.stream), (self._dialect.mentions, other)):
            for pointer in pointers_of(table, message.method):
                value = message.at(pointer)
                if value is not MISSING and isinstance(value, (str, int, float)):
                    call = self._timeline.open_call(stream, entry.conn, id_key(value, dumps(value)))
                    if call is not None and call in self._calls:
                        return self._calls[call]
        return None

    def _values(self, message: ClassifiedMessage, table: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        for pointer in pointers_of(table, message.method):
            value = message.at(pointer)
            if isinstance(value, (str, int, float)):
                yield dumps(value)

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _set(self, row: int, name: str, text: str) -> None:
        self._columns[name][row] = self._text(text)


def _innermost(spans: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> int:
    """Return the last of these spans that is within all previous ones and around all following ones; -1 if none is."""

    def within(inner: int, outer: int) -> bool:
        return starts[outer] <= starts[inner] and ends[inner] <= ends[outer]

    found = -1
    for place, span in enumerate(spans):
        if all(within(span, outer) for outer in spans[:place]) and all(
            within(rest, span) for rest in spans[place + 1 :]
        ):
            found = span
    return found


def _failure(entry: Entry) -> str:
    """Return the outcome of an error: `error -32601`, or `failed` if the protocol reports it in a result."""
    return entry.text.partition(":")[0] if entry.kind == "error" else "failed"
