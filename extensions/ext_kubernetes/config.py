"""Cluster, user and default namespace: the configuration by the host, and the arguments of every operation."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

import ext_sdk


class KubernetesConfig(ext_sdk.Config):
    """Configuration of ext-kubernetes."""

    early_check: ClassVar[str] = "ext_kubernetes.early_check:check_config"

    kubeconfig: Annotated[
        str,
        Meta(
            description="Path of a kubeconfig file; ~ is the home directory. Default: KUBECONFIG of the task or of the "
            "extension, the service account of the extension's pod, ~/.kube/config"
        ),
    ] = ""
    service_account: Annotated[
        str,
        Meta(
            description="Folder with `token`, `ca.crt` and `namespace` of a service account, for the server at "
            "KUBERNETES_SERVICE_HOST and _PORT; replaces `kubeconfig`. Required only if it is not the usual folder"
        ),
    ] = ""
    context: Annotated[str, Meta(description="Context of the kubeconfig; default: its current context")] = ""
    namespace: Annotated[
        str,
        Meta(
            description="Namespace of operations without one, unless the task created one with create-namespace; "
            "default: the namespace of the context"
        ),
    ] = ""
    watch: Annotated[bool, Meta(description="Open watches, which end waits sooner; false: only poll")] = True

    def __post_init__(self) -> None:
        if self.kubeconfig and self.service_account:
            raise ValueError("expected `kubeconfig` or `serviceAccount`, found both")
        if self.kubeconfig:
            from ext_kubernetes.api.kubeconfig import check_explicit

            check_explicit(self.kubeconfig, self.context)


class KubeconfigArgs(ext_sdk.Args):
    """Kubeconfig of an operation."""

    fields_last: ClassVar[tuple[str, ...]] = ("as_user", "as_groups", "context", "kubeconfig")

    context: Annotated[str, Meta(description="Context of the kubeconfig; default: the configured or current one")] = ""
    kubeconfig: Annotated[
        str,
        Meta(
            description="Kubeconfig that replaces the configured one: a file in the workdir, which must contain its "
            "credentials, or an absolute path"
        ),
    ] = ""


class ClusterArgs(KubeconfigArgs):
    """Cluster and user of an operation."""

    as_user: Annotated[
        str,
        Meta(
            description="User to act as, such as system:serviceaccount:web:builder; your own user needs the permission "
            "to impersonate it"
        ),
    ] = ""
    as_groups: Annotated[
        list[str], Meta(description="Groups of `asUser`; default: those that every user and service account has")
    ] = field(default_factory=list)
