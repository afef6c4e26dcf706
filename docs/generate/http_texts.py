"""Causes of failures and further examples of ext-http, for its reference page. Tests run all examples."""

from __future__ import annotations

UNREACHABLE = "the server cannot be reached, or its certificate is not trusted"
REFUSED = "the host comes from a variable or a redirect, or is a metadata address, and `allowHosts` does not list it"
BODY = "the body is larger than `maxBody`, and a check or a capture needs the rest"
CAPTURE = "a captured value is not found, and has no default"
NO_MOCK = "no mock has this name in the workdir and scope"

FAILURES = {
    "request": (
        UNREACHABLE,
        "the status is not 200 to 299, or the response does not match `expect`",
        REFUSED,
        BODY,
        CAPTURE,
        "there is a response, or another failure than `expect.failure` accepts",
    ),
    "wait": (
        "the response does not match `expect` before `timeout`; the error lists all attempts",
        "a response or an error listed in `giveUpOn` occurs",
        REFUSED,
        CAPTURE,
    ),
    "download": (
        UNREACHABLE,
        "the status is not 200 to 299, or the response does not match `expect`",
        "the file is larger than `maxSize`, or its SHA-256 differs",
        "the path leads outside of the workdir",
        REFUSED,
    ),
    "graphql": (
        UNREACHABLE,
        "the response contains `errors`, unless `expect` accepts them, or neither data nor errors",
        "the response does not match `expect`",
        REFUSED,
        CAPTURE,
    ),
    "websocket": (
        UNREACHABLE,
        "the status of the handshake is not 101, or the response does not match `expect`",
        "a message does not match, does not come in time, or comes during `silence`",
        "the server closes the connection before the last turn, or not as `expect.close` requires",
        "a message is larger than `maxMessage`, or a frame is not valid",
        REFUSED,
        CAPTURE,
    ),
    "session": ("`baseUrl` or a header is invalid",),
    "mock-start": (
        "a mock of this name is already running",
        "a reference `${request.…}` in a response is not valid; the error lists all of them",
        "`routesFile` has no valid routes",
        "the port is in use, or the address is not one of this machine",
        "the host of `upstream` comes from a variable, and `allowHosts` of the configuration does not list it",
    ),
    "mock-verify": (
        NO_MOCK,
        "the calls do not match `calls` or `unmatched`; the error shows the closest calls",
        CAPTURE,
    ),
    "mock-update": (NO_MOCK, "a route in `remove` does not exist"),
    "mock-stop": (f"{NO_MOCK}, unless `ignoreMissing` is given",),
}

