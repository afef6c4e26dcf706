"""The kinds of a server: two requests by aggregated discovery, or one for each group if the server does not have it.

The first request has the kinds without a group, and is enough for those.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ext_sdk.core.text import closest, suggest

from .errors import ApiError, UnknownKind
from .paths import DISCOVERY, ApiPath, api_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ext_sdk import Deadline


AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)

CORE_PATH, GROUPS_PATH = DISCOVERY


class Requests(Protocol):
    """What is needed of a client."""

    def request(self, method: str, path: ApiPath, *, accept: str = "application/json", deadline: Deadline) -> object:
        """Send a request."""

    @property
    def settling(self) -> bool:
        """Whether the server has come back only now: it finds its definitions a moment after it answers."""


class Resource(NamedTuple):
    """A kind in one version of its API group, and how its objects are addressed."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    singular: str = ""

    @property
    def api_version(self) -> str:
        """As objects have it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """As people type it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> ApiPath:
        """The path of an object, or of the list of them; see api_path."""
        where = namespace if self.namespaced else ""
        return api_path(self.group, self.version, self.plural, where, name=name, subresource=subresource)


class Discovery:
    """The kinds of one server, kept in memory, and asked for again when an unknown one is named.

    Args:
        client: for the requests.
    """

    def __init__(self, client: Requests) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._found: tuple[Resource, ...] = ()
        self._core: tuple[Resource, ...] = ()  # those without a group, which come first

    def resources(self, deadline: Deadline) -> tuple[Resource, ...]:
        """All kinds in the server's order, the preferred version of a group first. Raises KubernetesError."""
        with self._lock:
            if not self._found:
                self._find_core(deadline)
                self._found = self._core + tuple(_discovered(self._client, GROUPS_PATH, deadline))
            return self._found

    def _core_resources(self, deadline: Deadline) -> tuple[Resource, ...]:
        with self._lock:
            self._find_core(deadline)
            return self._core

    def _find_core(self, deadline: Deadline) -> None:
        if not self._core:
            self._core = tuple(_discovered(self._client, CORE_PATH, deadline))

    def resource(self, name: str, api_version: str | None = None, *, deadline: Deadline) -> Resource:
        """The kind that a name means.

        Args:
            name: kind, plural, singular or short name in any case, with the group behind a dot where it is not clear:
                `Pod`, `deploy`, `certificates.cert-manager.io`, `deployments.v1.apps`.
            api_version: such as `apps/v1`; None: the preferred version of the first group that has it.
            deadline: for the requests, where any are needed.

        Raises:
            UnknownKind: the server has none, not even after it was asked again.
            KubernetesError: it can't be asked.
        """
        if found := _matching(self._core_resources(deadline), name, api_version):
            return found
        known: tuple[Resource, ...] = ()
        for _ in ("what is known", "what is so now"):
            self._forget(known)
            known = self.resources(deadline)
            if found := _matching(known, name, api_version):
                return found
        unknown = _unknown(known, name, api_version)
        unknown.passing = self._client.settling
        raise unknown

    def _forget(self, known: tuple[Resource, ...]) -> None:
        """Ask again the next time, unless somebody else has asked in the meantime."""
        with self._lock:
            if self._found is known:
                self._found = ()
                self._core = () if known else self._core


def _matching(known: Iterable[Resource], name: str, api_version: str | None) -> Resource | None:
    if api_version is not None:
        known = [one for one in known if one.api_version == api_version]
        exact = next((one for one in known if one.kind == name), None)
        return exact or next((one for one in known if _is(one, name.lower())), None)
    word, _, group = name.lower().partition(".")
    for one in known:
        if _is(one, word) and (not group or group in {one.group, f"{one.version}.{one.group}", one.version}):
            return one
    return None


def _is(resource: Resource, word: str) -> bool:
    return word in {resource.plural, resource.singular, resource.kind.lower(), *resource.short_names}


