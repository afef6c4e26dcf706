"""The console script: `ext-shell`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host, or a person."""
    return serve("ext_shell.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
