"""The checks of a configuration that run before the manifest is sent; see `ext_sdk.Config`."""

from __future__ import annotations

import os
import stat


def check_config(members: dict[str, object]) -> None:
    """Raise ValueError at least for what `KubernetesConfig` refuses, and for each kubeconfig that can't be read."""
    kubeconfig = str(members.get("kubeconfig", ""))
    if kubeconfig and members.get("serviceAccount"):
        raise ValueError("expected `kubeconfig` or `serviceAccount`, found both")
    for file in kubeconfig.split(os.pathsep):
        if file and not _is_readable_file(os.path.expanduser(file)):  # noqa: PTH111  (pathlib takes 10 ms)
            raise ValueError(f"kubeconfig: expected a file, found {file!r}")


def _is_readable_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)  # noqa: PTH116
    except OSError:
        return False
