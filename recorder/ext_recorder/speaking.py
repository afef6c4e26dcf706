"""What a cassette speaks, as its header says."""

from __future__ import annotations

from ext_sdk.protocols.dialect import DIALECTS

from .errors import CassetteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.protocols.dialect import Dialect

    from .cassette.header import Header


def dialect_of(header: Header, path: str) -> Dialect:
    """The dialect of a cassette. Raises CassetteError."""
    dialect = DIALECTS.get(header.protocol)
    if dialect is None:
        known = ", ".join(DIALECTS)
        raise CassetteError(path, 1, f"expected `protocol` to be one of {known}, found {header.protocol!r}")
    return dialect
