"""The configuration of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk import Config
from ext_shell.config import ShellConfig
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from pathlib import Path


def test_a_configuration_of_another_extension_is_a_programming_error(tmp_path: Path) -> None:
    config = ShellConfig(shell="dash")
    call = ShellCall(tmp_path, config)
    assert call.context.config_as(ShellConfig) is config
    call.context.config = Config()
    with pytest.raises(TypeError, match="expected a configuration of the type ShellConfig, found Config"):
        call.context.config_as(ShellConfig)