def _unknown(known: Sequence[Resource], name: str, api_version: str | None) -> UnknownKind:
    """What to say: the kind in other versions, or names like it."""
    word = name.lower().partition(".")[0]
    where = f" in {api_version}" if api_version is not None else ""
    elsewhere = sorted({f"{one.kind} of {one.api_version}" for one in known if _is(one, word)})
    if elsewhere:
        told = "it has " + ", ".join(elsewhere)
    elif near := closest(name, sorted({one.kind for one in known})):
        versions = ", ".join(dict.fromkeys(one.api_version for one in known if one.kind == near))
        told = f"did you mean {near} of {versions}?"
    elif api_version is not None and not any(one.api_version == api_version for one in known):
        told = f"nothing is in {api_version}; {suggest(api_version, dict.fromkeys(one.api_version for one in known))}"
    else:
        spellings = [word for one in known for word in (one.plural, *one.short_names)]
        told = suggest(name, dict.fromkeys([*(one.kind for one in known), *spellings]))
    return UnknownKind(
        f"unknown kind {name!r}{where}",
        error=f"the server has no kind {name!r}{where}; {told}{'' if told.endswith('?') else '.'} "
        "A custom resource needs its definition (CRD) first",
    )


def _discovered(client: Requests, path: ApiPath, deadline: Deadline) -> Iterator[Resource]:
    answer = client.request("GET", path, accept=f"{AGGREGATED},application/json", deadline=deadline)
    if not isinstance(answer, dict):
        return
    if answer.get("kind") == "APIGroupDiscoveryList":
        yield from _aggregated(answer)
    else:
        yield from _legacy(client, answer, deadline)


def _aggregated(answer: dict[str, object]) -> Iterator[Resource]:
    for item in _dicts(answer.get("items")):
        metadata = item.get("metadata")
        group = _text(metadata.get("name")) if isinstance(metadata, dict) else ""
        for version in _dicts(item.get("versions")):
            for one in _dicts(version.get("resources")):
                kind = one.get("responseKind")
                kind = kind if isinstance(kind, dict) else {}
                yield Resource(
                    group,
                    _text(version.get("version")),
                    _text(kind.get("kind")),
                    _text(one.get("resource")),
                    one.get("scope") == "Namespaced",
                    _texts(one.get("verbs")),
                    tuple(_text(sub.get("subresource")) for sub in _dicts(one.get("subresources"))),
                    _texts(one.get("shortNames")),
                    _text(one.get("singularResource")),
                )


def _legacy(client: Requests, answer: dict[str, object], deadline: Deadline) -> Iterator[Resource]:
    """What `/api` and `/apis` list, group by group; one that does not answer is passed over, as its kinds are."""
    versions = [("", api_path("", version), version) for version in _texts(answer.get("versions"))]
    for group in _dicts(answer.get("groups")):
        preferred = group.get("preferredVersion")
        first = _text(preferred.get("version")) if isinstance(preferred, dict) else ""
        names = [_text(one.get("version")) for one in _dicts(group.get("versions"))]
        name = _text(group.get("name"))
        names.sort(key=first.__ne__)
        versions += [(name, api_path(name, one), one) for one in names]
    for name, path, version in versions:
        try:
            found = client.request("GET", path, deadline=deadline)
        except ApiError:
            continue
        listed = _dicts(found.get("resources")) if isinstance(found, dict) else []
        for one in listed:
            plural = _text(one.get("name"))
            if "/" not in plural:
                subresources = (_text(other.get("name")).partition("/") for other in listed)
                yield Resource(
                    name,
                    version,
                    _text(one.get("kind")),
                    plural,
                    one.get("namespaced") is True,
                    _texts(one.get("verbs")),
                    tuple(sub for of, _, sub in subresources if of == plural and sub),
                    _texts(one.get("shortNames")),
                    _text(one.get("singularName")),
                )


def _dicts(value: object) -> list[dict[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
