"""Running helm against the cluster of a call."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import ext_sdk
from ext_sdk.files import Workdir, os_errors

from .client import client_for
from .impersonation import HEADER
from .naming import namespace_of
from .paths import check_name
from .program import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .impersonation import Headers
    from .manifests import Json
    from .program import Ran

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
