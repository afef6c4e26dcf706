"""`ext-recorder replay`: replay a cassette in place of the recorded child.

This needs nothing of the recorded extension, and nothing that takes long to import: the first response is written some
30 ms after the start, for a cassette of any length.
"""

from __future__ import annotations

import os
import sys

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.errors import RecorderError, UsageError
from ext_recorder.messages.matcher import MATCH_ON, Matcher
from ext_recorder.messages.open_calls import IdMap
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.messages.provenance import check, headline
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import signal_number
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.stdio import claim_standard_files
from ext_sdk.core.wire.framing import FRAMINGS

from .actions import ActionBuffer
from .event_loop import EXIT_CANNOT_PLAY, play
from .request_matcher import LenientRequestMatcher, RequestMatcher
from .response_writer import LenientResponseWriter, ResponseWriter
from .strict import StrictPlayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_recorder.cassette.header import Header
    from ext_recorder.messages.provenance import Live
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.posix.output import OutputSink

    from .actions import Output
    from .alternatives import Alternatives
    from .player import Player
    from .report import Report

ORDERS = ("strict", "any")
# Speeds: without the pauses of the recording, but with responses and notifications in separate writes, see
# `event_loop`; and as fast as possible, with all output that is released at once in one write.
PROMPT, MAX = 0.0, float("inf")


class Options:
    """Options of a replay.

    Attributes:
        order: "strict" (the host repeats its messages in their order) or "any".
        ignore: values that need not match, see `comparison_rules.IgnoredPlaces`.
        mask: parts of texts that need not match, see `comparison_rules.Mask`.
        match_on: what must match: "method", "params" or JSON pointers.
        max_age: age at which a cassette is refused, see `cassette.age`; "" for no limit.
        bind: live values of bindings, by name.
        faults: fault rules, see `faults.parse_fault_rules`.
        seed: of their random choices.
        redact: redaction of live messages before they are compared; None: the default redaction of a recorder.
        repeat: requests that the host may send more often than recorded: "all", methods, or "METHOD SUBJECT".
        report: file of the report, see `report`; "" for none.
        speed: factor of the recorded pace (2.0 is twice as fast), PROMPT or MAX.
        live: the command that the host starts, which must be the recorded one; None for any command.
        quiet: do not print the line on standard error about the cassette.
        alternatives: other sessions of the same command, of which this one may turn out to be one; for order "any".
    """

    __slots__ = (
        "alternatives", "bind", "faults", "ignore", "live", "mask", "match_on", "max_age", "order", "quiet", "redact",
        "repeat", "report", "seed", "speed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        order: str = "strict",
        ignore: tuple[str, ...] = (),
        mask: tuple[str, ...] = (),
        match_on: tuple[str, ...] = MATCH_ON,
        max_age: str = "",
        bind: Mapping[str, str] | None = None,
        redact: Redaction | None = None,
        repeat: tuple[str, ...] = (),
        report: str = "",
        speed: float = PROMPT,
        faults: tuple[str, ...] = (),
        seed: str = "",
        live: Live | None = None,
        quiet: bool = False,
        alternatives: Alternatives | None = None,
    ) -> None:
        self.order = order
        self.ignore = ignore
        self.mask = mask
        self.match_on = match_on
        self.max_age = max_age
        self.bind = bind or {}
        self.redact = redact
        self.repeat = repeat
        self.report = report
        self.speed = speed
        self.faults = faults
        self.seed = seed
        self.live = live
        self.quiet = quiet
        self.alternatives = alternatives


def run_replay(path: str, options: Options | None = None) -> int:
    """Replay the recorded child on this process' stdin, stdout and stderr.

    Returns:
        The recorded exit code; EXIT_DIFFERS if the session differs; EXIT_CANNOT_PLAY. If a signal ended the recorded
        child, the same signal ends this process, and nothing is returned.
    """
    claim_standard_files()
    options = options or Options()
    outlets: dict[Output, OutputSink] = {"out": host_outlet(1), "err": host_outlet(2)}
    try:
        if options.alternatives and options.order == "any" and not options.faults:
            status = _run_one_of(path, options, options.alternatives, outlets)
            return status if isinstance(status, int) else die(status)
        with Reader(path) as reader:
            actions = make_action_buffer(reader.header, options)
            player = make_player(reader, actions, options)
            player.on_host_data = actions.on_host_data
            introduce(path, reader.header, options, outlets["err"])
            report = reporting(options.report, path, player)
            status = play(player, actions, outlets, options.speed, report.end if report else None)
            for rule in actions.unused_rules:
                write_message(outlets["err"], f"--fault {rule} matched no message")
            for what in unknown_repeats(reader, options.repeat):
                write_message(outlets["err"], f"--repeat {what}: {path} has no such message of the host")
    except RecorderError as error:
        write_message(outlets["err"], str(error))
        return EXIT_CANNOT_PLAY
    return status if isinstance(status, int) else die(status)


def _run_one_of(
    path: str, options: Options, alternatives: Alternatives, outlets: Mapping[Output, OutputSink]
) -> int | str:
    """Replay one of several sessions. Return the exit code, or the name of the signal to end by.

    Raises:
        RecorderError: a cassette or an option cannot be used.
    """
    from contextlib import ExitStack

    from .alternatives import Choice, LoggedActions

    reports: list[Report | None] = [None]  # that of the session which is played
    with ExitStack() as stack:

        def opened(name: str) -> tuple[Player, LoggedActions]:
            reader = stack.enter_context(Reader(name))
            actions = LoggedActions(paced=0 < options.speed < MAX, apart=options.speed < MAX)
            player = make_player(reader, actions, options)
            player.chooses = True
            return player, actions

        def settled(name: str, player: Player) -> None:
            earlier = player.differences
            reports.append(reporting(options.report, name, player))
            for text in earlier:
                player.differences.append(text)

        def end(status: int | str) -> None:
            if report := reports[-1]:
                report.end(status)

        with Reader(path) as reader:
            introduce(path, reader.header, options, outlets["err"])
            choice = Choice(path, alternatives, opened=opened, framing=reader.header.framing, settled=settled)
        return play(choice.player, choice.actions, outlets, options.speed, end, choice=choice)


