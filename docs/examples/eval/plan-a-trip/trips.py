"""A service at which trips are booked: `python3 trips.py PORT`. POST /trips adds one, GET /trips lists them."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

TRIPS: list[object] = []


class Trips(BaseHTTPRequestHandler):
    """The handler of one request."""

    def do_GET(self) -> None:
        """Answer with the trips, or with "ok" for a health check."""
        if self.path == "/healthz":
            self._answer("text/plain", "ok")
        else:
            self._answer("application/json", json.dumps(TRIPS))

    def do_POST(self) -> None:
        """Book the trip in the body."""
        TRIPS.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer("text/plain", "booked")

    def _answer(self, kind: str, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


HTTPServer(("127.0.0.1", int(sys.argv[1])), Trips).serve_forever()
