"""Cluster, user and default namespace: the configuration by the host, and the arguments of every operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Callable


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

    @property
    def refusal(self) -> str:
        """Return the refusal that `expect.failure` requires; "" for none."""
        failure = getattr(getattr(self, "expect", None), "failure", UNSET)
        return failure if isinstance(failure, str) else ""

    def run_operation(self, run: Callable[[], ext_sdk.Result]) -> ext_sdk.Result:
        """Run the operation; with `expect.failure`, return a success if the API server refused it in that way."""
        if not self.refusal:
            return run()
        from ext_kubernetes.api.errors import expect_refusal

        return expect_refusal(self.refusal, run, self.as_user)


Refusal = Annotated[
    Literal["forbidden", "invalid", "conflict"],
    Meta(
        description="Refusal of the API server that must occur. forbidden: no permission, or refused by a quota or "
        "policy (403). invalid: refused by validation (400, 422). conflict: it exists, or another manager owns a field"
    ),
]


class RefusalExpectation(ext_sdk.Args):
    """Refusal that must occur instead of success."""

    failure: Refusal


ExpectedRefusal = Annotated[
    RefusalExpectation | UnsetType, Meta(description="Refusal that must occur, such as {failure: forbidden}")
]
