"""vcrpy: its format, by its own serializer and its safe loader. The only module that imports it.

Its patches are not wanted, and neither are the client libraries that it imports to patch them, which takes a third of a
second: in this process, which is a service of its own, they are said not to be there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLIENTS = (
    "aiohttp", "botocore", "httplib2", "httpx", "httpx2", "httpx_curl_cffi", "pyreqwest", "requests", "tornado",
    "urllib3",
)  # fmt: skip


def without_clients() -> None:
    """Have vcrpy find no client library. For a process that needs none."""
    for name in CLIENTS:
        sys.modules.setdefault(name, cast("type[object]", None))  # type: ignore[arg-type]  # import says: not there


def serialized(
    method: str, uri: str, body: bytes | None, headers: Mapping[str, str], response: Mapping[str, object]
) -> str:
    """One interaction in the way of vcrpy: an item of a list in YAML, from `- request:` on."""
    from vcr.request import Request  # type: ignore[import-untyped]
    from vcr.serialize import serialize  # type: ignore[import-untyped]
    from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

    make = cast("Callable[..., object]", Request)
    write = cast("Callable[..., str]", serialize)
    text = write({"requests": [make(method, uri, body, dict(headers))], "responses": [dict(response)]}, yamlserializer)
    return text.removeprefix("interactions:\n").rpartition("version:")[0]


def load_yaml(text: str) -> object:
    """A file as data. Nothing in it is run. Raises ValueError where it is no YAML, or has more than data in it."""
    import yaml
    from vcr.serializers import yamlserializer

    read = cast("Callable[[str], object]", yamlserializer.deserialize)
    try:
        return read(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
