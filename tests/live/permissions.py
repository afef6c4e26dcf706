"""What service accounts may do: nothing, but for what is granted here."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tests.live.client import wait_until
from tests.live.conftest import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.live.client import Client

GROUP = "rbac.authorization.k8s.io"


@contextmanager
def granted(
    admin: Client, namespace: str, verbs: Sequence[str], resource: str, account: str = SERVICE_ACCOUNT
) -> Iterator[None]:
    """Let an account do something with a kind of the core group, everywhere, within the `with` block.

    Args:
        admin: grants it.
        namespace: of the account.
        verbs: such as get.
        resource: the plural of the kind.
        account: its name.
    """
    name = f"{namespace}-{'-'.join(verbs)}-{resource}"
    base = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": name}}
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
    role = base | {"kind": "ClusterRole", "rules": rules}
    binding = base | {"kind": "ClusterRoleBinding", "subjects": subjects, "roleRef": reference}
    paths = [admin.apply(role), admin.apply(binding)]
    try:
        for verb in verbs:  # the server learns of roles a moment after they are there
            wait_until(
                partial(may, admin, namespace, account, verb, resource), partial("it may not {} yet".format, verb)
            )
        yield
    finally:
        for path in paths:
            admin.delete(path)


def may(admin: Client, namespace: str, account: str, verb: str, resource: str) -> bool:
    """Whether an account may do something in its namespace."""
    user = f"system:serviceaccount:{namespace}:{account}"
    spec = {"user": user, "resourceAttributes": {"namespace": namespace, "verb": verb, "resource": resource}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = admin.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return answer["status"]["allowed"] is True
