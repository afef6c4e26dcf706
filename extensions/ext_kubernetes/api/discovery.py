"""Kinds of a server, and the paths of their objects.

Discovery is two requests if it is aggregated, or one for each group if the server does not support that. The first
request returns the kinds of the core group, and suffices for those. Paths are built only here, so that no argument can
change the object that a path addresses. The type checker enforces it: requests accept an ApiPath, and only this module
creates one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, NewType, Protocol

from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.objects.strategic_merge import MergeRules, merge_rules
from ext_sdk.core.text import closest, suggest

from .errors import ApiError, InvalidName, UnknownKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ext_sdk import Deadline


ApiPath = NewType("ApiPath", str)
DISCOVERY = (ApiPath("/api"), ApiPath("/apis"))
FORBIDDEN_NAMES = (".", "..")
FORBIDDEN_CHARACTERS = ("/", "%")


def api_path(
    group: str, version: str, plural: str = "", namespace: str = "", *, name: str = "", subresource: str = ""
) -> ApiPath:
    """Return the path of an object, of the list of a kind, or of an API group.

    Args:
        group: of the API; "" for the core group.
        version: of the group.
        plural: of the kind; "" for the group itself.
        namespace: "" for all, and for kinds without namespaces.
        name: of the object; "" for the list.
        subresource: such as `status` or `scale`; several segments are separated by `/`.

    Raises:
        InvalidName: a part is not valid as a segment of a path.
    """
    from urllib.parse import quote

    parts = [("API group", group), ("API version", version)] if group else [("API version", version)]
    if namespace:
        parts += [("resource", "namespaces"), ("namespace", namespace)]
    parts += [("resource", plural)] if plural else []
    parts += [("resource name", name)] if name else []
    parts += [("subresource", part) for part in subresource.split("/")] if subresource else []
    path = "/apis" if group else "/api"
    for kind, part in parts:
        if not part or part in FORBIDDEN_NAMES or "/" in part or "%" in part:
            check_name(kind, part)
        path += f"/{quote(part, safe=':', errors='surrogatepass')}"
    return ApiPath(path)


def core_path(plural: str, namespace: str = "", name: str = "", subresource: str = "") -> ApiPath:
    """Return a path of the core group; see api_path."""
    return api_path("", "v1", plural, namespace, name=name, subresource=subresource)


def check_name(what: str, value: str) -> None:
    """Raise InvalidName if a value is not valid as a segment of a path, by the rules of kubectl."""
    if value and value not in FORBIDDEN_NAMES and "/" not in value and "%" not in value:
        return
    problems = [f"may not be '{value}'"] if value in FORBIDDEN_NAMES else []
    problems += [f"may not contain '{character}'" for character in FORBIDDEN_CHARACTERS if character in value]
    problems += ["may not be empty"] if not value else []
    raise InvalidName(what, value, problems)


AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)

CORE_PATH, GROUPS_PATH = DISCOVERY


class Requests(Protocol):
    """Client, as far as discovery uses it."""

    def request(self, method: str, path: ApiPath, *, accept: str = "application/json", deadline: Deadline) -> object:
        """Send a request."""

    @property
    def settling(self) -> bool:
        """Return True shortly after a start of the server: it loads definitions after its first responses."""


class Resource(NamedTuple):
    """A kind in one version of its API group, and the address of its objects."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    singular: str = ""
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Return the apiVersion of objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """Return the name that users type: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> ApiPath:
        """Return the path of an object or of the list; see api_path."""
        where = namespace if self.namespaced else ""
        return api_path(self.group, self.version, self.plural, where, name=name, subresource=subresource)


class Discovery:
    """Kinds of one server, cached in memory; read again if a name is unknown."""

    def __init__(self, client: Requests) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._all: tuple[Resource, ...] = ()
        self._core: tuple[Resource, ...] = ()  # kinds of the core group, which come first
        self._rules_lock = threading.Lock()
        self._rules: dict[str, MergeRules] = {}  # by API version
        # Kinds with the names by which they were found in them.
        self._matches: tuple[tuple[Resource, ...], dict[tuple[str, str | None], Resource]] = ((), {})

    def cached(self, name: str, api_version: str | None = None) -> Resource | None:
        """Return the kind with a name without a request; None if it is not cached. See `resource`."""
        known, (of, matches) = self._all or self._core, self._matches
        if of is not known:
            self._matches = _, matches = known, {}
        resource = matches.get((name, api_version))
        if resource is None and (resource := _matching(known, name, api_version)):
            matches[name, api_version] = resource
        return resource

    def resource(self, name: str, api_version: str | None = None, *, deadline: Deadline) -> Resource:
        """Return the kind with a name.

        Args:
            name: kind, plural, singular or short name in any case; with the group after a dot if ambiguous:
                `Pod`, `deploy`, `certificates.cert-manager.io`, `deployments.v1.apps`.
            api_version: such as `apps/v1`; None: the preferred version of the first group that has the kind.

        Raises:
            UnknownKind: the server does not have it, also after its kinds were read again; or it is a category.
            KubernetesError: a request failed.
        """
        resource, *others = self.resources(name, api_version, deadline=deadline)
        if others:
            kinds = ", ".join(one.plural for one in (resource, *others))
            raise UnknownKind(f"{name} is a category", error=f"expected a kind, found the category {name!r} of {kinds}")
        return resource

    def resources(self, name: str, api_version: str | None = None, *, deadline: Deadline) -> tuple[Resource, ...]:
        """Return the kind with a name, or the kinds of a category such as `all`; see `resource`."""
        if resource := _matching(self._read(deadline, core_only=True), name, api_version):
            return (resource,)
        known = self._read(deadline, core_only=False)
        if found := _kind_or_category(known, name, api_version):
            return found
        with self._lock:
            if self._all is known:  # not yet read again by another thread
                self._all = self._core = ()
        known = self._read(deadline, core_only=False)
        if found := _kind_or_category(known, name, api_version):
            return found
        unknown = _unknown(known, name, api_version)
        unknown.transient = self._client.settling
        raise unknown

    def listable(self, deadline: Deadline) -> tuple[Resource, ...]:
        """Return the kinds whose objects can be listed, each in its preferred version; they are read again first."""
        with self._lock:
            self._all = self._core = ()
        return _listable(self._read(deadline, core_only=False))

    def merge_rules(self, resource: Resource, *, deadline: Deadline) -> MergeRules:
        """Return the merge rules of a kind's API version; they are read again if they lack the kind.

        Raises:
            KubernetesError: the server has no OpenAPI v3 document of the API version, or the request failed.
        """
        with self._rules_lock:  # the first caller reads the document, concurrent callers wait for it
            rules = self._rules.get(resource.api_version)
            if rules is None or resource.kind not in rules.kinds:
                path = ApiPath(f"/openapi/v3{api_path(resource.group, resource.version)}")
                document = self._client.request("GET", path, deadline=deadline)
                rules = self._rules[resource.api_version] = merge_rules(document, resource.group, resource.version)
            return rules

    def _read(self, deadline: Deadline, *, core_only: bool) -> tuple[Resource, ...]:
        """Return the kinds in the server's order, the preferred version of a group first. Raises KubernetesError."""
        with self._lock:
            if not self._core:
                self._core = tuple(_discover(self._client, CORE_PATH, deadline))
            if core_only:
                return self._core
            if not self._all:
                self._all = self._core + tuple(_discover(self._client, GROUPS_PATH, deadline))
            return self._all


