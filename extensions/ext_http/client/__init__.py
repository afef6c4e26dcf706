"""The way to HTTP servers, and the only package that imports the HTTP library, httpx2.

Another library could take its place: what the rest of ext-http uses is in `settings` and `Outgoing`, which are plain
data, `Clients.get(settings).send(outgoing, budget, …)`, which gives an Answer, and `CookieJar`. Imported by those who
are about to send something: it takes 130 ms.
"""

from __future__ import annotations

from .budget import Budget
from .clients import Clients
from .cookies import CookieJar
from .exchange import ACCEPTED, USER_AGENT, Client, Outgoing
from .multipart import Part, multipart
from .urls import joined, normalized

__all__ = [
    "ACCEPTED",
    "USER_AGENT",
    "Budget",
    "Client",
    "Clients",
    "CookieJar",
    "Outgoing",
    "Part",
    "joined",
    "multipart",
    "normalized",
]
