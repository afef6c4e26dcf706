"""Console script `ext-http`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host on stdin and stdout, or run the command line."""
    return serve("ext_http.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
