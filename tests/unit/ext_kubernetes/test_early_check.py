from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.early_check import check_config

if TYPE_CHECKING:
    from pathlib import Path


def test_a_kubeconfig_must_exist_and_contain_the_context(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("contexts: [{name: staging}]")
    check_config({})
    check_config({"kubeconfig": str(file), "context": "staging"})
    with pytest.raises(ValueError, match="expected a context of the kubeconfig, found 'prod'"):
        check_config({"kubeconfig": str(file), "context": "prod"})
    with pytest.raises(ValueError, match="kubeconfig: expected a file"):
        check_config({"kubeconfig": str(tmp_path)})


def test_a_kubeconfig_and_a_service_account_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="found both"):
        check_config({"kubeconfig": "a", "serviceAccount": "b"})
