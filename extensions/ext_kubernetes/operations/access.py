"""`auth-can-i`: what somebody may do, as the server itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.access_review import review
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import UnknownKind, error_context
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.targets import namespace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


SERVICE_ACCOUNT = "system:serviceaccount:"  # NAMESPACE:NAME follow
SERVICE_ACCOUNTS = "system:serviceaccounts"
AUTHENTICATED = "system:authenticated"
ANONYMOUS, UNAUTHENTICATED = "system:anonymous", "system:unauthenticated"


class ExpectAccess(ext_sdk.Args):
    """Expected verdict."""

    allowed: Annotated[
        bool | UnsetType, Meta(description="Whether it must be allowed, or denied; without it, both are a success")
    ] = UNSET


class AuthCanI(ext_sdk.Args):
    """Who may do what?"""

    verb: Annotated[str, Meta(description="get, list, watch, create, update, patch, delete, …; * for all")] = ""
    resource: Annotated[
        str, Meta(description="pods, deploy, pods/log, certificates.cert-manager.io; or a path such as /metrics")
    ] = ""
    as_: Annotated[str, Meta(description="A user, such as system:serviceaccount:web:builder; by default yourself")] = (
        field(default="", name="as")
    )
    groups: Annotated[
        list[str],
        Meta(
            description="With `as`: groups of the user. Those that every user has are added as for kubectl: "
            "system:authenticated, and those of a service account if this is empty"
        ),
    ] = field(default_factory=list)
    namespace: Annotated[
        str,
        Meta(
            description="Namespace; the whole cluster by default. With `list`, by default the one that "
            "create-namespace made, or that of the configuration"
        ),
    ] = ""
    api_group: Annotated[str | UnsetType, Meta(description="Of the resource, where it is not clear")] = UNSET
    resource_name: Annotated[str, Meta(description="One object alone")] = ""
    subresource: Annotated[str, Meta(description="Such as log, exec, scale; or as pods/log")] = ""
    list_: Annotated[bool, Meta(description="In place of a verb: all that you may do in `namespace`")] = field(
        default=False, name="list"
    )
    expect: Annotated[ExpectAccess | UnsetType, Meta(description="Denied is a success without it")] = UNSET
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.list_:
            if self.verb or self.resource or self.as_ or self.expect is not UNSET:
                raise ValueError("with `list`, expected nothing but `namespace`")
            return
        for name in ("verb", "resource"):
            if not getattr(self, name):
                raise ValueError(f"{name} is required")
        if self.groups and not self.as_:
            raise ValueError("expected `as`, the user, with `groups`")


def auth_can_i(args: AuthCanI, context: ext_sdk.Context) -> ext_sdk.Result:
    """Ask whether somebody may do something; or list all that you may do. Denied is a success, unless `expect` says so.

    Resources may be written as everywhere: pods, deploy, certificates.cert-manager.io, pods/log.
    """
    client = client_for(context)
    with error_context("failed to check permissions"):
        if args.list_:
            return _rules(args, context, client)
        kind = "SubjectAccessReview" if args.as_ else "SelfSubjectAccessReview"
        spec: Object = {"user": args.as_, "groups": groups_of(args.as_, args.groups)} if args.as_ else {}
        attributes, doubt = _attributes(args, context, client)
        status = members(review(kind, spec | attributes, context, client), "status")
    allowed = status.get("allowed") is True
    reason = text(status, "reason") or text(status, "evaluationError")
    where = f"in namespace {args.namespace}" if args.namespace else "cluster-wide"
    who = args.as_ or "you"
    verdict = "allowed" if allowed else "denied"
    outputs: dict[str, str | int | bool] = {"allowed": allowed, "reason": reason}
    wanted = UNSET if isinstance(args.expect, UnsetType) else args.expect.allowed
    if wanted is not UNSET and wanted is not allowed:
        expected = "true" if wanted else "false"
        found = "true" if allowed else "false"
        return ext_sdk.Result.failed(
            f"permission check failed: expected allowed={expected} but got allowed={found}",
            error=f"permission expectation not met: {who} can {args.verb} {args.resource} {where}: {verdict}"
            + (f" ({reason})" if reason else "")
            + doubt,
            outputs=outputs,
        )
    return ext_sdk.Result.ok(f"{who} can {args.verb} {args.resource} {where}: {verdict}{doubt}", outputs=outputs)


def groups_of(user: str, given: Sequence[str]) -> list[str]:
    """Return all groups of a user by the rules of the API server, so that the answer is that of `kubectl --as`.

    Args:
        user: name of the user.
        given: groups that the arguments name.
    """
    groups = list(given)
    if user.startswith(SERVICE_ACCOUNT) and not groups:
        namespace = user.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"]
    if user == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else [*groups, UNAUTHENTICATED]
    return groups if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else [*groups, AUTHENTICATED]


def _attributes(args: AuthCanI, context: ext_sdk.Context, client: Client) -> tuple[Object, str]:
    """What is asked about, and a doubt to tell: a word that is misspelt may well be denied."""
    if args.resource.startswith("/"):
        return {"nonResourceAttributes": {"path": args.resource, "verb": args.verb}}, ""
    doubt = ""
    name, _, subresource = args.resource.partition("/")
    group = "" if args.api_group is UNSET else args.api_group
    if args.api_group is UNSET and name != "*":
        try:
            known = client.discovery.resource(name, deadline=context.deadline)
            name, group = known.plural, known.group
        except UnknownKind as error:  # rules may be about kinds that are not there
            name, _, group = name.partition(".")
            doubt = f"; {error.error}"
    attributes = {
        "verb": args.verb,
        "resource": name,
        "subresource": args.subresource or subresource,
        "group": group,
        "name": args.resource_name,
        "namespace": args.namespace,
    }
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}, doubt


def _rules(args: AuthCanI, context: ext_sdk.Context, client: Client) -> ext_sdk.Result:
    namespace = namespace_of(context, client, args.namespace)
    status = members(review("SelfSubjectRulesReview", {"namespace": namespace}, context, client), "status")
    lines = [_rule(rule) for rule in items(status, "resourceRules")]
    lines += [_rule(rule) for rule in items(status, "nonResourceRules")]
    outputs: dict[str, str | int | bool] = {
        "count": len(lines),
        "rules": "\n".join(lines),
        "incomplete": status.get("incomplete") is True,
    }
    return ext_sdk.Result.ok(f"{len(lines)} rules apply to you in namespace {namespace}", outputs=outputs)


def _rule(rule: Object) -> str:
    """`get, list pods, pods/log`, for people."""
    what = _joined(rule, "resources") or _joined(rule, "nonResourceURLs")
    group = _joined(rule, "apiGroups")
    names = _joined(rule, "resourceNames")
    return f"{_joined(rule, 'verbs')} {what}{f' of {group}' if group else ''}{f' named {names}' if names else ''}"


def _joined(rule: Object, key: str) -> str:
    found = rule.get(key)
    return ", ".join(str(one) for one in found if one != "") if isinstance(found, list) else ""


OPERATIONS = (
    ext_sdk.Operation("auth-can-i", auth_can_i, {"verb": "create", "resource": "deploy", "expect": {"allowed": True}}),
)
