"""Operation names of mcpchecker's own Kubernetes extension, so that its tasks run here unchanged."""

from __future__ import annotations

import ext_sdk
from ext_kubernetes.operations import access, contexts, helm, namespaces

# `create`, `delete` and `wait` have the same name there and here.
RELEASE: dict[str, object] = {"name": "web", "namespace": "web"}
CHART: dict[str, object] = {"chart": "oci://registry.example.com/charts/web", **RELEASE}
REVIEW: dict[str, object] = {"verb": "get", "resource": "pods", "as": "system:serviceaccount:web:builder"}

OPERATIONS = (
    ext_sdk.Operation(
        "createNamespace",
        namespaces.create_namespace,
        {"prefix": "eval"},
        same_as="create-namespace",
        on_invalid=namespaces.note_invalid,
    ),
    ext_sdk.Operation(
        "deleteGeneratedNamespaces",
        namespaces.delete_generated_namespaces,
        {"prefix": "eval"},
        same_as="delete-generated-namespaces",
    ),
    ext_sdk.Operation("authCanI", access.auth_can_i, REVIEW, same_as="auth-can-i"),
    ext_sdk.Operation("listContexts", contexts.list_contexts, {}, same_as="list-contexts"),
    ext_sdk.Operation("getCurrentContext", contexts.current_context, {}, same_as="current-context"),
    ext_sdk.Operation("viewConfig", contexts.view_config, {}, same_as="view-config"),
    ext_sdk.Operation("helmInstall", helm.helm_install, CHART, same_as="helm-install"),
    ext_sdk.Operation("helmList", helm.helm_list, {"namespace": "web"}, same_as="helm-list"),
    ext_sdk.Operation("helmUninstall", helm.drop_in_uninstall, RELEASE, same_as="helm-uninstall"),
)
