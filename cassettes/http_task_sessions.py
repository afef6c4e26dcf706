"""Sessions of ext-http whose servers are mocks of its own: what a host sees of it, without any other program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassettes.session import INITIALIZE, SHUTDOWN, Session, execute

if TYPE_CHECKING:
    from cassettes.session import Step

SHOP = [
    {
        "name": "health",
        "path": "/healthz",
        "answer": [{"status": 503, "text": "loading", "times": 2}, {"status": 200, "text": "ok"}],
    },
    {
        "name": "login",
        "method": "POST",
        "path": "/login",
        "answer": {"json": {"token": "opened-by-4711"}, "headers": {"Set-Cookie": "sid=cookie-4711; Path=/"}},
    },
    {
        "name": "items",
        "path": "/items/{id}",
        "answer": {"json": {"id": "${request.path.id}", "stock": 9007199254740993}},
    },
    {"name": "report", "path": "/report.csv", "answer": {"text": "name,count\nlamp,3\n"}},
    {"name": "graphql", "method": "POST", "path": "/graphql", "answer": {"json": {"data": {"item": {"name": "lamp"}}}}},
]
WEATHER = [{"name": "forecast", "path": "/v1/cities/{city}/forecast", "answer": {"json": {"celsius": 21}}}]

_STEPS: dict[str, list[Step]] = {
    # A whole eval task: a service is waited for, an agent (played by a request) asks a mock, and that is checked.
    "http/eval-task": [
        INITIALIZE,
        execute("mock-start", {"name": "shop", "routes": SHOP, "as": "shop"}),
        execute("mock-start", {"name": "weather", "routes": WEATHER, "as": "weather"}),
        execute("wait", {"url": "${shop.url}/healthz", "timeout": "20s", "expect": {"status": 200, "body": "ok"}}),
        execute("session", {"name": "ada", "headers": {"X-Team": "blue"}}),
        execute(
            "request",
            {
                "url": "${shop.url}/login",
                "session": "ada",
                "body": {"form": {"user": "ada"}},
                "capture": {"token": {"json": "$.token", "secret": True}},
                "as": "login",
            },
        ),
        execute("request", {"url": "${weather.url}/v1/cities/lisbon/forecast"}),
        execute(
            "request",
            {
                "url": "${shop.url}/items/7",
                "session": "ada",
                "auth": {"bearer": "${login.token}"},
                "expect": {"body": {"json": [{"path": "$.stock", "equals": 9007199254740993}]}},
            },
            phase="verify",
        ),
        execute("graphql", {"url": "${shop.url}/graphql", "query": "{ item(id: 7) { name } }"}, phase="verify"),
        execute("download", {"url": "${shop.url}/report.csv", "path": "report.csv"}, phase="verify"),
        execute("mock-verify", {"name": "weather", "calls": [{"route": "forecast", "exactly": 1}]}, phase="verify"),
        execute("mock-stop", {"name": "weather"}, phase="cleanup"),
        execute("mock-stop", {"name": "shop"}, phase="cleanup"),
        SHUTDOWN,
    ],
    # Every way to fail that a task's author meets.
    "http/failing": [
        INITIALIZE,
        execute("mock-start", {"name": "shop", "routes": SHOP, "as": "shop"}),
        execute("request", {"url": "http://127.0.0.1:9/"}),
        execute("request", {"url": "http://shop.invalid/"}),
        execute("request", {"url": "http://169.254.169.254/latest/meta-data/"}),
        execute("request", {"url": "${shop.url}/itmes/7"}),
        execute(
            "request", {"url": "${shop.url}/items/7", "expect": {"body": {"json": [{"path": "$.id", "equals": 7}]}}}
        ),
        execute("wait", {"url": "${shop.url}/missing", "timeout": "1s"}),
        execute("wait", {"url": "${shop.url}/missing", "timeout": "20s", "giveUpOn": [404]}),
        execute("download", {"url": "${shop.url}/report.csv", "path": "report.csv", "sha256": "0" * 64}),
        execute("mock-verify", {"name": "shop", "calls": [{"route": "login"}]}, phase="verify"),
        execute("request", {"url": "shop.test"}),
        execute("request", {"url": "http://shop.test/", "expect": {"sttus": 200}}),
        execute("requst", {"url": "http://shop.test/"}),
        SHUTDOWN,
    ],
    "http/one-shot": [execute("request", {"url": "http://127.0.0.1:9/"})],
}

SESSIONS = {name: Session(steps) for name, steps in _STEPS.items()}
