"""The extension: its operations, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from . import (
    access,
    apply,
    assert_,
    client,
    condition,
    contexts,
    copy_,
    create,
    delete,
    dropin,
    events,
    exec_,
    get,
    helm,
    jobs,
    labels,
    logs,
    namespaces,
    patch,
    port_forward,
    rollout,
    scale,
    secrets,
    stable,
    wait,
)
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
    condition.OPERATIONS,
    wait.OPERATIONS,
    stable.OPERATIONS,
    assert_.OPERATIONS,
    rollout.OPERATIONS,
    scale.OPERATIONS,
    labels.OPERATIONS,
    events.OPERATIONS,
    exec_.OPERATIONS,
    copy_.OPERATIONS,
    port_forward.OPERATIONS,
    logs.OPERATIONS,
    jobs.OPERATIONS,
    helm.OPERATIONS,
    access.OPERATIONS,
    contexts.OPERATIONS,
    dropin.OPERATIONS,
)

for family in FAMILIES:
    for operation in family:
        extension.add(operation)
