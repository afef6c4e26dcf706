"""Operations `helm-install`, `helm-upgrade`, `helm-list` and `helm-uninstall`, run by the program helm."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import check_name
from ext_kubernetes.api.kubeconfig import IMPERSONATE
from ext_kubernetes.objects.yaml_loader import Json
from ext_kubernetes.program import run
from ext_kubernetes.targets import namespace_of
from ext_kubernetes.waiting.waiter import Timeout  # noqa: TC001 - msgspec reads it
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.program import Ran


HELM = "helm"
ADVICE = "install it from https://helm.sh, or apply the chart's manifests"
LAST_SECONDS = 1.0  # that helm has less than the operation, so that helm itself reports a timeout


def helm(verb: str, args: list[str], context: ext_sdk.Context, *, accept: str = "") -> Ran:
    """Run helm against the cluster of the call.

    Args:
        accept: a failure with this text in stderr is returned, not raised; "" for none.

    Raises:
        ext_sdk.RequirementNotMet: helm is not installed.
        ext_sdk.OperationFailed: helm failed or timed out.
    """
    client = client_for(context)
    source = client.source
    env = {} if source.in_cluster else {"KUBECONFIG": os.pathsep.join(source.files)}
    flags = [f"--kube-context={source.context}"] if source.context else []
    # helm reads uid and extra from the kubeconfig, as kubectl does, but not the user and the groups.
    names = {f"{IMPERSONATE}User": "--kube-as-user", f"{IMPERSONATE}Group": "--kube-as-group"}
    headers = client.connect(context.deadline).headers
    flags += [f"{names[name]}={value}" for name, value in headers if name in names]
    ran = run([HELM, verb, *args, *flags], env, context, ADVICE)
    if ran.code == 0 or (accept and ran.in_time and accept in ran.stderr):
        return ran
    status = ran.status if ran.in_time else f"it did not end before the deadline and was stopped ({ran.status})"
    output = (ran.stderr or ran.stdout).strip() or "(empty)"
    raise ext_sdk.OperationFailed(
        f"helm {verb} failed: {status}",
        error=f"helm {verb} failed: {status}\nOutput: {output}",
        outputs=_outputs(ran),
    )


def _outputs(ran: Ran) -> Outputs:
    return {"stdout": ran.stdout, "stderr": ran.stderr}


def _namespace_flag(given: str, context: ext_sdk.Context) -> list[str]:
    namespace = namespace_of(context, client_for(context), given)
    check_name("namespace", namespace)
    return [f"--namespace={namespace}"]


def _wait_flags(wait: bool, context: ext_sdk.Context) -> list[str]:
    if not wait:
        return []
    return ["--wait", f"--timeout={max(1, int(context.deadline.remaining() - LAST_SECONDS))}s"]


@contextmanager
def _values_file(values: dict[str, Json]) -> Iterator[list[str]]:
    """Yield the flag for a private file with the values. JSON is YAML that preserves the types of scalars."""
    if not values:
        yield []
        return
    descriptor, name = tempfile.mkstemp(prefix="ext-kubernetes-", suffix=".yaml")  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(values, file, ensure_ascii=False)
        yield [f"--values={name}"]
    finally:
        Path(name).unlink(missing_ok=True)


ReleaseNamespace = Annotated[
    str,
    Meta(description="Namespace of the release; default: the one created by create-namespace, or the configured one"),
]
ReleaseName = Annotated[str, Meta(min_length=1, description="Name of the release")]


class ChartArgs(ext_sdk.Args):
    """A chart and its values."""

    chart: Annotated[
        str, Meta(min_length=1, description="Chart: directory or archive in the workdir, REPO/NAME, oci://…, or URL")
    ]
    namespace: ReleaseNamespace = ""
    values: Annotated[dict[str, Json], Meta(description="Values that override those of the chart, nested alike")] = (
        field(default_factory=dict)
    )
    values_files: Annotated[
        list[str],
        Meta(description="Files in the workdir with values; later files override earlier ones, `values` overrides all"),
    ] = field(default_factory=list)
    version: Annotated[str, Meta(description="Version of the chart, or a range; default: the newest one")] = ""
    repo: Annotated[str, Meta(description="URL of the chart repository; `chart` is then a plain name")] = ""
    create_namespace: Annotated[bool, Meta(description="Create the namespace if it does not exist")] = False
    wait: Annotated[bool, Meta(description="Wait until all resources of the chart are ready")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        for name in ("chart", "version", "repo"):
            _refuse_flag(name, getattr(self, name))


class HelmInstall(ChartArgs):
    """Arguments of `helm-install`."""

    name: Annotated[str, Meta(description="Name of the release; default: generated by helm")] = ""

    def __post_init__(self) -> None:
        ChartArgs.__post_init__(self)
        _refuse_flag("name", self.name)


class HelmUpgrade(ChartArgs):
    """Arguments of `helm-upgrade`."""

    name: ReleaseName
    install: Annotated[bool, Meta(description="Install the release if it does not exist")] = False
    reuse_values: Annotated[bool, Meta(description="Keep the values of the release that are not given here")] = False

    def __post_init__(self) -> None:
        ChartArgs.__post_init__(self)
        _refuse_flag("name", self.name)


class HelmList(ext_sdk.Args):
    """Arguments of `helm-list`."""

    namespace: ReleaseNamespace = ""
    all_namespaces: Annotated[bool, Meta(description="List the releases of all namespaces")] = False
    timeout: Timeout = ext_sdk.Duration.parse("25s")


class HelmUninstall(ext_sdk.Args):
    """Arguments of `helm-uninstall`."""

    name: ReleaseName
    namespace: ReleaseNamespace = ""
    ignore_not_found: Annotated[bool, Meta(description="Treat a missing release as success")] = False
    wait: Annotated[bool, Meta(description="Wait until all resources of the chart are deleted")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        _refuse_flag("name", self.name)


def helm_install(args: HelmInstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Install a chart as a new release."""
    if args.name:
        check_name("release name", args.name)
    return _install("install", args, [args.name] if args.name else ["--generate-name"], context)


