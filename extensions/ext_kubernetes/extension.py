"""The extension: its operations, in the order in which users read about them.

The manifest is prepared, so nothing of an operation is needed before the first call, and then its family alone. The
client library is imported beside the session.
"""

from __future__ import annotations

import ext_sdk

from .config import KubernetesConfig

# The modules, each with the names of its OPERATIONS.
FAMILIES = {
    "namespaces": ("create-namespace", "delete-generated-namespaces", "delete-namespace"),
    "apply": ("apply",),
    "create": ("create", "replace"),
    "secrets": ("create-secret", "create-configmap"),
    "get": ("get",),
    "patch": ("patch",),
    "delete": ("delete",),
    "condition": ("condition",),
    "wait": ("wait",),
    "stable": ("stable",),
    "assert_": ("assert",),
    "rollout": ("rollout",),
    "scale": ("scale",),
    "labels": ("label", "annotate"),
    "events": ("events",),
    "exec_": ("exec",),
    "copy_": ("copy",),
    "port_forward": ("port-forward",),
    "logs": ("logs",),
    "jobs": ("run-job",),
    "helm": ("helm-install", "helm-upgrade", "helm-list", "helm-uninstall"),
    "access": ("auth-can-i",),
    "contexts": ("list-contexts", "current-context", "view-config"),
    "dropin": (
        "createNamespace",
        "deleteGeneratedNamespaces",
        "authCanI",
        "listContexts",
        "getCurrentContext",
        "viewConfig",
        "helmInstall",
        "helmList",
        "helmUninstall",
    ),
}


def warm_up() -> None:
    """Import what the first operation needs, whichever it is."""
    from .client.importing import warm_up as import_library

    import_library()


extension = ext_sdk.Extension(
    "kubernetes",
    version=ext_sdk.__version__,
    description="Make, change, await and check what is in a Kubernetes cluster",
    config=KubernetesConfig,
    warm_up=warm_up,
)

extension.operations.add_families(__package__, FAMILIES)
