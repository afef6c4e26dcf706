"""The extension and its operations, in the order of the reference page.

The manifest is prepared, so operations are imported at their first call, each with its module only. A thread imports
the client library.
"""

from __future__ import annotations

import ext_sdk

from .config import KubernetesConfig

# Operations, and their modules in `operations`.
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
    "snapshot": "snapshot",
    "assert-changes": "snapshot",
    "rollout": "rollout",
    "scale": "patch",
    "label": "patch",
    "annotate": "patch",
    "cordon": "nodes",
    "uncordon": "nodes",
    "taint": "nodes",
    "drain": "nodes",
    "events": "events",
    "diagnostics": "diagnostics",
    "exec": "exec",
    "copy": "exec",
    "port-forward": "port_forward",
    "logs": "logs",
    "run-job": "run_job",
    "helm-install": "helm",
    "helm-upgrade": "helm",
    "helm-status": "helm",
    "helm-values": "helm",
    "helm-rollback": "helm",
    "helm-list": "helm",
    "helm-uninstall": "helm",
    "auth-can-i": "access",
    "create-token": "access",
    "list-contexts": "contexts",
    "current-context": "contexts",
    "view-config": "contexts",
    # Names of mcpchecker's own extension, so that its tasks run unchanged. `create`, `delete` and `wait` are the same.
    "createNamespace": "namespaces",
    "deleteGeneratedNamespaces": "namespaces",
    "authCanI": "access",
    "listContexts": "contexts",
    "getCurrentContext": "contexts",
    "viewConfig": "contexts",
    "helmInstall": "helm",
    "helmList": "helm",
    "helmUninstall": "helm",
}


def warm_up() -> None:
    """Import the client library, which every operation needs."""
    from ext_kubernetes.api.package_patches import warm_up as import_library

    import_library()


extension = ext_sdk.Extension(
    "kubernetes",
    version=ext_sdk.__version__,
    description="Create, change, wait for and check objects in a Kubernetes cluster",
    config=KubernetesConfig,
    warm_up=warm_up,
)

extension.operations.add_modules(f"{__package__}.operations", MODULES)
