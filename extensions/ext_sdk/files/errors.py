"""Errors of files: failures of the operation that uses them."""

from __future__ import annotations

from contextlib import contextmanager

from ext_sdk.errors import OperationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class PathEscapes(OperationFailed):
    """Path that leads out of the working directory: by `..`, as an absolute path, or through a symbolic link."""

    def __init__(self, path: str, root: str, how: str) -> None:
        super().__init__(
            f"{path!r} is not a path inside the working directory",
            error=f"{path!r} is not a path inside the working directory {root}: {how}",
        )


class NotRegular(OperationFailed):
    """Path to something else than a regular file: reading a FIFO or a device could wait forever."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path!r} is not a regular file", error=f"{path}: expected a regular file, got a {kind}")
        self.kind = kind


class TooLarge(OperationFailed):
    """File over a limit in bytes."""

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(
            f"{path!r} is too large", error=f"{path}: expected at most {limit:,} bytes, got more; raise `maxSize`"
        )


@contextmanager
def os_errors(action: str, path: str, *, exists: str = "`overwrite: true` replaces it") -> Iterator[None]:
    """Convert an OSError to a failure of the operation.

    Args:
        action: the failed action, as a verb: `write`.
        path: as the user wrote it.
        exists: remedy for a file that exists already.

    Raises:
        OperationFailed: for any OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"could not {action} {path!r}"
        if isinstance(error, FileExistsError):
            remedy = f"; {exists}"
        elif isinstance(error, FileNotFoundError):
            remedy = "; is the path right? It starts in the working directory"
            if action == "write":
                remedy += ", and `parents: true` makes its directories"
        elif isinstance(error, PermissionError):
            remedy = "; the user that runs the extension may not do this"
        else:
            remedy = ""
        raise OperationFailed(message, error=f"{message}: {reason}{remedy}") from error
