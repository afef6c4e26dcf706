"""Operation `auth-can-i`: access reviews by the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import SERVICE_ACCOUNT, SERVICE_ACCOUNTS, check_user, client_for, missing_subject, review
from ext_kubernetes.api.discovery import check_name, core_path
from ext_kubernetes.api.errors import UnknownKind, error_context
from ext_kubernetes.config import ClusterArgs, ExpectedRefusal
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.objects.yaml_loader import dump_yaml
from ext_kubernetes.targets import TimeLimit, namespace_of
from ext_sdk.core.text import closest
from ext_sdk.files import Workdir, os_errors

from . import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


AUTHENTICATED = "system:authenticated"
ANONYMOUS, UNAUTHENTICATED = "system:anonymous", "system:unauthenticated"
REQUEST_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
OTHER_VERBS = ("impersonate", "bind", "escalate", "use", "approve", "sign", "attest", "proxy", "*")
# Names in rules that are not kinds of the server: the API group, and the verbs for which the API server checks them.
RULE_NAMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "users": ("", ("impersonate",)),
    "groups": ("", ("impersonate",)),
    "uids": ("authentication.k8s.io", ("impersonate",)),
    "userextras": ("authentication.k8s.io", ("impersonate",)),
    "signers": ("certificates.k8s.io", ("approve", "sign", "attest")),
}
# Subresources in rules that discovery does not list.
OWNER_SUBRESOURCE = "finalizers"  # of any kind: may own objects that block its deletion
KUBELET_SUBRESOURCES = ("checkpoint", "configz", "healthz", "log", "metrics", "pods", "spec", "stats")  # of nodes


class ExpectAccess(ext_sdk.Args):
    """Expected verdict."""

    allowed: Annotated[
        bool | UnsetType, Meta(description="true: the action must be allowed; false: it must be denied")
    ] = UNSET


class AuthCanI(ClusterArgs):
    """Arguments of `auth-can-i`."""

    verb: Annotated[
        str, Meta(description="Verb of the action: get, list, watch, create, update, patch, delete, …; * for all")
    ] = ""
    resource: Annotated[
        str,
        Meta(
            description="Resource type: pods, deploy, pods/log, certificates.cert-manager.io; or a path like /metrics"
        ),
    ] = ""
    as_: Annotated[
        str, Meta(description="User to check, such as system:serviceaccount:web:builder; default: the current user")
    ] = field(default="", name="as")
    groups: Annotated[
        list[str],
        Meta(
            description="Groups of the user in `as`. As in kubectl, system:authenticated is added; if the list is "
            "empty, so are the groups of a service account"
        ),
    ] = field(default_factory=list)
    namespace: Annotated[
        str,
        Meta(
            description="Namespace of the action; default: the entire cluster. With `list`, the default is the "
            "namespace created by create-namespace, or the configured one"
        ),
    ] = ""
    api_group: Annotated[str | UnsetType, Meta(description="API group of the resource, if ambiguous")] = UNSET
    resource_name: Annotated[str, Meta(description="Name of a single object")] = ""
    subresource: Annotated[str, Meta(description="Subresource, such as log, exec or scale; or use pods/log")] = ""
    list_: Annotated[bool, Meta(description="List all your permissions in `namespace`; replaces `verb`")] = field(
        default=False, name="list"
    )
    expect: Annotated[
        ExpectAccess | UnsetType,
        Meta(description="Expected verdict; if omitted, allowed and denied are both a success"),
    ] = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.list_:
            if self.verb or self.resource or self.as_ or self.expect is not UNSET:
                raise ValueError("with `list`, only `namespace` is accepted")
            return
        for name in ("verb", "resource"):
            if not getattr(self, name):
                raise ValueError(f"{name} is required")
        if self.groups and not self.as_:
            raise ValueError("`groups` requires `as`, the user")


def auth_can_i(args: AuthCanI, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check whether a user may perform an action, or list your permissions.

    A denied action is a success unless `expect` requires it to be allowed. Resource types are named as in all
    operations: pods, deploy, certificates.cert-manager.io, pods/log.
    """
    client = client_for(context, args)
    check_user(context, "as", args.as_)
    with error_context("failed to check permissions"):
        if args.list_:
            return _list_rules(args, context, client)
        kind = "SelfSubjectAccessReview" if not args.as_ else "SubjectAccessReview"
        spec: Object = {"user": args.as_, "groups": groups_of(args.as_, args.groups)} if args.as_ else {}
        attributes, hint = _attributes(args, context, client)
        status = members(review(kind, spec | attributes, context, client), "status")
    allowed = status.get("allowed") is True
    expected = UNSET if isinstance(args.expect, UnsetType) else args.expect.allowed
    if expected is False and not allowed:
        missing = missing_subject(context, args, args.as_ or args.as_user, [args.namespace])
        if missing:
            raise ext_sdk.OperationFailed(
                f"permission check failed: {missing}", error=f"a denial would prove nothing: {missing}"
            )
    reason = text(status, "reason") or text(status, "evaluationError")
    scope = f"in namespace {args.namespace}" if args.namespace else "cluster-wide"
    verdict = "allowed" if allowed else "denied"
    action = f"{args.as_ or args.as_user or 'you'} can {args.verb} {args.resource} {scope}: {verdict}"
    outputs: Outputs = {"allowed": allowed, "reason": reason}
    if expected is not UNSET and expected is not allowed:
        values = [str(value).lower() for value in (expected, allowed)]
        return ext_sdk.Result.failed(
            f"permission check failed: expected allowed={values[0]} but got allowed={values[1]}",
            error=f"permission expectation not met: {action}{f' ({reason})' if reason else ''}{hint}",
            outputs=outputs,
        )
    return ext_sdk.Result.ok(f"{action}{hint}", outputs=outputs)


