"""Configuration of ext-http."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.config import HttpConfig
from ext_sdk import Config
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path


def test_patterns_of_hosts_are_checked() -> None:
    assert HttpConfig(allow_hosts=["*.test", "a:80"]).allow_hosts == ["*.test", "a:80"]
    with pytest.raises(ValueError, match="expected a host"):
        HttpConfig(allow_hosts=["http://a"])


def test_the_configuration_of_another_extension_is_an_error(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    assert isinstance(context.config_as(HttpConfig), HttpConfig)
    context.config = Config()
    with pytest.raises(TypeError, match="expected a configuration of the type HttpConfig, found Config"):
        context.config_as(HttpConfig)
