"""The model and the booking service of this eval: `python3 servers.py`. The model is a script."""

import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

MODEL, TRIPS = ("127.0.0.1", 18644), ("127.0.0.1", 18645)
SECONDS = 0.5  # until the model responds
booked: list[object] = []


class Trips(BaseHTTPRequestHandler):
    """GET /trips lists the booked trips, POST /trips books one."""

    def do_GET(self) -> None:
        """Respond with the trips."""
        self.respond(booked)

    def do_POST(self) -> None:
        """Book the trip in the body."""
        booked.append(self.body())
        self.respond({"booked": len(booked)})

    def body(self) -> dict[str, list[dict[str, str]]]:
        """Return the JSON object of a request."""
        found: dict[str, list[dict[str, str]]] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return found

    def respond(self, value: object) -> None:
        """Send a value as JSON."""
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Model(Trips):
    """POST /v1/chat/completions calls the tool `post` with the city and the URL of the prompt, and then reports it."""

    def do_POST(self) -> None:
        """Respond as a model of OpenAI does."""
        time.sleep(SECONDS)
        messages = self.body()["messages"]
        message: dict[str, object] = {"role": "assistant", "content": "I booked the trip."}
        if found := re.search(r"to (\w+) at (\S+)", messages[-1]["content"]):
            arguments = json.dumps({"url": found[2], "value": {"city": found[1]}})
            call = {"id": "call-1", "type": "function", "function": {"name": "post", "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": 120 * len(messages), "completion_tokens": 25}
        self.respond({"choices": [{"index": 0, "message": message}], "usage": usage})


if __name__ == "__main__":
    model, trips = ThreadingHTTPServer(MODEL, Model), ThreadingHTTPServer(TRIPS, Trips)
    Thread(target=trips.serve_forever, daemon=True).start()
    model.serve_forever()