def _matching(known: Iterable[Resource], name: str, api_version: str | None) -> Resource | None:
    if api_version is not None:
        known = [resource for resource in known if resource.api_version == api_version]
        exact = next((resource for resource in known if resource.kind == name), None)
        return exact or next((resource for resource in known if _has_name(resource, name.lower())), None)
    word, _, group = name.lower().partition(".")
    for resource in known:
        groups = ("", resource.group, f"{resource.version}.{resource.group}", resource.version)
        if _has_name(resource, word) and group in groups:
            return resource
    return None


def _kind_or_category(known: Sequence[Resource], name: str, api_version: str | None) -> tuple[Resource, ...]:
    if resource := _matching(known, name, api_version):
        return (resource,)
    return () if api_version else _listable(kind for kind in known if name.lower() in kind.categories)


def _listable(known: Iterable[Resource]) -> tuple[Resource, ...]:
    preferred: dict[tuple[str, str], Resource] = {}
    for resource in known:
        if "list" in resource.verbs:
            preferred.setdefault((resource.group, resource.plural), resource)
    return tuple(preferred.values())


def _has_name(resource: Resource, word: str) -> bool:
    return word in {resource.plural, resource.singular, resource.kind.lower(), *resource.short_names}


def _unknown(known: Sequence[Resource], name: str, api_version: str | None) -> UnknownKind:
    """Return the error for an unknown kind, with the kind in other versions, or similar names."""
    word = name.lower().partition(".")[0]
    where = f" in {api_version}" if api_version is not None else ""
    others = sorted({f"{resource.kind} of {resource.api_version}" for resource in known if _has_name(resource, word)})
    versions = dict.fromkeys(resource.api_version for resource in known)
    if others:
        advice = "it has " + ", ".join(others)
    elif near := closest(name, sorted({resource.kind for resource in known})):
        of = ", ".join(dict.fromkeys(resource.api_version for resource in known if resource.kind == near))
        advice = f"did you mean {near} of {of}?"
    elif api_version is not None and api_version not in versions:
        advice = f"it does not have {api_version}; {suggest(api_version, versions)}"
    else:
        names = [name for resource in known for name in (resource.plural, *resource.short_names, *resource.categories)]
        advice = suggest(name, dict.fromkeys([*(resource.kind for resource in known), *names]))
    return UnknownKind(
        f"unknown kind {name!r}{where}",
        error=f"the server has no kind {name!r}{where}; {advice}{'' if advice.endswith('?') else '.'} "
        "A custom resource requires its definition (CRD) first",
    )


