"""Resource limits: sizes, defaults, and the limit that explains an exit status."""

from __future__ import annotations

import resource
import signal

import pytest
from msgspec import ValidationError, convert

from ext_sdk import Duration, InvalidArgs
from ext_sdk.process import ExitStatus, Output
from ext_shell.rlimits import Limits, as_rlimits, explanation, size_in_bytes


def limits(cpu: str = "", **given: object) -> Limits:
    return convert({"cpu": Duration.parse(cpu)} | given if cpu else given, Limits)


@pytest.mark.parametrize(
    ("size", "number"), [(5, 5), ("65536", 65536), ("64KiB", 65536), ("1MB", 10**6), ("2GiB", 2**31)]
)
def test_sizes_have_units(size: int | str, number: int) -> None:
    assert size_in_bytes(size) == number


def test_limits_that_are_not_given_are_those_of_the_configuration() -> None:
    merged = limits(cpu="1s").merged(limits(cpu="9s", openFiles=10))
    assert merged == limits(cpu="1s", openFiles=10)


def test_cpu_time_is_rounded_up_and_the_hard_limit_is_later() -> None:
    assert as_rlimits(limits(cpu="1500ms")) == {resource.RLIMIT_CORE: (0, 0), resource.RLIMIT_CPU: (2, 3)}


def test_a_limit_above_that_of_the_extension_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda number: (10, 100))
    assert as_rlimits(limits(openFiles=100))[resource.RLIMIT_NOFILE] == (100, 100)
    with pytest.raises(InvalidArgs, match=r"limits\.openFiles: expected at most 100"):
        as_rlimits(limits(openFiles=101))


def test_no_cpu_time_at_all_is_refused() -> None:
    with pytest.raises(ValidationError, match="cpu: expected a duration over 0"):
        limits(cpu="0s")


def explained(given: Limits, status: ExitStatus, stderr: bytes = b"") -> str:
    output = Output(100)
    output.write(stderr)
    return explanation(given, status, {"stderr": output})


def test_a_signal_of_one_limit_alone_is_certain() -> None:
    status = ExitStatus(-signal.SIGXCPU)
    assert explained(limits(cpu="1s"), status) == "limits.cpu of 1s was reached"
    assert explained(limits(memory="1GiB"), status) == ""


def test_a_shell_reports_a_signal_by_its_exit_code() -> None:
    assert "limits.cpu" in explained(limits(cpu="1s"), ExitStatus(128 + signal.SIGXCPU))


def test_a_text_in_the_output_of_a_failure_is_a_sign() -> None:
    text = b"OSError: Too many open files"
    said = "limits.openFiles of 10 was probably reached: stderr contains 'too many open files'"
    assert explained(limits(openFiles=10), ExitStatus(1), text) == said
    assert explained(limits(openFiles=10), ExitStatus(0), text) == ""


def test_a_signal_with_several_causes_is_only_a_hint() -> None:
    assert explained(limits(memory=5), ExitStatus(-signal.SIGKILL)) == "limits.memory of 5 may be too low"
