"""Operations `list-contexts`, `current-context` and `view-config`: the kubeconfig, without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.client import source_for
from ext_kubernetes.api.errors import NoConfiguration
from ext_kubernetes.api.kubeconfig import public_url, read
from ext_kubernetes.config import KubeconfigArgs
from ext_kubernetes.objects.yaml_loader import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_kubernetes.api.kubeconfig import Entry, Kubeconfig
    from ext_kubernetes.objects.fields import Outputs


REDACTED = "[redacted]"

# Allowlist for users and clusters, so that credentials of a new kind are redacted, too.
SHOWN = frozenset({
    *("server", "proxy-url", "certificate-authority", "insecure-skip-tls-verify", "tls-server-name"),
    *("disable-compression", "cluster", "user", "namespace", "username", "tokenFile"),
    *("client-certificate", "client-key", "as", "as-groups"),
})  # fmt: skip


class ConfigArgs(KubeconfigArgs):
    """Arguments of `list-contexts` and `current-context`."""


class ViewConfig(KubeconfigArgs):
    """Arguments of `view-config`."""

    minify: Annotated[bool, Meta(description="Show only the current context, its cluster and its user")] = False


def list_contexts(args: ConfigArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the contexts of the kubeconfig."""
    config = _read(context, args)
    if not config.contexts:
        return ext_sdk.Result.failed("no contexts found in kubeconfig")
    outputs: Outputs = {
        "current": config.current,
        "count": len(config.contexts),
        "contexts": "\n".join(config.contexts),
    }
    return ext_sdk.Result.ok(f"Found {len(config.contexts)} context(s), current: {config.current}", outputs=outputs)


def current_context(args: ConfigArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Show the context that operations use, with its cluster, user and namespace."""
    config = _read(context, args)
    if not config.current:
        return ext_sdk.Result.failed("no current context set in kubeconfig")
    entry = config.context()
    outputs = {"context": config.current} | {key: str(entry.get(key, "")) for key in ("cluster", "user", "namespace")}
    return ext_sdk.Result.ok(f"Current context: {config.current}", outputs=outputs)


def view_config(args: ViewConfig, context: ext_sdk.Context) -> ext_sdk.Result:
    """Output the kubeconfig as YAML, with credentials and unknown fields redacted."""
    config = _read(context, args)
    sections: dict[str, Mapping[str, Entry]] = {
        "clusters": config.clusters,
        "contexts": config.contexts,
        "users": config.users,
    }
    if args.minify:
        if config.current not in config.contexts:
            raise NoConfiguration(f'current context "{config.current}" not found in kubeconfig')
        entry = config.contexts[config.current]
        sections["contexts"] = {config.current: entry}
        for kind in ("clusters", "users"):
            member = kind.removesuffix("s")
            name = str(entry.get(member) or "")
            if not name and member == "cluster":
                raise NoConfiguration(f'context "{config.current}" has no cluster')
            if name and name not in sections[kind]:
                raise NoConfiguration(f'{member} "{name}" not found in kubeconfig')
            sections[kind] = {name: sections[kind][name]} if name else {}
    content: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "current-context": config.current}
    for kind, entries in sections.items():
        member = kind.removesuffix("s")
        listed = []
        for name, entry in entries.items():
            shown: Entry = {key: value if key in SHOWN else REDACTED for key, value in entry.items()}
            for key in {"server", "proxy-url"} & shown.keys():  # a user, a password or a query may hold credentials
                address = shown[key]
                shown[key] = public_url(address if isinstance(address, str) else "")
            listed.append({"name": name, member: shown})
        content[kind] = listed
    return ext_sdk.Result.ok("Kubeconfig retrieved", outputs={"config": dump_yaml(content)})


def _read(context: ext_sdk.Context, args: KubeconfigArgs) -> Kubeconfig:
    source = source_for(context, args)
    if source.in_cluster:
        raise NoConfiguration("no kubeconfig", error="no kubeconfig: the service account of this pod is used")
    config = read(source)
    return config._replace(current=source.context or config.current)


CONTEXTS = {"current": "current context", "count": "number of contexts", "contexts": "their names, one per line"}
CURRENT = {
    "context": "name of the context",
    "cluster": "name of its cluster",
    "user": "name of its user",
    "namespace": "its namespace; may be empty",
}
CONFIG = {"config": "kubeconfig as YAML, with credentials redacted"}

OPERATIONS = (
    ext_sdk.Operation(
        "list-contexts",
        list_contexts,
        {},
        outputs=CONTEXTS,
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "current-context",
        current_context,
        {},
        outputs=CURRENT,
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "view-config",
        view_config,
        {"minify": True},
        outputs=CONFIG,
        title="View kubeconfig",
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "listContexts",
        list_contexts,
        {},
        same_as="list-contexts",
        outputs=CONTEXTS,
    ),
    ext_sdk.Operation(
        "getCurrentContext",
        current_context,
        {},
        same_as="current-context",
        outputs=CURRENT,
    ),
    ext_sdk.Operation(
        "viewConfig",
        view_config,
        {},
        same_as="view-config",
        outputs=CONFIG,
    ),
)
