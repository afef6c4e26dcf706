"""Messages that some hosts send with an id and some without, whichever was recorded: `Dialect.loose`.

recorded      live          the child
request       notification  keeps the answer to itself: nobody waits for it
notification  request       says what the dialect has for an answer
"""

from __future__ import annotations

from .hearing import Ear
from .voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .cassette.events import Data
    from .hearing import Recorded


class LooseEar(Ear):
    """An ear for dialects that have such messages.

    Attributes:
        reply: is given what answers a request that was recorded without an id; None: nobody asks.
    """

    reply: Callable[[bytes], None] | None = None

    def _taken_in(self, recorded: Recorded, payload: bytes) -> bool:
        message, live = recorded.message(self.dialect), self.dialect.classify(payload)
        if message.kind == live.kind:
            return super()._taken_in(recorded, payload)
        if message.key is not None:
            self._calls.spared.add(message.key)
        answer = self.dialect.acknowledgement(live)
        if answer is not None and self.reply is not None:
            self.reply(answer)
        return True


class LooseVoice(Voice):
    """A voice for them."""

    def out(self, event: Data) -> bytes:
        """The bytes for something on the child's stdout: none for an answer that nobody waits for."""
        if self._calls.spared and not event.raw:
            message = self._dialect.classify(event.payload)
            if message.kind == "response" and message.key in self._calls.spared:
                self._calls.spared.discard(message.key)
                return b""
        return super().out(event)


def let_reply(ear: Ear, reply: Callable[[bytes], None]) -> None:
    """Have an ear, if it is one of these, answer where the recording has no answer."""
    if isinstance(ear, LooseEar):
        ear.reply = reply
