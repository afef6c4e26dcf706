"""The one way to the API server: requests with timeouts and bounded retries, watches, websockets.

`connection` is the only module that imports `kubernetes`. `client_for(context)` gives the client of a call.
"""

from __future__ import annotations

from .client import Answer, Client
from .clients import client_for
from .connection import Request, warm_up
from .watch import Event, Watch

__all__ = ["Answer", "Client", "Event", "Request", "Watch", "client_for", "warm_up"]
