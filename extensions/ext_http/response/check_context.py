"""What checks share: deadline, redaction and readers of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.expect.format import redact_named

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk import Context
    from ext_sdk.expect import Searcher
    from ext_sdk.expect.format import Redact


class CheckContext:
    """What checks are made with.

    Attributes:
        workdir: where files are that are compared with.
        searcher: runs the regular expressions.
        redact: takes secrets out of what is shown.
    """

    __slots__ = ("redact", "searcher", "workdir")

    def __init__(self, workdir: Path, searcher: Searcher, redact: Redact) -> None:
        self.workdir = workdir
        self.searcher = searcher
        self.redact = redact

    @classmethod
    def of(cls, context: Context, searcher: Searcher) -> CheckContext:
        """Those of a call."""
        return cls(context.workdir, searcher, context.secrets.redact)

    def beside(self, name: str) -> CheckContext:
        """Those for the value of a name, such as Authorization: by itself it may not look secret."""
        return CheckContext(self.workdir, self.searcher, redact_named(name, self.redact))