def _discover(client: Requests, path: ApiPath, deadline: Deadline) -> Iterator[Resource]:
    document = members(client.request("GET", path, accept=f"{AGGREGATED},application/json", deadline=deadline))
    if document.get("kind") != "APIGroupDiscoveryList":
        yield from _legacy_discovery(client, document, deadline)
        return
    for group in items(document, "items"):
        for version in items(group, "versions"):
            for resource in items(version, "resources"):
                yield Resource(
                    text(group, "metadata", "name"),
                    text(version, "version"),
                    text(resource, "responseKind", "kind"),
                    text(resource, "resource"),
                    resource.get("scope") == "Namespaced",
                    _texts(resource.get("verbs")),
                    tuple(text(sub, "subresource") for sub in items(resource, "subresources")),
                    _texts(resource.get("shortNames")),
                    text(resource, "singularResource"),
                    _texts(resource.get("categories")),
                )


def _legacy_discovery(client: Requests, document: dict[str, object], deadline: Deadline) -> Iterator[Resource]:
    """Yield the kinds that `/api` or `/apis` lists, group by group; a group that does not respond is skipped."""
    versions = [("", api_path("", version), version) for version in _texts(document.get("versions"))]
    for group in items(document, "groups"):
        name, preferred = text(group, "name"), text(group, "preferredVersion", "version")
        names = sorted((text(version, "version") for version in items(group, "versions")), key=preferred.__ne__)
        versions += [(name, api_path(name, version), version) for version in names]
    for name, path, version in versions:
        try:
            listed = items(client.request("GET", path, deadline=deadline), "resources")
        except ApiError:
            continue
        for resource in listed:
            plural = text(resource, "name")
            if "/" not in plural:
                subresources = (text(other, "name").partition("/") for other in listed)
                yield Resource(
                    name,
                    version,
                    text(resource, "kind"),
                    plural,
                    resource.get("namespaced") is True,
                    _texts(resource.get("verbs")),
                    tuple(sub for of, _, sub in subresources if of == plural and sub),
                    _texts(resource.get("shortNames")),
                    text(resource, "singularName"),
                    _texts(resource.get("categories")),
                )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
