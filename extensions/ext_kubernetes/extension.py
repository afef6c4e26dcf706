"""The extension: its operations, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from . import access, apply, client, contexts, create, delete, dropin, get, namespaces, patch, secrets
from .config import KubernetesConfig

extension = ext_sdk.Extension(
    "kubernetes",
    version=ext_sdk.__version__,
    description="Make, change, await and check what is in a Kubernetes cluster",
    config=KubernetesConfig,
    warm_up=client.warm_up,
)

FAMILIES = (
    namespaces.OPERATIONS,
    apply.OPERATIONS,
    create.OPERATIONS,
    secrets.OPERATIONS,
    get.OPERATIONS,
    patch.OPERATIONS,
    delete.OPERATIONS,
    access.OPERATIONS,
    contexts.OPERATIONS,
    dropin.OPERATIONS,
)

for family in FAMILIES:
    for operation in family:
        extension.add(operation)
