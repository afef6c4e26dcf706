"""The one way to the API server: requests with timeouts and bounded retries, watches, websockets.

`connection` and `loading` use what `importing` imports of `kubernetes`; `client_for(context)` gives a call's client.
"""

from __future__ import annotations

from .answer import Answer
from .client import Client
from .clients import client_for
from .connection import Request
from .importing import warm_up
from .watch import Event, Watch

__all__ = ["Answer", "Client", "Event", "Request", "Watch", "client_for", "warm_up"]