def groups_of(user: str, given: Sequence[str]) -> list[str]:
    """Return all groups of a user by the rules of the API server, so that the verdict equals that of `kubectl --as`."""
    groups = list(given)
    if user.startswith(SERVICE_ACCOUNT) and not groups:
        namespace = user.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"]
    if user == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else [*groups, UNAUTHENTICATED]
    return groups if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else [*groups, AUTHENTICATED]


def _attributes(args: AuthCanI, context: ext_sdk.Context, client: Client) -> tuple[Object, str]:
    """Return the attributes of the review, and a hint for the message if the kind is unknown: it may be misspelt.

    Raises:
        ext_sdk.InvalidArgs, UnknownKind: `expect` is given, and the verb, the subresource or the kind is unknown: the
            API server denies it whatever the permissions are.
    """
    if args.resource.startswith("/"):
        return {"nonResourceAttributes": {"path": args.resource, "verb": args.verb}}, ""
    hint, checked = "", args.expect is not UNSET and args.expect.allowed is not UNSET
    name, _, subresource = args.resource.partition("/")
    subresource = args.subresource or subresource
    group = "" if args.api_group is UNSET else args.api_group
    rule_group, rule_verbs = RULE_NAMES.get(name.partition(".")[0], ("", ()))
    if args.verb in rule_verbs:
        name, group = name.partition(".")[0], rule_group
    elif name == "*":
        _check_verb(args.verb, REQUEST_VERBS, checked=checked)
    else:
        qualified, api_version = (
            (f"{name}.{group}", None) if group else (name, None if args.api_group is UNSET else "v1")
        )
        try:
            resource = client.discovery.resource(qualified, api_version, deadline=context.deadline)
        except UnknownKind as error:  # RBAC rules may name kinds that the server does not have
            if checked:
                raise
            if args.api_group is UNSET:
                name, _, group = name.partition(".")
            hint = f"; {error.error}"
        else:
            name, group = resource.plural, resource.group
            _check_verb(args.verb, (*REQUEST_VERBS, *resource.verbs), checked=checked)
            if checked and subresource:
                _check_subresource(subresource, resource)
    attributes = {
        "verb": args.verb,
        "resource": name,
        "subresource": subresource,
        "group": group,
        "name": args.resource_name,
        "namespace": args.namespace,
    }
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}, hint


def _check_verb(verb: str, known: Sequence[str], *, checked: bool) -> None:
    """Raise InvalidArgs if a checked verb is unknown."""
    if checked and verb not in known and verb not in OTHER_VERBS:
        near = closest(verb.lower(), known)
        advice = f"did you mean {near}?" if near else f"known are {', '.join(REQUEST_VERBS)}"
        raise ext_sdk.InvalidArgs("verb", f"expected a verb that the API server checks, found {verb!r}; {advice}")


def _check_subresource(name: str, resource: Resource) -> None:
    """Raise InvalidArgs if a kind does not have a subresource."""
    known = [*resource.subresources, *(KUBELET_SUBRESOURCES if resource.name == "nodes" else ())]
    if name not in {*known, OWNER_SUBRESOURCE, "*"}:
        listed = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise ext_sdk.InvalidArgs(
            "resource",
            f"{resource.name} has no subresource {name!r}; {listed}. For one object, set `resourceName: {name}`",
        )


def _list_rules(args: AuthCanI, context: ext_sdk.Context, client: Client) -> ext_sdk.Result:
    """List the permissions of the current user, one a line: `get, list pods, pods/log of apps named web`."""
    namespace = namespace_of(context, client, args.namespace)
    status = members(review("SelfSubjectRulesReview", {"namespace": namespace}, context, client), "status")
    rules: list[str] = []
    for rule in [*items(status, "resourceRules"), *items(status, "nonResourceRules")]:
        lists = {key: values for key, values in rule.items() if isinstance(values, list)}
        joined = {key: ", ".join(str(value) for value in values if value != "") for key, values in lists.items()}
        subject = joined.get("resources") or joined.get("nonResourceURLs", "")
        group, names = joined.get("apiGroups"), joined.get("resourceNames")
        details = f"{f' of {group}' if group else ''}{f' named {names}' if names else ''}"
        rules.append(f"{joined.get('verbs', '')} {subject}{details}")
    outputs: Outputs = {
        "count": len(rules),
        "rules": "\n".join(rules),
        "incomplete": status.get("incomplete") is True,
    }
    return ext_sdk.Result.ok(
        f"{len(rules)} rules apply to {args.as_user or 'you'} in namespace {namespace}", outputs=outputs
    )


