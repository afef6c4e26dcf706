"""Checks of the configuration that run before the manifest is sent; see `ext_sdk.Config`.

The module imports neither msgspec nor YAML, because it delays the manifest.
"""

from __future__ import annotations

import os
import stat

MOST_BYTES = 16 * 1024 * 1024  # of a kubeconfig


def check_config(members: dict[str, object]) -> None:
    """Raise ValueError for an unreadable kubeconfig, and for every configuration that `KubernetesConfig` rejects."""
    kubeconfig = str(members.get("kubeconfig", ""))
    if kubeconfig and members.get("serviceAccount"):
        raise ValueError("expected `kubeconfig` or `serviceAccount`, found both")
    files = [file for file in kubeconfig.split(os.pathsep) if file]
    for file in files:
        path = os.path.expanduser(file)  # noqa: PTH111  (pathlib takes 10 ms)
        try:
            readable = stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)  # noqa: PTH116
        except OSError:
            readable = False
        if not readable:
            raise ValueError(f"kubeconfig: expected a file, found {file!r}")
    context = str(members.get("context", ""))
    if files and not may_have(context, files):
        raise ValueError(f"context: expected a context of the kubeconfig, found {context!r}")


def may_have(context: str, files: list[str]) -> bool:
    """Return False if no file contains the name of the context, without parsing YAML."""
    text = context.encode("utf-8", "surrogateescape")
    for file in files:
        with open(os.path.expanduser(file), "rb") as stream:  # noqa: PTH111, PTH123
            if text in stream.read(MOST_BYTES):
                return True
    return not files
