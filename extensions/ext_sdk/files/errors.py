"""What goes wrong with files: failures of the operation that asked for them."""

from __future__ import annotations

from contextlib import contextmanager

from ext_sdk.errors import OperationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class PathEscapes(OperationFailed):
    """A path leads out of the working directory: by `..`, as an absolute path, or through a symbolic link."""

    def __init__(self, path: str, root: str, how: str) -> None:
        super().__init__(
            f"{path!r} is no path inside of the working directory",
            error=f"{path!r} is no path inside of the working directory {root}: {how}",
        )


class NotRegular(OperationFailed):
    """A path leads to something else than a regular file: reading a FIFO or a device could wait forever."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path!r} is not a regular file", error=f"{path}: expected a regular file, got a {kind}")
        self.kind = kind


class TooLarge(OperationFailed):
    """A file is larger than the limit, in bytes."""

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(
            f"{path!r} is too large", error=f"{path}: expected at most {limit:,} bytes, got more; raise `maxSize`"
        )


@contextmanager
def os_errors(action: str, path: str, *, exists: str = "`overwrite: true` replaces it") -> Iterator[None]:
    """Turn what the operating system says into a failure of the operation.

    Args:
        action: what was being done, in words: `write`.
        path: to what, as the user wrote it.
        exists: advice for a file that exists already.

    Raises:
        OperationFailed: for any OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"could not {action} {path!r}"
        raise OperationFailed(message, error=f"{message}: {reason}{_advice(action, error, exists)}") from error


def _advice(action: str, error: OSError, exists: str) -> str:
    if isinstance(error, FileExistsError):
        return f"; {exists}"
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            makes = ", and `parents: true` makes its directories" * (kind is FileNotFoundError and action == "write")
            return f"; {advice}{makes}"
    return ""


_ADVICE: tuple[tuple[type[OSError], str], ...] = (
    (FileNotFoundError, "is the path right? It starts in the working directory"),
    (PermissionError, "the user that runs the extension may not do this"),
)
