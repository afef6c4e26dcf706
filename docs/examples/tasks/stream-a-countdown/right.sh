#!/bin/sh
set -eu
cat > "$(dirname "$(echo "$1" | grep -o '/[^ ]*README.md')")/server.py" <<'END'
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        start = int(parse_qs(urlsplit(self.path).query)["from"][0])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        for count in range(start, 0, -1):
            self.wfile.write(f"event: tick\ndata: {count}\n\n".encode())
        self.wfile.write(b'event: liftoff\ndata: {"count": 0}\n\n')
        threading.Event().wait()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
END
