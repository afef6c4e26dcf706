"""One who waits: what there is to be seen, and when there is something new."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    import ext_sdk

    from .feed import Feed
    from .manifests import Object
    from .waiting import Pace

SLICE_SECONDS = 1.0  # after which a wait sees that it was stopped


class Subscription:
    """One who waits. Use it in a `with` block.

    Attributes:
        name: of the object; "" for all.
        news: set when something has changed that was not seen yet.
    """

    def __init__(self, feed: Feed, name: str) -> None:
        self.name = name
        self.news = threading.Event()
        self._feed = feed

    def see(self, age: float, deadline: ext_sdk.Deadline) -> list[Object]:
        """What there is: the object, or all of them; nothing where there is none.

        Args:
            age: seconds since somebody else's look, which is good enough then; 0: look now.
            deadline: for the request.

        Raises:
            KubernetesError: no answer, or none that is of use.
        """
        if not (age and self.news.is_set()):
            self._feed.look(age, deadline)
        self.news.clear()
        return self._feed.known.objects(self.name)

    def wait(self, seconds: float, deadline: ext_sdk.Deadline) -> None:
        """Wait until there are news, or for so many seconds."""
        self._feed.open_watch()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not deadline.stopped.is_set():
            if self.news.wait(min(left, SLICE_SECONDS)):
                return

    def age(self) -> float:
        """Seconds since the last look."""
        return self._feed.age()

    def pace(self) -> Pace:
        """Of the looks."""
        return self._feed.pace()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)
