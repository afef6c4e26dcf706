"""Entry point of the console script `ext-shell`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host on standard input and output, or handle the command line."""
    return serve("ext_shell.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
