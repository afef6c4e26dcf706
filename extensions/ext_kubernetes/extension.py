"""The extension: its operations, in the order in which users read about them.

The manifest is prepared, so no operation is imported before the first call, and then only its module. A thread imports
the client library.
"""

from __future__ import annotations

import ext_sdk

from .config import KubernetesConfig

# The operations, each with its module in `operations`.
MODULES = {
    "create-namespace": "namespaces",
    "delete-generated-namespaces": "namespaces",
    "delete-namespace": "namespaces",
    "apply": "apply",
    "create": "create",
    "replace": "create",
    "create-secret": "create",
    "create-configmap": "create",
    "get": "get",
    "patch": "patch",
    "delete": "delete",
    "condition": "wait",
    "wait": "wait",
    "stable": "wait",
    "assert": "assertion",
    "rollout": "rollout",
    "scale": "patch",
    "label": "patch",
    "annotate": "patch",
    "events": "events",
    "exec": "exec",
    "copy": "exec",
    "port-forward": "port_forward",
    "logs": "logs",
    "run-job": "run_job",
    "helm-install": "helm",
    "helm-upgrade": "helm",
    "helm-list": "helm",
    "helm-uninstall": "helm",
    "auth-can-i": "access",
    "list-contexts": "contexts",
    "current-context": "contexts",
    "view-config": "contexts",
    "createNamespace": "aliases",
    "deleteGeneratedNamespaces": "aliases",
    "authCanI": "aliases",
    "listContexts": "aliases",
    "getCurrentContext": "aliases",
    "viewConfig": "aliases",
    "helmInstall": "aliases",
    "helmList": "aliases",
    "helmUninstall": "aliases",
}


def warm_up() -> None:
    """Import what the first operation needs, whichever it is."""
    from ext_kubernetes.api.lazy_import import warm_up as import_library

    import_library()


extension = ext_sdk.Extension(
    "kubernetes",
    version=ext_sdk.__version__,
    description="Make, change, await and check what is in a Kubernetes cluster",
    config=KubernetesConfig,
    warm_up=warm_up,
)

extension.operations.add_modules(f"{__package__}.operations", MODULES)
