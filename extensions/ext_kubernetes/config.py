"""What a host may configure: which cluster, and which namespace where an operation names none."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar

from msgspec import Meta

import ext_sdk


class KubernetesConfig(ext_sdk.Config):
    """Configuration of ext-kubernetes."""

    early_check: ClassVar[str] = "ext_kubernetes.early_check:check_config"

    kubeconfig: Annotated[
        str,
        Meta(
            description="Path of a kubeconfig file; ~ is the home directory. Where left out: KUBECONFIG of the task or "
            "of the extension, the service account of the pod it runs in, ~/.kube/config"
        ),
    ] = ""
    service_account: Annotated[
        str,
        Meta(
            description="In place of `kubeconfig`: folder with `token`, `ca.crt` and `namespace` of a service account, "
            "for the server at KUBERNETES_SERVICE_HOST and _PORT, where it is not the usual one of pods"
        ),
    ] = ""
    context: Annotated[str, Meta(description="Context of the kubeconfig; its current one where left out")] = ""
    namespace: Annotated[
        str,
        Meta(
            description="Where an operation names none, and the task has made none with create-namespace; that of the "
            "context where left out"
        ),
    ] = ""
    watch: Annotated[
        bool,
        Meta(description="Let a watch wake waiting operations early; without it they only look again and again"),
    ] = True

    def __post_init__(self) -> None:
        if self.kubeconfig and self.service_account:
            raise ValueError("expected `kubeconfig` or `serviceAccount`, found both")
        if self.kubeconfig:
            from ext_kubernetes.api.kubeconfig import check_explicit

            check_explicit(self.kubeconfig, self.context)


# Set by a recorder of HTTP traffic: an answer that has no end fits no recording, and waits do without.
RECORDED = "EXT_RECORDER_HTTP"


def watches(context: ext_sdk.Context) -> bool:
    """Whether waits may be woken by watches."""
    return config_of(context).watch and not os.environ.get(RECORDED)


def config_of(context: ext_sdk.Context) -> KubernetesConfig:
    """The configuration of a call. Raises TypeError where it is another extension's."""
    if not isinstance(context.config, KubernetesConfig):
        raise TypeError(f"expected the configuration of ext-kubernetes, found {type(context.config).__name__}")
    return context.config
