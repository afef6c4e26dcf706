"""Sessions of ext-http, with a server of their own on loopback."""

from __future__ import annotations

from cassettes.session import INITIALIZE, SHUTDOWN, Session, execute

PORT = 18642  # of that server, so that its address is the same in every recording
TOKEN = "token-of-nobody-0123456789"  # noqa: S105 - that it is in no cassette is a test
SERVER = f"http://127.0.0.1:{PORT}"

SESSIONS = {
    # What `make test` runs with the real extension and without a server: its HTTP traffic is recorded, too.
    "http/offline": Session(
        [
            INITIALIZE,
            execute("session", {"name": "shop", "baseUrl": SERVER, "headers": {"Authorization": f"Bearer {TOKEN}"}}),
            # The third answer is the one that is waited for.
            execute("wait", {"url": "/count/up", "session": "shop", "timeout": "20s", "expect": {"body": "3"}}),
            execute(
                "request",
                {
                    "url": "/items/7?color=blue",
                    "session": "shop",
                    "expect": {"status": "2xx", "body": {"json": [{"path": "$.number", "equals": 1}]}},
                },
                phase="verify",
            ),
            execute(
                "request", {"method": "POST", "url": "/made", "session": "shop", "body": {"json": {"name": "lamp"}}}
            ),
            execute("request", {"url": "/headers", "session": "shop"}, phase="verify"),
            execute("request", {"url": "/gzip", "session": "shop"}, phase="verify"),
            execute("request", {"url": "/chunked", "session": "shop", "maxBody": "1MB"}, phase="verify"),
            execute("request", {"url": "/redirect", "session": "shop", "redirects": 1}, phase="verify"),
            execute("download", {"url": "/binary", "session": "shop", "path": "binary.dat"}, phase="verify"),
            # What goes wrong goes wrong again.
            execute("request", {"url": "/count/up", "session": "shop", "expect": {"status": 404}}, phase="verify"),
            execute("request", {"url": "/reset", "session": "shop"}, phase="verify"),
            execute("request", {"url": "http://nowhere.invalid/"}, phase="verify"),
            execute("request", {"url": "http://127.0.0.1:9/"}, phase="verify"),
            SHUTDOWN,
        ],
        http=True,
        port=PORT,
    ),
}
