"""What all expectations share: they are arguments of operations, and each must check something."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ext_sdk.operation import Args

# Any JSON value. msgspec knows no recursive alias; what comes out of it is handled as `object`.
Json = Any


class Expectation(Args):
    """The base of expectations. A field that was not given is UNSET: `null` is a value that one may expect.

    `__post_init__` raises ValueError for an expectation that checks nothing or can't hold. The SDK answers
    it as an invalid argument, with its path, before anything runs.
    """

    def given(self, *, besides: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The names, as users write them, of the fields that were given.

        Args:
            besides: names to leave out, because they only say how to check.
        """
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return tuple(name for field, name in pairs if getattr(self, field) is not UNSET and name not in besides)

    def refuse_empty(self, *, besides: tuple[str, ...] = ()) -> None:
        """Raise ValueError where nothing is checked: such an expectation would pass whatever happens."""
        if not self.given(besides=besides):
            known = [name for name in self.__struct_encode_fields__ if name not in besides]
            raise ValueError(f"this checks nothing; give at least one of {', '.join(known)}")
