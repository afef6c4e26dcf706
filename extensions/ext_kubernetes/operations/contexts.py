"""`list-contexts`, `current-context`, `view-config`: what the kubeconfig says, without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.errors import NoConfiguration
from ext_kubernetes.api.kubeconfig import KINDS, read, source_of
from ext_kubernetes.objects.yaml_loader import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_kubernetes.api.kubeconfig import Entry, Kubeconfig


HIDDEN = "[redacted]"

# What of a user or a cluster may be seen; all else is hidden, so that a credential of a new kind is, too.
SHOWN = frozenset({
    *("server", "proxy-url", "certificate-authority", "insecure-skip-tls-verify", "tls-server-name"),
    *("disable-compression", "cluster", "user", "namespace", "username", "tokenFile"),
    *("client-certificate", "client-key", "as", "as-groups"),
})  # fmt: skip


class NoArgs(ext_sdk.Args):
    """Nothing."""


class ViewConfig(ext_sdk.Args):
    """How much."""

    minify: Annotated[bool, Meta(description="The current context alone, with its cluster and its user")] = False


def list_contexts(args: NoArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the contexts of the kubeconfig."""
    del args
    config = _read(context)
    if not config.contexts:
        return ext_sdk.Result.failed("no contexts found in kubeconfig")
    outputs: dict[str, str | int | bool] = {
        "current": config.current,
        "count": len(config.contexts),
        "contexts": "\n".join(config.contexts),
    }
    return ext_sdk.Result.ok(f"Found {len(config.contexts)} context(s), current: {config.current}", outputs=outputs)


def current_context(args: NoArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Say which context operations use, and its cluster, user and namespace."""
    del args
    config = _read(context)
    if not config.current:
        return ext_sdk.Result.failed("no current context set in kubeconfig")
    entry = config.context()
    outputs = {"context": config.current} | {key: str(entry.get(key, "")) for key in ("cluster", "user", "namespace")}
    return ext_sdk.Result.ok(f"Current context: {config.current}", outputs=outputs)


def view_config(args: ViewConfig, context: ext_sdk.Context) -> ext_sdk.Result:
    """Put out the kubeconfig as YAML; credentials, and what might be one, are hidden."""
    config = _read(context)
    parts: dict[str, Mapping[str, Entry]] = {
        "clusters": config.clusters,
        "contexts": config.contexts,
        "users": config.users,
    }
    if args.minify:
        parts = _minified(config)
    content: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "current-context": config.current}
    for kind, entries in parts.items():
        word = kind.removesuffix("s")
        content[kind] = [{"name": name, word: _shown(entry)} for name, entry in entries.items()]
    return ext_sdk.Result.ok("Kubeconfig retrieved", outputs={"config": dump_yaml(content)})


def _read(context: ext_sdk.Context) -> Kubeconfig:
    source = source_of(context)
    if source.in_cluster:
        raise NoConfiguration("no kubeconfig", error="there is no kubeconfig: the service account of this pod is used")
    config = read(source)
    config.current = source.context or config.current
    return config


def _minified(config: Kubeconfig) -> dict[str, Mapping[str, Entry]]:
    if config.current not in config.contexts:
        raise NoConfiguration(f'current context "{config.current}" not found in kubeconfig')
    entry = config.contexts[config.current]
    parts: dict[str, Mapping[str, Entry]] = {"contexts": {config.current: entry}}
    for kind, entries in (("clusters", config.clusters), ("users", config.users)):
        word = kind.removesuffix("s")
        name = str(entry.get(word) or "")
        if not name and word == "cluster":
            raise NoConfiguration(f'context "{config.current}" has no cluster')
        if name and name not in entries:
            raise NoConfiguration(f'{word} "{name}" not found in kubeconfig')
        parts[kind] = {name: entries[name]} if name else {}
    return {kind: parts[kind] for kind in KINDS}


def _shown(entry: Entry) -> Entry:
    found = {key: value if key in SHOWN else HIDDEN for key, value in entry.items()}
    return found | {key: _address(found[key]) for key in ("server", "proxy-url") if key in found}


def _address(value: object) -> str:
    """Return an address without user, password and query."""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return HIDDEN


OPERATIONS = (
    ext_sdk.Operation("list-contexts", list_contexts, {}),
    ext_sdk.Operation("current-context", current_context, {}),
    ext_sdk.Operation("view-config", view_config, {"minify": True}),
)
