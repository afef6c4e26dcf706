"""From a request to its answer: the first route that takes it, or the reason why none does."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import ext_sdk
from ext_http.checks.means import Means
from ext_sdk.expect import Found, Searcher
from ext_sdk.expect.check import failures

from .answers import Answer, answer_for
from .journal import Call, Miss
from .response import Response, plain
from .routes import judge
from .template import Unfilled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .journal import Journal
    from .request import Request
    from .response import Bodies
    from .routes import Judged, Route


class SharedSearcher(Searcher):
    """A Searcher for several threads, one search after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self._ended = False

    def search(self, pattern: str, text: str, *, ignore_case: bool = False) -> Found | None:
        """As Searcher has it."""
        try:
            with self._turn:
                return super().search(pattern, text, ignore_case=ignore_case)
        finally:
            if self._ended:
                self.end()

    def end(self) -> None:
        """End the child process: now, or when a search that runs is over. Does not wait."""
        self._ended = True
        if self._turn.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._turn.release()


class Router:
    """The routes of one mock. For any thread.

    Args:
        name: of the mock.
        routes: the first one that fits takes a request.
        otherwise: what a request gets that none takes; None: a plain 404.
        hints: say in an answer of the mock's own what is wrong with the request.
        bodies: that stand still.
        workdir: where files are that bodies are compared with.
        journal: where every request is noted.
    """

    def __init__(
        self,
        name: str,
        *,
        routes: Sequence[Route],
        otherwise: Answer | None,
        hints: bool,
        bodies: Bodies,
        workdir: Path,
        journal: Journal,
    ) -> None:
        self._name = name
        self._routes = routes
        self._otherwise = otherwise
        self._hints = hints
        self._bodies = bodies
        self._journal = journal
        self._searcher = SharedSearcher()
        self._means = Means(workdir, self._searcher, journal.redact)
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def close(self) -> None:
        """End the process that runs regular expressions."""
        self._searcher.end()

    def answer(self, request: Request) -> Response:
        """The answer to a request, which is noted in the journal with it."""
        label, problem, miss = "", "", None
        try:
            route = self._route(request)
            if route is None:
                miss = self._miss(request)
                response = self._unmatched(request, miss)
            else:
                label = route.label
                response = self._bodies.respond(answer_for(request.count, route.answer), request)
        except (Unfilled, ext_sdk.OperationFailed) as error:
            problem = error.error if isinstance(error, ext_sdk.OperationFailed) else str(error)
            response = self._own(500, f"{label or 'search for a route'}: {problem}")
        self._journal.add(Call(request, label, told(response), problem=problem, miss=miss))
        return response

    def _own(self, status: int, text: str) -> Response:
        return plain(status, f"mock {self._name!r}: {text}" if self._hints else "")

    def _route(self, request: Request) -> Route | None:
        for route in self._routes:
            judged = judge(route, request, self._means, quick=True)
            if judged.ok:
                with self._lock:
                    self.counts[route.label] += 1
                    request.count = self.counts[route.label]
                request.parameters = judged.parameters
                return route
        return None

    def _unmatched(self, request: Request, miss: Miss) -> Response:
        if self._otherwise is not None:
            return self._bodies.respond(self._otherwise, request)
        return self._own(404, f"no route takes {request.method} {request.target}; {miss}")

    def _miss(self, request: Request) -> Miss:
        judged: list[tuple[Judged, Route]] = []
        problem = ""
        for route in self._routes:
            try:
                judged.append((judge(route, request, self._means), route))
            except ext_sdk.OperationFailed as error:  # of a part that did not matter: another part does not hold
                problem = error.error
        if not judged:
            return Miss(self._routes[0].label, [problem])
        nearest, route = min(judged, key=lambda one: one[0].distance)
        return Miss(route.label, failures(nearest.checks))


def told(response: Response) -> str:
    """What a request got, in the journal: a status, or the fault in its place."""
    fault = response.answer.fault if response.answer is not None else None
    return f"fault {fault}" if isinstance(fault, str) else str(response.status)