EXAMPLES: dict[str, dict[str, list[tuple[str, dict[str, object]]]]] = {
    "request": {
        "Authentication, with a password from an environment variable": [
            (
                "request",
                {
                    "url": "http://127.0.0.1:8080/items/7",
                    "auth": {"basic": {"username": "ada", "password": {"env": "SHOP_PASSWORD"}}},
                    "secretHeaders": {"X-Api-Key": {"env": "SHOP_KEY"}},
                },
            )
        ],
        "A captured value, used in the next request": [
            (
                "request",
                {
                    "url": "http://127.0.0.1:8080/items/7",
                    "capture": {"id": {"json": "$.id"}, "type": {"from": "header", "header": "Content-Type"}},
                    "as": "item",
                },
            ),
            ("request", {"url": "http://127.0.0.1:8080/items/${item.id}", "query": {"colour": ["blue", "green"]}}),
        ],
        "XML in the body, checked and captured by JSONPath, and a date in another format": [
            (
                "request",
                {
                    "url": "http://127.0.0.1:8080/feed.xml",
                    "expect": {"body": {"format": "xml", "json": [{"path": "$.feed.item['@id']", "equals": "7"}]}},
                    "capture": {
                        "name": {"format": "xml", "json": "$.feed.item.name"},
                        "since": {
                            "from": "header",
                            "header": "Last-Modified",
                            "filters": [{"date": "http", "to": "unix"}],
                        },
                        "kind": {
                            "from": "header",
                            "header": "Content-Type",
                            "filters": [{"split": ";", "index": 0}],
                        },
                    },
                },
            ),
        ],
        "Expected failures: a closed port, and TLS that the server does not support": [
            ("request", {"url": "http://127.0.0.1:1/", "connectTimeout": "5s", "expect": {"failure": "refused"}}),
            ("request", {"url": "https://127.0.0.1:8080/", "expect": {"failure": ["tls", "reset"]}}),
        ],
        "The first two events of a stream that does not end": [
            (
                "request",
                {
                    "url": "http://127.0.0.1:8080/events",
                    "expect": {
                        "events": ["hello", {"event": "price", "data": {"json": [{"path": "$.eur", "equals": 7}]}}],
                    },
                    "capture": {"price": {"from": "events", "json": "$[1].data"}},
                },
            ),
        ],
        "A path that is sent as it is, which must not lead out of the served directory": [
            (
                "request",
                {"url": "http://127.0.0.1:8080/static/../../etc/passwd", "pathAsIs": True, "expect": {"status": "4xx"}},
            ),
        ],
        "Attributes of a cookie, and its value for later steps": [
            (
                "request",
                {
                    "method": "POST",
                    "url": "http://127.0.0.1:8080/login",
                    "expect": {
                        "cookies": {"sid": {"httpOnly": True, "sameSite": "Lax", "lifetime": {"lte": "1h"}}},
                    },
                    "capture": {"sid": {"from": "cookie", "cookie": "sid", "secret": True}},
                },
            ),
        ],
        "Checks by JSONPath, of headers and of the duration": [
            (
                "request",
                {
                    "method": "POST",
                    "url": "http://127.0.0.1:8080/items/7",
                    "body": {"json": {"count": 2}},
                    "expect": {
                        "status": [200, 201],
                        "headers": {"content-type": {"startsWith": "application/json"}},
                        "duration": {"lt": "10s"},
                        "body": {
                            "json": [
                                {"path": "$.name", "type": "string", "matches": "^l"},
                                {"path": "$..price", "exists": False},
                            ]
                        },
                    },
                },
            )
        ],
    },
    "wait": {
        "Until a server opens a WebSocket": [
            ("wait", {"url": "ws://127.0.0.1:8080/chat", "timeout": "20s"}),
        ],
    },
    "websocket": {
        "Captured parts of a conversation, and a URL that opens no WebSocket": [
            (
                "websocket",
                {
                    "url": "ws://127.0.0.1:8080/chat",
                    "messages": [
                        {"receive": 1},
                        {"send": "a lamp, please"},
                        {"expect": {"json": [{"path": "$.op", "equals": "news"}]}, "type": "text", "within": "10s"},
                        {"receive": 1},
                        {"silence": "100ms"},
                    ],
                    "capture": {
                        "greeting": {"message": 1},
                        "id": {"json": "$.id"},
                    },
                },
            ),
            ("websocket", {"url": "ws://127.0.0.1:8080/items/7", "expect": {"status": 200}}),
        ],
    },
    "session": {
        "A request of the session": [
            ("request", {"url": "/items/7", "session": "shop", "expect": {"body": {"contains": "lamp"}}}),
        ]
    },
    "mock-update": {
        "A service that begins to fail while the agent works": [
            (
                "mock-start",
                {
                    "name": "stock",
                    "routes": [{"name": "stock", "path": "/stock", "answer": {"json": 3}}],
                    "as": "stock",
                },
            ),
            ("request", {"url": "${stock.url}/stock", "expect": {"body": "3"}}),
            (
                "mock-update",
                {
                    "name": "stock",
                    "routes": [{"name": "stock", "path": "/stock", "answer": {"status": 503}}],
                    "clearJournal": True,
                },
            ),
            ("request", {"url": "${stock.url}/stock", "expect": {"status": 503}}),
            ("mock-verify", {"name": "stock", "calls": [{"route": "stock", "exactly": 1}]}),
            ("mock-stop", {"name": "stock"}),
        ],
    },
    "mock-verify": {
        "What the agent sent, for later steps": [
            (
                "mock-start",
                {
                    "name": "orders",
                    "routes": [{"name": "order", "method": "POST", "path": "/orders", "answer": {"status": 201}}],
                    "as": "orders",
                },
            ),
            ("request", {"url": "${orders.url}/orders", "body": {"json": {"item": "lamp", "count": 2}}}),
            (
                "mock-verify",
                {
                    "name": "orders",
                    "calls": [{"route": "order", "exactly": 1, "capture": {"item": {"json": "$.item"}}}],
                    "as": "order",
                },
            ),
            ("request", {"url": "http://127.0.0.1:8080/items/7", "expect": {"body": {"contains": "${order.item}"}}}),
            ("mock-stop", {"name": "orders"}),
        ],
    },
    "mock-start": {
        "Faults and retries: a wait succeeds after a reset connection and a slow response with status 503": [
            (
                "mock-start",
                {
                    "name": "unreliable",
                    "routes": [
                        {
                            "name": "health",
                            "path": "/healthz",
                            "answer": [{"fault": "reset"}, {"status": 503, "delay": "50ms"}, {"text": "ok"}],
                        }
                    ],
                    "as": "unreliable",
                },
            ),
            (
                "wait",
                {"url": "${unreliable.url}/healthz", "interval": "100ms", "timeout": "20s", "expect": {"body": "ok"}},
            ),
            ("mock-stop", {"name": "unreliable"}),
        ],
        "Responses with parts of the request, with a default, and with generated values": [
            (
                "mock-start",
                {
                    "name": "booking",
                    "routes": [
                        {
                            "method": "POST",
                            "path": "/cities/{city}/bookings",
                            "answer": {
                                "status": 201,
                                "headers": {"Location": "/bookings/${request.count}", "X-Remaining": 3},
                                "json": {
                                    "id": "${uuid}",
                                    "created": "${now}",
                                    "city": "${request.path.city}",
                                    "currency": "${request.query.currency|EUR}",
                                    "guests": "${request.json/guests}",
                                },
                            },
                        }
                    ],
                    "as": "booking",
                },
            ),
            (
                "request",
                {
                    "url": "${booking.url}/cities/lisbon/bookings",
                    "body": {"json": {"guests": ["ada"]}},
                    "expect": {
                        "headers": {"Location": "/bookings/1", "X-Remaining": 3},
                        "body": {"jsonContains": {"city": "lisbon", "currency": "EUR", "guests": ["ada"]}},
                    },
                },
            ),
            ("mock-stop", {"name": "booking"}),
        ],
        "States: orders are accepted after a login only; fields of a form": [
            (
                "mock-start",
                {
                    "name": "shop",
                    "routes": [
                        {
                            "name": "login",
                            "method": "POST",
                            "path": "/login",
                            "form": {"user": "ada", "password": {"exists": True}},
                            "thenState": "open",
                            "answer": {"json": {"token": "t-1"}},
                        },
                        {
                            "name": "order",
                            "method": "POST",
                            "path": "/orders",
                            "inState": "open",
                            "answer": {"status": 201},
                        },
                        {"name": "early", "path": "/orders", "answer": {"status": 401}},
                    ],
                    "as": "shop",
                },
            ),
            ("request", {"url": "${shop.url}/orders", "method": "POST", "expect": {"status": 401}}),
            ("request", {"url": "${shop.url}/login", "body": {"form": {"user": "ada", "password": "horse-7"}}}),
            ("request", {"url": "${shop.url}/orders", "method": "POST", "expect": {"status": 201}}),
            ("mock-verify", {"name": "shop", "calls": [{"route": "order", "exactly": 1}], "state": "open"}),
            ("mock-stop", {"name": "shop"}),
        ],
        "Reachable from containers: at all addresses, with a certificate for the name that they use": [
            (
                "mock-start",
                {
                    "name": "host",
                    "host": "0.0.0.0",  # noqa: S104 - an example that is stopped at once
                    "tls": True,
                    "hostNames": ["host.docker.internal"],
                    "routes": [{"path": "/", "answer": {"text": "hello"}}],
                },
            ),
            ("mock-stop", {"name": "host"}),
        ],
        "Record a real server: what no route matches is forwarded, and the responses are routes of the next mock, with "
        "placeholders for secrets": [
            (
                "mock-start",
                {
                    "name": "shop",
                    "routes": [{"path": "/items/8", "answer": {"status": 410}}],
                    "upstream": {"url": "http://127.0.0.1:8080", "record": "shop-routes.json"},
                    "as": "shop",
                },
            ),
            ("request", {"url": "${shop.url}/items/7", "expect": {"body": {"jsonContains": {"name": "lamp"}}}}),
            ("mock-verify", {"name": "shop", "calls": [{"route": "upstream", "exactly": 1}]}),
            ("mock-stop", {"name": "shop"}),
            ("mock-start", {"name": "shop", "routesFile": "shop-routes.json", "as": "shop"}),
            ("request", {"url": "${shop.url}/items/7", "expect": {"body": {"jsonContains": {"name": "lamp"}}}}),
            ("mock-stop", {"name": "shop"}),
        ],
        "TLS, with the certificate authority of the mock": [
            (
                "mock-start",
                {
                    "name": "secure",
                    "tls": True,
                    "routes": [{"path": "/", "answer": {"text": "hello"}}],
                    "as": "secure",
                },
            ),
            ("request", {"url": "${secure.url}/", "tls": {"ca": "${secure.caFile}"}, "expect": {"body": "hello"}}),
            ("mock-stop", {"name": "secure"}),
        ],
    },
}
