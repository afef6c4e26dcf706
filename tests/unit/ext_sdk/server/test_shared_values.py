"""Values that extensions share by files, as far as two of them in one process can show it."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING

import pytest

from ext_sdk import NotKept
from ext_sdk.context import Place
from ext_sdk.server import shared_values
from ext_sdk.server.shared_values import LISTED_BYTES, LONGEST_VALUE, SharedValues
from ext_sdk.server.variables import Variables

if TYPE_CHECKING:
    from pathlib import Path

HERE = Place("/here")


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of all extensions."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"ext-values-{os.getuid()}"


@pytest.fixture
def writer() -> SharedValues:
    return SharedValues("writer", lambda text: text.replace("sesame", "[redacted]"))


@pytest.fixture
def reader() -> SharedValues:
    return SharedValues("reader", str)


def test_nothing_is_created_by_a_session_that_keeps_nothing(reader: SharedValues, base: Path) -> None:
    reader.close()
    assert not base.exists()


def test_each_value_is_complete_or_has_the_reason_why_it_is_not_there(
    writer: SharedValues, reader: SharedValues
) -> None:
    outputs: dict[str, str | NotKept] = {
        "short": "x",
        "longest": "x" * LONGEST_VALUE,
        "longer": "x" * (LONGEST_VALUE + 1),
        "binary": NotKept("binary: 3 bytes"),
        "password": "gold",
        "log": "open sesame",
    }
    writer.keep(HERE, "a", outputs, {"password"})
    kept = reader.find(HERE, "a")
    assert kept is not None
    assert kept.values == {"short": "x", "longest": "x" * LONGEST_VALUE}
    assert kept.reasons["binary"] == "binary: 3 bytes"
    assert kept.reasons["longer"].startswith(
        "it has 1,048,577 characters, and other extensions get values of at most 1,0"
    )
    only = "and secret values are available in ext-writer only"
    assert kept.reasons["password"] == f"it is secret, {only}"
    assert kept.reasons["log"] == f"it contains a secret value, {only}; `capture` the part that is needed"
    assert writer.find(HERE, "a") is None
    assert reader.find(Place("/here", "scope"), "a") is None
    assert reader.known(HERE) == {}  # not of files that are so long
    writer.keep(HERE, "b", {"x": "y" * LISTED_BYTES, "z": ""})
    writer.keep(HERE, "c", {"d": "", "e": NotKept("")})
    assert {name: kept.values for name, kept in reader.known(HERE).items()} == {"c": {"d": ""}}


def test_values_beyond_the_limit_of_an_extension_are_not_kept(
    writer: SharedValues, reader: SharedValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_values, "MOST_SHARED", 1000)
    writer.keep(HERE, "a", {"x": "y" * 800})
    writer.keep(HERE, "a", {"x": "z" * 800})  # takes the room of the one before
    writer.keep(HERE, "b", {"x": "y" * 800})
    first, second = reader.find(HERE, "a"), reader.find(HERE, "b")
    assert first is not None
    assert first.values == {"x": "z" * 800}
    assert second is not None
    assert second.reasons == {"x": "the values that ext-writer keeps for other extensions exceed 1,000 bytes"}


def test_a_value_that_can_not_be_replaced_is_removed(
    writer: SharedValues, reader: SharedValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.keep(HERE, "a", {"x": "1"})

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            writer.keep(HERE, "a", {"x": "2"})
    assert reader.find(HERE, "a") is None


def test_values_of_another_host_are_not_seen(reader: SharedValues, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setenv("EXT_VALUES_HOST", "/another")
        other, third = SharedValues("other", str), SharedValues("third", str)
    other.keep(HERE, "a", {"x": "1"})
    assert reader.find(HERE, "a") is None
    assert reader.known(HERE) == {}
    assert list(third.known(HERE)) == ["a"]


def test_the_scopes_of_a_name_are_those_of_its_workdir_in_which_it_was_set(
    writer: SharedValues, reader: SharedValues
) -> None:
    for place in (Place("/here", "a"), HERE, Place("/there", "b")):
        writer.keep(place, "web", {"port": "80"})
    writer.keep(Place("/here", "c"), "db", {"port": "80"})
    writer.fail(Place("/here", "d"), "web", "start")
    assert reader.scopes(Place("/here", "e"), "web") == {"a", ""}
    expansion = Variables(reader).expansion(Place("/here", "e"))
    expansion.expand("${web.port}")
    assert "scope 'e' (a step without `scope`, scope 'a' of this workdir has the name)" in str(expansion.problem)


def test_the_latest_call_of_a_name_counts(writer: SharedValues, reader: SharedValues) -> None:
    second = SharedValues("second", str)
    writer.keep(HERE, "a", {"x": "1"})
    second.fail(HERE, "a", "run")
    kept = reader.find(HERE, "a")
    assert kept is not None
    assert (kept.failed, kept.extension, kept.values) == ("run", "ext-second", {})
    assert reader.find(HERE, "a", later_than=time.monotonic_ns()) is None


def test_directories_of_extensions_that_have_ended_are_removed(
    writer: SharedValues, reader: SharedValues, base: Path
) -> None:
    writer.keep(HERE, "a", {"x": "1"})
    (own,) = base.iterdir()
    for name in ("1-dead", "new-young", "new-old"):
        (base / name).mkdir()
    (base / "1-dead" / "file").touch()
    (base / "file").touch()
    os.utime(base / "new-old", (0, 0))
    assert reader.find(HERE, "a") is not None
    assert {path.name for path in base.iterdir()} == {own.name, "new-young", "file"}
    (own / next(own.iterdir()).name).write_text("{")
    assert reader.find(HERE, "a") is None
    writer.close()
    writer.keep(HERE, "a", {"x": "1"})
    assert {path.name for path in base.iterdir()} == {"new-young", "file"}
