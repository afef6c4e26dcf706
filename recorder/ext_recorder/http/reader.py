"""Reader of NAME.http.yaml, or of a cassette that vcrpy itself has recorded. `writer` describes the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.paths import target_of
from ext_recorder.cassette.writer import hold
from ext_recorder.errors import CassetteError, UsageError

from .interaction import Body, Interaction, call_id
from .writer import VERSION, load_yaml, without_clients

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .interaction import Headers


class Document:
    """Content of a file.

    Attributes:
        values: all members except the interactions.
        interactions: in the order in which their requests began.
    """

    def __init__(self, values: Mapping[str, object], interactions: list[Interaction]) -> None:
        self.values = values
        self.interactions = interactions

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a value that is a mapping; an empty one if it is missing."""
        value = self.values.get(name)
        return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}

    def text(self, name: str) -> str:
        """Return a value that is a text; "" if it is missing."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


def load(path: Path) -> Document:
    """Read a file of the recorder or of vcrpy.

    Raises:
        CassetteError: the file cannot be read, or has another format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CassetteError(path, 0, "no such file", "record it: ext-recorder record --http …") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CassetteError(path, 0, f"cannot be read: {error}") from None
    try:
        content = load_yaml(text)
    except ValueError as error:
        raise CassetteError(path, 0, f"not YAML of plain data: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("interactions"), list):
        raise CassetteError(path, 0, "expected a mapping with `interactions`, as vcrpy and record --http write it")
    version = content.get("http", VERSION)
    if version != VERSION:
        raise CassetteError(path, 0, f"version {version} of the format; this ext-recorder supports version {VERSION}")
    interactions = []
    for number, item in enumerate(content.pop("interactions"), 1):
        try:
            interactions.append(_interaction(item))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"interaction {number} is not valid: {type(error).__name__}: {error}"
            raise CassetteError(path, 0, problem) from None
    if "http" not in content:
        for interaction in interactions:
            _fix_headers(interaction)
    return Document(content, sorted(interactions, key=lambda interaction: interaction.time))


def _fix_headers(interaction: Interaction) -> None:
    """Fix the headers of an interaction in a file of vcrpy, where bodies are in one piece, and may be decoded."""
    data = interaction.body.whole() if interaction.body is not None else b""
    is_encoded = data.startswith((b"\x1f\x8b", b"\x78"))
    removed = {"transfer-encoding", "content-length"} | (set() if is_encoded else {"content-encoding"})
    interaction.headers = [(name, value) for name, value in interaction.headers if name.lower() not in removed]
    if interaction.method != "HEAD":
        interaction.headers.append(("Content-Length", str(len(data))))


def _interaction(item: Mapping[str, object]) -> Interaction:
    request, response = item["request"], item["response"]
    if not isinstance(request, dict) or not isinstance(response, dict):
        raise TypeError("expected mappings as `request` and `response`")
    interaction = Interaction(str(request["method"]), str(request["uri"]), _pairs(request.get("headers")))
    interaction.request_body = Body(_bytes(request.get("body")))
    status, body = response["status"], response["body"]
    if not isinstance(status, dict) or not isinstance(body, dict):
        raise TypeError("expected mappings as `status` and `body`")
    interaction.status, interaction.reason = int(status["code"]), str(status.get("message") or "")
    interaction.headers, order = _pairs(response.get("headers")), item.get("order")
    names = [str(name) for name in order] if isinstance(order, list) else []
    # The headers of one name are grouped in the file. Headers edited by hand keep their order there.
    if sorted(names) == sorted(name for name, _ in interaction.headers):
        values: dict[str, list[str]] = {}
        for name, value in interaction.headers:
            values.setdefault(name, []).append(value)
        interaction.headers = [(name, values[name].pop(0)) for name in names]
    interaction.body = Body(_bytes(body.get("string")))
    interaction.call = call_id(item.get("call"))
    interaction.time, interaction.elapsed = _number(item.get("t")), _number(item.get("elapsed"))
    interaction.http_version = str(item.get("http_version") or "1.1")
    error = item.get("error")
    interaction.error = dict(error) if isinstance(error, dict) else None
    interaction.chunks, interaction.reads = _sizes(item.get("chunks")), _sizes(item.get("reads"))
    interaction.cut = item.get("cut") is True
    interaction.peer, interaction.socket = str(item.get("peer") or ""), str(item.get("socket") or "")
    return interaction


def _sizes(value: object) -> list[int]:
    return [int(size) for size in value] if isinstance(value, list) else []


def _pairs(headers: object) -> Headers:
    pairs: Headers = []
    for name, values in headers.items() if isinstance(headers, dict) else ():
        pairs += [(str(name), str(value)) for value in (values if isinstance(values, (list, tuple)) else [values])]
    return pairs


def _bytes(body: object) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    raise TypeError(f"expected a body as text or !!binary, found {type(body).__name__}")


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


END = b"\nversion: 1\n"


LONGEST_END = 16 * 1024 * 1024


def end_values(path: Path) -> dict[str, str]:
    """Return the texts at the end of a file, such as `kubeconfig`, without reading its interactions."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LONGEST_END))
        values = load_yaml(file.read().rpartition(END)[2].decode("utf-8", "replace"))
    return {name: value for name, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}


def recover_traffic(partial: Path, path: Path, *, replace: bool = False) -> int:
    """Rename a partial file to its final name.

    Returns:
        Number of its interactions.

    Raises:
        UsageError: the final name exists.
        CassetteInUse: the file is still being recorded.
        CassetteError: the file is incomplete, or has another format.
        OSError: the file cannot be read or renamed.
    """
    path = type(path)(target_of(str(path)))
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name for the recovered file, or remove that one")
    with hold(partial):
        if END not in partial.read_bytes():
            raise CassetteError(
                partial,
                0,
                "its end, with the recorded names, clocks and TLS properties, is missing; it cannot be recovered",
                "record the session again, and remove this file",
            )
        without_clients()
        count = len(load(partial).interactions)
        partial.replace(path)
    return count
