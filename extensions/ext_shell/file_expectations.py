"""What files must be once a command has run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.expect import Check, Expectation, Integer, Searcher, Text

from .files.assert_file import AssertFile, Look
from .files.common import Mode, workdir_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk import Context


class FileExpectation(Expectation):
    """What a file must be, as for `assert-file`; all that is given must hold."""

    exists: Annotated[bool | UnsetType, Meta(description="false: there is nothing of this name")] = UNSET
    type: Literal["file", "directory", "symlink"] | UnsetType = UNSET
    content: Annotated[Text | UnsetType, Meta(description="A text, but for one line end; or an object")] = UNSET
    mode: Mode | UnsetType = UNSET
    size: Annotated[Integer | UnsetType, Meta(description="Bytes")] = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        self.as_arguments("-")  # refuses what contradicts itself

    def as_arguments(self, path: str) -> AssertFile:
        """The arguments of `assert-file` that say the same of a path."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return AssertFile(path=path, **given)


def check_files(expectations: Mapping[str, FileExpectation], context: Context, searcher: Searcher) -> list[Check]:
    """Look at the files once.

    Args:
        expectations: by path in the workdir.
        context: of the call.
        searcher: for regular expressions.

    Raises:
        OperationFailed: a path leads out of the workdir.
    """
    checks: list[Check] = []
    for path, wanted in expectations.items():
        checks += Look(wanted.as_arguments(path), workdir_for(context, path), context, searcher).checks()
    return checks
