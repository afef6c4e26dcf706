"""While replaying: names of hosts are looked up in the recording."""

from __future__ import annotations

import contextlib

from .errors import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .answering import Guard

    Method = Callable[..., Any]


def patch_names(module: Any, guard: Guard) -> None:
    """Look names up in the recording.

    Args:
        module: socket.
        guard: asks the recorder.
    """
    look_up: Method = module.getaddrinfo

    def getaddrinfo(host: object, port: object, *args: Any, **named: Any) -> list[Any]:
        text = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
        given = dict(zip(("family", "type", "proto", "flags"), args, strict=False)) | named
        numeric = given | {"flags": given.get("flags", 0) | module.AI_NUMERICHOST}
        found: list[Any] | None = None
        try:
            found = look_up(text, port, **(numeric if text else given))
        except module.gaierror:
            if given.get("flags", 0) & module.AI_NUMERICHOST:
                raise
        if found is not None:
            return found
        found = []
        for address in guard.resolve(str(text)):
            with contextlib.suppress(module.gaierror):  # an address of the other family
                found += look_up(address, port, **numeric)
        if not found:
            raise module.gaierror(module.EAI_NONAME, f"{MARK}{text} has no address of this family in the recording")
        return found

    def gethostbyname(host: object) -> object:
        return getaddrinfo(host, 0, module.AF_INET)[0][4][0]

    def gethostbyaddr(host: object) -> object:
        raise module.herror(1, f"{MARK}names of addresses are not looked up on replay")

    module.getaddrinfo = getaddrinfo
    module.gethostbyname = gethostbyname
    module.gethostbyaddr = gethostbyaddr