def unknown_repeats(reader: Reader, repeat: tuple[str, ...]) -> list[str]:
    """Return the values of `--repeat` whose method no recorded message of the host has."""
    left = [what for what in repeat if what != "all"]
    if left:
        with reader.again() as events:
            for event in events:
                if event.kind == "in" and isinstance(event, Data):
                    left = [what for what in left if what.partition(" ")[0].encode() not in event.payload]
                if not left:
                    break
    return left


def introduce(path: str, header: Header, options: Options, stderr: OutputSink) -> None:
    """Check that a cassette is of the live command, and print its name. Raises UsageError."""
    if options.live:
        check(path, header, options.live)
    if not options.quiet:
        typed = f"; what you type is the host's ({header.protocol})" if os.isatty(0) else ""
        write_message(stderr, headline(path, header) + typed)


def reporting(report: str, path: str, player: Player) -> Report | None:
    """Begin the report of a session that a player plays; None without `--report`. Raises UsageError."""
    if not report:
        return None
    from .report import Report

    begun = Report(report, path)
    begun.begin()
    player.differences = begun.differences
    begun.repeated = lambda: player.repeated
    return begun


def make_action_buffer(header: Header, options: Options) -> ActionBuffer:
    """Return the action buffer for a player; with faults, one that applies them. Raises UsageError."""
    paced, apart = 0 < options.speed < MAX, options.speed < MAX
    if not options.faults:
        return ActionBuffer(paced=paced, apart=apart)
    from .faults import FaultInjector, parse_fault_rules

    rules, dialect = parse_fault_rules(options.faults, options.seed), DIALECTS[header.protocol]
    return FaultInjector(rules, dialect, FRAMINGS[header.framing], options.seed, paced=paced, apart=apart)


def make_player(
    reader: Reader, actions: ActionBuffer, options: Options, environ: Mapping[str, str] = os.environ
) -> Player:
    """Return the player for a cassette. Raises CassetteError, UsageError."""
    requests, responses = make_matcher_and_writer(reader.path, reader.header, options, environ)
    framing = FRAMINGS[reader.header.framing]
    if isinstance(requests, LenientRequestMatcher):
        requests.reply = lambda response: actions.out(framing.encode(response), answers=True)
    if options.order == "strict":
        return with_repeats(StrictPlayer(reader, requests, responses, actions, framing), actions, options)
    if options.order == "any":
        from .any_order import AnyOrderPlayer

        return with_repeats(AnyOrderPlayer(reader, requests, responses, actions, framing), actions, options)
    raise UsageError(f"--order {options.order}: expected one of {', '.join(ORDERS)}")


def with_repeats(player: Player, actions: ActionBuffer, options: Options) -> Player:
    """Configure a player to play messages again, for `--repeat` and after faults. Return the player."""
    if options.repeat or options.faults:
        from ext_recorder.replay.player import Repeats

        player.repeats = Repeats(options.repeat, after_faults=bool(options.faults))
    if options.faults:
        from .faults import FaultInjector

        if isinstance(actions, FaultInjector):
            player.after_faults(actions)
    return player


def make_matcher_and_writer(
    path: str, header: Header, options: Options, environ: Mapping[str, str] = os.environ
) -> tuple[RequestMatcher, ResponseWriter]:
    """Create the request matcher and the response writer of a session; they share calls and bindings.

    Raises:
        CassetteError: the cassette's protocol is not known.
        UsageError: an option is not valid.
    """
    if options.max_age:
        from ext_recorder.cassette.age import check

        check(path, header, options.max_age)
    dialect = dialect_of(header, path)
    bindings = ReplayBindings(header.bindings, options.bind, environ.get("HOME", ""))
    calls = IdMap()
    responses = (LenientResponseWriter if dialect.optional_id else ResponseWriter)(
        dialect, FRAMINGS[header.framing], bindings, calls
    )
    matcher = Matcher(
        dialect,
        bindings,
        calls,
        ignore=options.ignore,
        mask=options.mask,
        match_on=options.match_on,
        names=responses.names,
    )
    if matcher.ignore.by_method:
        responses.note_requests(matcher.asked)
    requests = (LenientRequestMatcher if dialect.optional_id else RequestMatcher)(
        dialect,
        matcher,
        bindings,
        calls,
        redact=_Redact(options.redact, environ),
        client_generated=responses.client_generated,
        names=responses.names,
    )
    return requests, responses


class _Redact:
    """Redaction of live messages, prepared when the first message needs it."""

    def __init__(self, redaction: Redaction | None, environ: Mapping[str, str]) -> None:
        self._redaction = redaction
        self._environ = environ

    def __call__(self, data: bytes) -> bytes:
        return self._redact(data)

    def _redact(self, data: bytes) -> bytes:
        from ext_recorder.messages.redaction import Redaction

        self._redact = (self._redaction or Redaction()).redactor(self._environ).redact  # type: ignore[method-assign]
        return self._redact(data)


def die(name: str) -> int:
    """Exit as the recorded child did: by a signal, without a core file."""
    import resource
    import signal

    number = signal_number(name)
    if number is None:
        raise UsageError(f"the recorded child was ended by {name}, a signal that this system does not have")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    sys.stdout = sys.stderr = None  # all output has been written
    os.kill(os.getpid(), number)
    return 128 + number  # the signal did not end this process: a shell's convention
