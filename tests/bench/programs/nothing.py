"""An extension whose one operation does nothing: what is left is what every call costs."""

from __future__ import annotations

import ext_sdk


class Nothing(ext_sdk.Args):
    text: str = ""


extension = ext_sdk.Extension("nothing", version="1.0.0", description="For measuring")


@extension.operation()
def nothing(args: Nothing, context: ext_sdk.Context) -> ext_sdk.Result:
    """Do nothing."""
    return ext_sdk.Result.ok("done")


if __name__ == "__main__":
    raise SystemExit(extension.run())
