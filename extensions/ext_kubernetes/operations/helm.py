"""Operations `helm-install`, `helm-upgrade`, `helm-list` and `helm-uninstall`, by the program helm."""

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
from ext_kubernetes.api.impersonation import HEADER
from ext_kubernetes.api.paths import check_name
from ext_kubernetes.objects.yaml_loader import Json
from ext_kubernetes.program import run
from ext_kubernetes.targets import namespace_of
from ext_kubernetes.waiting.waiter import Timeout  # noqa: TC001 - msgspec reads it
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_kubernetes.api.impersonation import Headers
    from ext_kubernetes.program import Ran


HELM = "helm"
ADVICE = "install it from https://helm.sh, or apply the chart's manifests"
LAST_SECONDS = 1.0  # that helm has less than the operation, so that it tells itself what it waited for


def helm(verb: str, args: list[str], context: ext_sdk.Context, *, accept: str = "") -> Ran:
    """Run helm against the cluster of the call.

    Args:
        verb: its command.
        args: of that.
        context: of the call.
        accept: a failure whose stderr has this text is none; "" for none.

    Raises:
        ext_sdk.RequirementNotMet: there is no helm.
        ext_sdk.OperationFailed: it failed, or did not end in time.
    """
    client = client_for(context)
    source = client.source
    env = {} if source.in_cluster else {"KUBECONFIG": os.pathsep.join(source.files)}
    flags = [f"--kube-context={source.context}"] if source.context else []
    flags += _impersonation_flags(client.connect(context.deadline).headers)
    ran = run([HELM, verb, *args, *flags], env, context, ADVICE)
    if ran.code == 0 or (accept and ran.in_time and accept in ran.stderr):
        return ran
    how = ran.how if ran.in_time else f"it did not end in time and was stopped ({ran.how})"
    said = (ran.stderr or ran.stdout).strip() or "it said nothing"
    raise ext_sdk.OperationFailed(
        f"helm {verb} failed: {how}",
        error=f"helm {verb} failed: {how}\nOutput: {said}",
        outputs=outputs_of(ran),
    )


def _impersonation_flags(headers: Headers) -> list[str]:
    """Return the flags for the user and the groups; helm reads uid and extra from the kubeconfig, as kubectl does."""
    names = {f"{HEADER}User": "--kube-as-user", f"{HEADER}Group": "--kube-as-group"}
    return [f"{names[name]}={value}" for name, value in headers if name in names]


def outputs_of(ran: Ran) -> dict[str, str | int | bool]:
    """What helm wrote."""
    return {"stdout": ran.stdout, "stderr": ran.stderr}


def namespace_flag(given: str, context: ext_sdk.Context) -> list[str]:
    """The flag for the namespace that is given, or the usual one."""
    namespace = namespace_of(context, client_for(context), given)
    check_name("namespace", namespace)
    return [f"--namespace={namespace}"]


def wait_flags(wait: bool, context: ext_sdk.Context) -> list[str]:
    """The flags that make helm wait, a little less long than the operation may."""
    if not wait:
        return []
    return ["--wait", f"--timeout={max(1, int(context.deadline.remaining() - LAST_SECONDS))}s"]


def chart_of(chart: str, repo: str, context: ext_sdk.Context) -> str:
    """The chart as helm takes it: what is in the workdir by its path, which can't lead out of it."""
    local = "://" not in chart and not repo
    with os_errors("read", chart):
        workdir = Workdir(context.workdir)
        return str(workdir.path(chart)) if local and workdir.exists(chart) else chart


@contextmanager
def values_file(values: dict[str, Json]) -> Iterator[list[str]]:
    """The flag for a private file with the values; JSON is YAML, and keeps numbers, booleans and texts apart."""
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


def told_behind(text: str, word: str) -> str:
    """What helm says behind a word: `STATUS: deployed`."""
    lines = (line for line in text.splitlines() if line.startswith(f"{word}: "))
    return next(lines, "").partition(": ")[2]


Where = Annotated[
    str, Meta(description="Of the release; by default the one that create-namespace made, or that of the configuration")
]


