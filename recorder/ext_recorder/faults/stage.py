"""A stage on which things go wrong: the child's messages, one by one, through the rules that befall them."""

from __future__ import annotations

from random import Random

from ext_recorder.stage import Close, Stage
from ext_sdk.core.wire.frames import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_sdk.core.wire.framing import Framing
    from ext_sdk.protocols.dialect import Classified, Dialect

    from .rules import Rule

_SAID = "a fault, as --fault asked"


class FaultyStage(Stage):
    """Collects actions, and spoils them.

    Args:
        rules: all of them are asked about each message, and all that befall it do so.
        dialect: what a message is.
        framing: what goes around it.
        seed: of the garbage.
        paced, apart: see Stage.

    Attributes:
        key: returns a number that is equal for requests of the host that match each other; None: none is wanted.
        faulted: these numbers of the requests that a fault applied to: the host may send them again.
        faulted_ids: their ids: the host may cancel them.
    """

    __slots__ = (
        "_calls", "_child", "_delays", "_dialect", "_framing", "_host", "_lot", "faulted", "faulted_ids", "key",
        "rules",
    )  # fmt: skip

    def __init__(
        self,
        rules: Sequence[Rule],
        dialect: Dialect,
        framing: Framing,
        seed: str,
        *,
        paced: bool = False,
        apart: bool = False,
    ) -> None:
        super().__init__(paced=paced, apart=apart)
        self.rules = rules
        self._dialect = dialect
        self._framing = framing
        self._host = framing.decoder()
        self._child = framing.decoder()
        self._calls: dict[bytes, Classified] = {}  # the host's open calls
        self._lot = Random(seed)  # noqa: S311 - garbage that is the same each time
        self.key: Callable[[bytes], int] | None = None
        self._delays = False  # a message was delayed, and with it those behind it
        self.faulted: set[int] = set()
        self.faulted_ids: set[bytes] = set()

    @property
    def plain(self) -> bool:
        return False

    @property
    def idle(self) -> list[str]:
        return [rule.text for rule in self.rules if not rule.fired]

    def exit(self, status: int | str) -> None:
        """End. It closes stderr, and not before: which faults have befallen nothing is told there last."""
        while self._actions and isinstance(self._actions[-1], Close):
            self._actions.pop()
        super().exit(status)

    def overhear(self, data: bytes) -> None:
        """What the host says: an answer has the method of its request."""
        self._host.receive_data(data)
        while (item := self._host.next_event()) is not None:
            if isinstance(item, Frame):
                message = self._dialect.classify(item.payload)
                if message.kind == "request" and message.key is not None:
                    self._calls[message.key] = message

    def out(self, data: bytes, *, answers: bool = False) -> None:
        self._child.receive_data(data)
        while not self.over and (item := self._child.next_event()) is not None:
            if isinstance(item, Frame):
                self._spoil(item, answers=answers)
            else:
                self._say(item.wire, answers=answers)

    def _spoil(self, frame: Frame, *, answers: bool) -> None:
        message = self._dialect.classify(frame.payload)
        request = self._calls.pop(message.key, None) if message.kind == "response" and message.key is not None else None
        method = request.method if request else message.method
        wires = [frame.wire]
        delay = 0.0
        faulted = False
        for rule in self.rules:
            if not rule.befalls(message, method):
                continue
            faulted = True
            if rule.kind == "delay":
                delay += rule.value
            elif rule.kind in {"exit", "kill"}:
                self._end(rule, wires)
                return
            else:
                wires = self._spoiled(rule, wires, frame, request)
        self._delays = self._delays or delay > 0
        if (faulted or self._delays) and message.kind != "notification":
            self._note([request] if request else list(self._calls.values()))
        self._say(b"".join(wires), delay, answers=answers)

    def _note(self, requests: list[Classified]) -> None:
        """Note the requests of the host that a fault applied to: their responses, or what they wait for."""
        for request in requests:
            if self.key is not None:
                self.faulted.add(self.key(request.text.encode("utf-8", "surrogateescape")))
            if request.key is not None:
                self.faulted_ids.add(request.key)

    def _spoiled(self, rule: Rule, wires: list[bytes], frame: Frame, request: Classified | None) -> list[bytes]:
        """What comes instead of these bytes."""
        size = int(rule.value)
        if rule.kind == "drop":
            return []
        if rule.kind == "duplicate":
            return wires * 2
        if rule.kind == "cut":
            return [wire[: len(wire) // 2] for wire in wires[:1]]
        if rule.kind == "garbage":
            return [self._garbage(size), *wires]
        if rule.kind == "oversized":
            padding = size - len(frame.payload)
            return [self._framing.encode(frame.payload + b" " * padding, frame.head)] if padding > 0 else wires
        refusal = self._dialect.refusal(request, _SAID, {"fault": rule.text}) if request else None
        return [self._framing.encode(_with_code(refusal, size))] if refusal else wires

    def _garbage(self, size: int) -> bytes:
        """Bytes that are no message in any framing here: no digit opens a length, no brace an object."""
        letters = bytes(self._lot.choice(b"abcdefghijklmnopqrstuvwxyz ~%") for _ in range(max(0, size - 1)))
        return letters + b"\n" if size else b""

    def _end(self, rule: Rule, wires: list[bytes]) -> None:
        if rule.kind == "exit":
            self.exit(int(rule.value))
            return
        whole = b"".join(wires)
        self._say(whole[: len(whole) // 2])
        self.exit("SIGKILL")

    def _say(self, data: bytes, delay: float = 0.0, *, answers: bool = False) -> None:
        if not delay:
            super().out(data, answers=answers)
            return
        self._turn(answers=answers)
        self._flush()
        self._write(data, delay)
        self.size += len(data)


def _with_code(refusal: bytes, code: int) -> bytes:
    """The protocol's own way to refuse, with another code where it has one."""
    from ext_sdk.protocols.dialect import NOT_RECORDED

    return refusal.replace(b'"code":%d' % NOT_RECORDED, b'"code":%d' % code, 1)
