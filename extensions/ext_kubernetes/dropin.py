"""The names of another extension's operations, so that a task written for it runs here: the same operations."""

from __future__ import annotations

import ext_sdk

from . import access, contexts, helm, namespaces

# `create`, `delete` and `wait` have the same name there and here.
OPERATIONS = (
    ext_sdk.Operation("createNamespace", namespaces.create_namespace, {"prefix": "eval"}),
    ext_sdk.Operation("deleteGeneratedNamespaces", namespaces.delete_generated_namespaces, {}),
    ext_sdk.Operation(
        "authCanI", access.auth_can_i, {"verb": "get", "resource": "pods", "as": "system:serviceaccount:web:builder"}
    ),
    ext_sdk.Operation("listContexts", contexts.list_contexts, {}),
    ext_sdk.Operation("getCurrentContext", contexts.current_context, {}),
    ext_sdk.Operation("viewConfig", contexts.view_config, {}),
    ext_sdk.Operation(
        "helmInstall", helm.helm_install, {"chart": "oci://registry.example.com/charts/web", "name": "web"}
    ),
    ext_sdk.Operation("helmList", helm.helm_list, {}),
    ext_sdk.Operation("helmUninstall", helm.drop_in_uninstall, {"name": "web"}),
)
