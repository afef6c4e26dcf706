"""The task of README that waits for a service, asks it, and verifies what the agent asked a mock: it is run here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import ProxyHandler, Request, build_opener

import pytest
import yaml

from tests.ext_http.stub import Asked, Handler, Stub
from tests.ext_sdk.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = Path(__file__).parents[2] / "docs" / "examples" / "plan-a-trip.yaml"
SERVICE, MOCK = "127.0.0.1:8080", "127.0.0.1:8099"  # as the task has them; here they have other ports


@pytest.fixture
def service() -> Iterator[Stub]:
    """What the agent books trips at; it is not ready at once."""
    trips: list[object] = []
    looks = iter(range(1000))

    def book(handler: Handler, asked: Asked) -> None:
        if asked.method == "POST":
            trips.append(json.loads(asked.body))
        handler.json(trips)

    with Stub() as stub:
        stub.does(
            "/healthz", lambda handler, asked: handler.answer(*((503, "soon") if next(looks) < 2 else (200, "ok")))
        )
        stub.does("/trips", book)
        yield stub


class Task(NamedTuple):
    """The task on this machine's ports."""

    host: Peer
    workdir: Path
    service: Stub

    def run(self, phase: str) -> list[dict[str, object]]:
        """The results of a phase's steps."""
        results = []
        for step in yaml.safe_load(TASK.read_text())["spec"][phase]:
            for name, args in step.items():
                here = json.loads(json.dumps(args).replace(SERVICE, self.service.address))
                here |= {"port": 0} if "port" in here else {}
                operation = name.removeprefix("http.")
                results.append(self.host.result(operation, here, phase=phase, workdir=str(self.workdir)))
        return results


@pytest.fixture
def task(service: Stub, tmp_path: Path) -> Iterator[Task]:
    with Peer([sys.executable, "-m", "ext_http"]) as host:
        yield Task(host, tmp_path, service)


def agent(weather: str, city: str, trips: str) -> None:
    """Does what the prompt says."""
    opener = build_opener(ProxyHandler({}))
    with opener.open(f"{weather}/v1/cities/{city}/forecast") as answer:
        found = json.load(answer)
    with opener.open(Request(trips, data=json.dumps(found).encode())) as answer:
        assert answer.status == 200


def url_of(results: list[dict[str, object]]) -> str:
    outputs = results[0]["outputs"]
    assert isinstance(outputs, dict)
    return str(outputs["url"])


def test_an_agent_that_does_what_it_was_asked_passes(task: Task) -> None:
    setup = task.run("setup")
    agent(url_of(setup), "lisbon", task.service.url("/trips"))
    for result in [*setup, *task.run("verify"), *task.run("cleanup")]:
        assert result["success"] is True, result
    assert len([asked for asked in task.service.asked if asked.path == "/healthz"]) == 3


def test_an_agent_that_guesses_the_weather_fails(task: Task) -> None:
    setup = task.run("setup")
    opener = build_opener(ProxyHandler({}))
    guess = Request(task.service.url("/trips"), data=b'{"city": "lisbon", "celsius": 21}')
    opener.open(guess).close()
    request, verify = task.run("verify")
    assert request["success"] is True
    assert verify["success"] is False
    assert "it was not asked at all" in str(verify["error"])
    assert url_of(setup)