class ChartArgs(ext_sdk.Args):
    """Which chart, and with which values."""

    chart: Annotated[
        str, Meta(min_length=1, description="Directory or archive in the workdir, REPO/NAME, oci://…, or URL")
    ]
    namespace: Where = ""
    values: Annotated[dict[str, Json], Meta(description="In place of the chart's own, nested as they are there")] = (
        field(default_factory=dict)
    )
    values_files: Annotated[
        list[str], Meta(description="Files in the workdir with values; later ones win, and `values` wins over all")
    ] = field(default_factory=list)
    version: Annotated[str, Meta(description="Of the chart, or a range; the newest one if left out")] = ""
    repo: Annotated[str, Meta(description="Address of the chart's repository, with a mere name as `chart`")] = ""
    create_namespace: Annotated[bool, Meta(description="Make the namespace if it is not there")] = False
    wait: Annotated[bool, Meta(description="Until all that the chart has made is ready")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        for name in ("chart", "version", "repo"):
            _no_flag(name, getattr(self, name))


class HelmInstall(ChartArgs):
    """What to install."""

    name: Annotated[str, Meta(description="Of the release; helm finds one if left out")] = ""

    def __post_init__(self) -> None:
        ChartArgs.__post_init__(self)
        _no_flag("name", self.name)


class HelmUpgrade(ChartArgs):
    """What to upgrade."""

    name: Annotated[str, Meta(min_length=1, description="Of the release")]
    install: Annotated[bool, Meta(description="Install it if it is not there")] = False
    reuse_values: Annotated[bool, Meta(description="Keep the values of the release where none are given here")] = False

    def __post_init__(self) -> None:
        ChartArgs.__post_init__(self)
        _no_flag("name", self.name)


class HelmList(ext_sdk.Args):
    """Which releases."""

    namespace: Where = ""
    all_namespaces: Annotated[bool, Meta(description="Those of all namespaces")] = False
    timeout: Timeout = ext_sdk.Duration.parse("25s")


class HelmUninstall(ext_sdk.Args):
    """Which release to remove."""

    name: Annotated[str, Meta(min_length=1, description="Of the release")]
    namespace: Where = ""
    ignore_not_found: Annotated[bool, Meta(description="A success if there is no such release")] = False
    wait: Annotated[bool, Meta(description="Until all that the chart had made is gone")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        _no_flag("name", self.name)


def helm_install(args: HelmInstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Install a chart as a new release, by helm."""
    if args.name:
        check_name("release name", args.name)
    return _installed("install", args, [args.name] if args.name else ["--generate-name"], context)


def helm_upgrade(args: HelmUpgrade, context: ext_sdk.Context) -> ext_sdk.Result:
    """Upgrade a release to a chart, or to other values, by helm; with `install`, also where there is none yet."""
    flags = [flag for flag, given in (("--install", args.install), ("--reuse-values", args.reuse_values)) if given]
    check_name("release name", args.name)
    return _installed("upgrade", args, [args.name, *flags], context)


def helm_list(args: HelmList, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the releases of helm, in a namespace or in all of them."""
    where = ["--all-namespaces"] if args.all_namespaces else namespace_flag(args.namespace, context)
    ran = helm("list", ["--output", "json", *where], context)
    try:
        found = msgspec.json.decode(ran.stdout, type=list[dict[str, Json]])
    except msgspec.DecodeError as error:
        raise ext_sdk.OperationFailed(
            "failed to parse helm list output", error=f"expected a JSON list from helm, found {ran.stdout[:200]!r}"
        ) from error
    outputs: dict[str, str | int | bool] = {
        "count": len(found),
        "names": "\n".join(str(one.get("name", "")) for one in found),
        "releases": json.dumps(found, ensure_ascii=False, separators=(",", ":")),
    }
    if not found:
        return ext_sdk.Result.ok("No Helm releases found", outputs=outputs)
    lines = [
        f"  - {one.get('name')} ({', '.join(f'{key}: {one.get(key)}' for key in ('namespace', 'status', 'chart'))})"
        for one in found
    ]
    return ext_sdk.Result.ok("\n".join([f"Found {len(found)} Helm release(s):", *lines]), outputs=outputs)


def helm_uninstall(args: HelmUninstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a release and all that its chart has made, by helm."""
    check_name("release name", args.name)
    flags = [*namespace_flag(args.namespace, context), *wait_flags(args.wait, context)]
    ran = helm("uninstall", [args.name, *flags], context, accept="not found" if args.ignore_not_found else "")
    if ran.code:
        return ext_sdk.Result.ok(f"Helm release '{args.name}' not found (ignored)", outputs=outputs_of(ran))
    return ext_sdk.Result.ok(
        f"Helm release '{args.name}' uninstalled successfully\n{ran.stdout}".strip(), outputs=outputs_of(ran)
    )


def _installed(verb: str, args: ChartArgs, named: list[str], context: ext_sdk.Context) -> ext_sdk.Result:
    flags = [*namespace_flag(args.namespace, context), *wait_flags(args.wait, context)]
    flags += [f"--{name}={value}" for name, value in (("version", args.version), ("repo", args.repo)) if value]
    flags += ["--create-namespace"] if args.create_namespace else []
    for file in args.values_files:
        with os_errors("read", file):
            flags.append(f"--values={Workdir(context.workdir).path(file)}")
    with values_file(args.values) as values:
        ran = helm(verb, [*named, chart_of(args.chart, args.repo, context), *flags, *values], context)
    told = {
        key: told_behind(ran.stdout, word)
        for key, word in (("name", "NAME"), ("status", "STATUS"), ("revision", "REVISION"))
    }
    outputs = outputs_of(ran) | told
    word = "installed" if verb == "install" else "upgraded"
    return ext_sdk.Result.ok(f"Helm chart {word} successfully\n{ran.stdout}".strip(), outputs=outputs)


def _no_flag(name: str, value: str) -> None:
    """Helm would take it as an option; some of them run programs."""
    if value.startswith("-"):
        raise ValueError(f"{name}: expected no `-` at the beginning, found {value!r}")


class DropInUninstall(ext_sdk.Args):
    """Which release to remove."""

    name: Annotated[str, Meta(min_length=1, description="Of the release")]
    namespace: Where = ""
    timeout: Timeout = ext_sdk.Duration.parse("60s")


def drop_in_uninstall(args: DropInUninstall, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a release and all that its chart has made, by helm; one that is not there is a success."""
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
)
