"""The console script: `ext-kubernetes`."""

from ext_sdk.boot import serve


def main() -> int:
    """Run the extension: serve a host, or run a command line."""
    return serve("ext_kubernetes.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
