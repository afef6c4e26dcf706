"""An extension in 20 lines. Try it: `python greeter.py call greet '{"name": "Ada"}'`."""

from typing import Annotated

import ext_sdk


class Greet(ext_sdk.Args):
    name: Annotated[str, ext_sdk.Meta(description="Whom to greet")]
    after: Annotated[ext_sdk.Duration, ext_sdk.Meta(description="How long to wait first")] = ext_sdk.Duration()


extension = ext_sdk.Extension("greeter", version="1.0.0", description="Says hello")


@extension.operation(example={"name": "Ada"})
def greet(args: Greet, context: ext_sdk.Context) -> ext_sdk.Result:
    """Say hello to somebody, and fail if nobody is there."""
    context.log.info(f"waiting {args.after} before greeting {args.name!r}")
    if not context.deadline.wait(args.after.seconds):
        raise ext_sdk.OperationFailed("the time was up before the greeting", error=f"needed {args.after}: allow more")
    if not args.name:
        return ext_sdk.Result.failed("nobody to greet", error="expected a name, found an empty one")
    return ext_sdk.Result.ok(f"Hello, {args.name}!", outputs={"name": args.name, "letters": len(args.name)})


if __name__ == "__main__":
    raise SystemExit(extension.run())