SHORTEST = ext_sdk.Duration.parse("10m")  # lifetime of a token that the server accepts


class CreateToken(ClusterArgs):
    """Arguments of `create-token`."""

    service_account: Annotated[str, Meta(description="Name of the service account", min_length=1)]
    namespace: Annotated[
        str,
        Meta(description="Its namespace; default: the one created by create-namespace, or the configured one"),
    ] = ""
    duration: Annotated[ext_sdk.Duration, Meta(description="Lifetime of the token, at least 10m")] = (
        ext_sdk.Duration.parse("1h")
    )
    audiences: Annotated[list[str], Meta(description="Audiences of the token; default: the API server")] = field(
        default_factory=list
    )
    write_kubeconfig: Annotated[
        str,
        Meta(
            description="File in the workdir to write or replace: a kubeconfig with the token, for an agent that has "
            "the rights of the service account"
        ),
    ] = ""
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.duration.seconds < SHORTEST.seconds:
            raise ValueError(f"duration: expected at least {SHORTEST}, found {self.duration}")


def create_token(args: CreateToken, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a token of a service account, and write a kubeconfig with its rights.

    The token is secret: later steps use it as ${NAME.token}. The kubeconfig can be that of an agent, or `kubeconfig` of
    a step.
    """
    client = client_for(context, args)
    namespace, account = namespace_of(context, client, args.namespace), args.service_account
    check_name("service account name", account)
    spec: Object = {"expirationSeconds": int(args.duration.seconds)}
    spec |= {"audiences": args.audiences} if args.audiences else {}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = core_path("serviceaccounts", namespace, f"{account}", "token")
    with error_context(f"failed to create a token of service account {namespace}/{account}"):
        status = members(client.request("POST", path, body=body, deadline=context.deadline), "status")
    token = text(status, "token")
    context.secrets.add("token", token)
    user = f"{SERVICE_ACCOUNT}{namespace}:{account}"
    outputs: Outputs = {"user": user, "namespace": namespace, "expires": text(status, "expirationTimestamp")}
    written = ""
    if args.write_kubeconfig:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": account,
            "clusters": [{"name": "cluster", "cluster": client.connect(context.deadline).cluster_entry()}],
            "contexts": [{"name": account, "context": {"cluster": "cluster", "user": account, "namespace": namespace}}],
            "users": [{"name": account, "user": {"token": token}}],
        }
        workdir = Workdir(context.workdir)
        with os_errors("write the kubeconfig", args.write_kubeconfig):
            data = dump_yaml(content).encode()
            workdir.write(args.write_kubeconfig, data, mode=0o600, parents=True)
            outputs |= {"kubeconfig": str(workdir.path(args.write_kubeconfig))}
        written = f" and wrote {args.write_kubeconfig}"
    message = f"Created a token of {user}{written}"
    return ext_sdk.Result.ok(message, outputs=outputs, secret_outputs={"token": token})


ACCESS = {
    "allowed?": "`true` or `false`, if a verb is given",
    "reason?": "reason given by the server, if a verb is given",
    "count?": "number of rules, if `list` is given",
    "rules?": "the rules, one per line, if `list` is given",
    "incomplete?": "`true` if the server cannot list all rules, if `list` is given",
}

OPERATIONS = (
    ext_sdk.Operation(
        "create-token",
        create_token,
        {"serviceAccount": "default", "writeKubeconfig": "agent.yaml"},
        outputs=(
            {
                "user": "user name of the service account, for `asUser`",
                "namespace": "its namespace",
                "expires": "time at which the token expires",
                "kubeconfig?": "absolute path of the kubeconfig, if it was written",
                "token?": "the token; secret, only for later steps as `${NAME.token}`",
            }
            | REFUSAL
        ),
        title="Create token of service account",
    ),
    ext_sdk.Operation(
        "auth-can-i",
        auth_can_i,
        {"verb": "create", "resource": "deploy", "expect": {"allowed": True}},
        outputs=ACCESS,
        title="Check permissions",
        read_only=True,
    ),
    ext_sdk.Operation(
        "authCanI",
        auth_can_i,
        {"verb": "get", "resource": "pods", "as": "system:serviceaccount:web:builder"},
        same_as="auth-can-i",
        outputs=ACCESS,
    ),
)
