"""Operations that call their host. Try them in Pi: `python reviewer.py export --protocol pi DIR`, then `pi -e DIR`."""

import ext_sdk

extension = ext_sdk.Extension(
    "reviewer", version="1.0.0", description="Reviews files with the user of the host", host_capabilities=["read", "ui"]
)


@extension.operation(read_only=True)
def count_lines(context: ext_sdk.Context, path: str) -> ext_sdk.Result:
    """Count the lines of a file that the host reads, with its own permissions."""
    context.log.info(f"reading {path}")
    text = context.host.tool("read", {"path": path}).text
    return ext_sdk.Result.ok(f"read {path}", outputs={"lines": text.count("\n")})


@extension.operation(read_only=True)
def approve(context: ext_sdk.Context, question: str) -> ext_sdk.Result:
    """Fail unless the user of the host answers yes."""
    if not context.host.available:
        return ext_sdk.Result.ok("not reviewed: the host has no user")
    answer = context.host.call("ui", {"op": "confirm", "title": "Review", "message": question})
    if answer.get("value") is not True:
        return ext_sdk.Result.failed(f"refused: {question}")
    return ext_sdk.Result.ok(f"approved: {question}")


if __name__ == "__main__":
    raise SystemExit(extension.run())
