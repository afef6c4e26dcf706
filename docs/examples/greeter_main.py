from ext_sdk.boot import serve


def main() -> int:
    return serve("greeter.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