def helm_upgrade(args: HelmUpgrade, context: ext_sdk.Context) -> ext_sdk.Result:
    """Upgrade a release to another chart or other values; with `install`, install it if it does not exist."""
    flags = [flag for flag, given in (("--install", args.install), ("--reuse-values", args.reuse_values)) if given]
    check_name("release name", args.name)
    return _install("upgrade", args, [args.name, *flags], context)


def helm_list(args: HelmList, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the helm releases of a namespace, or of all namespaces."""
    scope = ["--all-namespaces"] if args.all_namespaces else _namespace_flag(args.namespace, context)
    ran = helm("list", ["--output", "json", *scope], context)
    try:
        releases = msgspec.json.decode(ran.stdout, type=list[dict[str, Json]])
    except msgspec.DecodeError as error:
        raise ext_sdk.OperationFailed(
            "failed to parse helm list output", error=f"expected a JSON list from helm, found {ran.stdout[:200]!r}"
        ) from error
    outputs: Outputs = {
        "count": len(releases),
        "names": "\n".join(str(release.get("name", "")) for release in releases),
        "releases": json.dumps(releases, ensure_ascii=False, separators=(",", ":")),
    }
    if not releases:
        return ext_sdk.Result.ok("No Helm releases found", outputs=outputs)
    keys = ("namespace", "status", "chart")
    lines = [
        f"  - {release.get('name')} ({', '.join(f'{key}: {release.get(key)}' for key in keys)})" for release in releases
    ]
    return ext_sdk.Result.ok("\n".join([f"Found {len(releases)} Helm release(s):", *lines]), outputs=outputs)


def helm_uninstall(args: HelmUninstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a release and all resources of its chart."""
    check_name("release name", args.name)
    flags = [*_namespace_flag(args.namespace, context), *_wait_flags(args.wait, context)]
    ran = helm("uninstall", [args.name, *flags], context, accept="not found" if args.ignore_not_found else "")
    if ran.code:
        return ext_sdk.Result.ok(f"Helm release '{args.name}' not found (ignored)", outputs=_outputs(ran))
    return ext_sdk.Result.ok(
        f"Helm release '{args.name}' uninstalled successfully\n{ran.stdout}".strip(), outputs=_outputs(ran)
    )


def _install(verb: str, args: ChartArgs, release: list[str], context: ext_sdk.Context) -> ext_sdk.Result:
    """Run `helm install` or `helm upgrade`; `release` is its name, or flags in place of it."""
    flags = [*_namespace_flag(args.namespace, context), *_wait_flags(args.wait, context)]
    flags += [f"--{name}={value}" for name, value in (("version", args.version), ("repo", args.repo)) if value]
    flags += ["--create-namespace"] if args.create_namespace else []
    workdir, chart = Workdir(context.workdir), args.chart
    for file in args.values_files:
        with os_errors("read", file):
            flags.append(f"--values={workdir.path(file)}")
    if "://" not in chart and not args.repo:
        with os_errors("read", chart):
            chart = str(workdir.path(chart)) if workdir.exists(chart) else chart
    with _values_file(args.values) as values:
        ran = helm(verb, [*release, chart, *flags, *values], context)
    reported = dict(line.split(": ", 1) for line in reversed(ran.stdout.splitlines()) if ": " in line)
    outputs = _outputs(ran) | {key: reported.get(key.upper(), "") for key in ("name", "status", "revision")}
    past = "installed" if verb == "install" else "upgraded"
    return ext_sdk.Result.ok(f"Helm chart {past} successfully\n{ran.stdout}".strip(), outputs=outputs)


def _refuse_flag(name: str, value: str) -> None:
    """Raise ValueError for a value that helm would parse as an option: some options run programs."""
    if value.startswith("-"):
        raise ValueError(f"{name}: must not begin with `-`, found {value!r}")


class DropInUninstall(ext_sdk.Args):
    """Arguments of `helmUninstall`."""

    name: ReleaseName
    namespace: ReleaseNamespace = ""
    timeout: Timeout = ext_sdk.Duration.parse("60s")


def drop_in_uninstall(args: DropInUninstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a release and all resources of its chart; a missing release is a success."""
    return helm_uninstall(HelmUninstall(name=args.name, namespace=args.namespace, ignore_not_found=True), context)


OPERATIONS = (
    ext_sdk.Operation(
        "helm-install",
        helm_install,
        {"chart": "oci://registry.example.com/charts/web", "name": "web", "values": {"replicas": 2}, "timeout": "25s"},
    ),
    ext_sdk.Operation(
        "helm-upgrade",
        helm_upgrade,
        {"chart": "oci://registry.example.com/charts/web", "name": "web", "values": {"replicas": 3}, "timeout": "25s"},
    ),
    ext_sdk.Operation("helm-list", helm_list, {"allNamespaces": True}),
    ext_sdk.Operation("helm-uninstall", helm_uninstall, {"name": "web", "ignoreNotFound": True, "timeout": "25s"}),
    ext_sdk.Operation(
        "helmInstall",
        helm_install,
        {"chart": "oci://registry.example.com/charts/web", "name": "web", "namespace": "web"},
        same_as="helm-install",
    ),
    ext_sdk.Operation("helmList", helm_list, {"namespace": "web"}, same_as="helm-list"),
    ext_sdk.Operation(
        "helmUninstall", drop_in_uninstall, {"name": "web", "namespace": "web"}, same_as="helm-uninstall"
    ),
)
