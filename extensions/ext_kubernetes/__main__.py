"""The console script: `ext-kubernetes`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host, or a person."""
    return serve("ext_kubernetes.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
