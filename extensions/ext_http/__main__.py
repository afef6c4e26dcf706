"""The console script: `ext-http`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host, or a person."""
    return serve("ext_http.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
