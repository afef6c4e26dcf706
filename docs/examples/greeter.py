"""An extension in 20 lines. Try it: `python greeter.py call greet '{"name": "Ada"}'`."""

from typing import Annotated

import ext_sdk


class Greet(ext_sdk.Args):
    name: Annotated[str, ext_sdk.Meta(description="Name of the person")]
    after: Annotated[ext_sdk.Duration, ext_sdk.Meta(description="Delay before the greeting")] = ext_sdk.Duration()


extension = ext_sdk.Extension("greeter", version="1.0.0", description="Says hello")


@extension.operation(example={"name": "Ada"}, read_only=True, open_world=False)
def greet(args: Greet, context: ext_sdk.Context) -> ext_sdk.Result:
    """Greet a person; fail if the name is empty."""
    context.log.info(f"waiting {args.after} before greeting {args.name!r}")
    if not context.deadline.wait(args.after.seconds):
        raise ext_sdk.OperationFailed("deadline reached before the greeting", error=f"expected more than {args.after}")
    if not args.name:
        return ext_sdk.Result.failed("no name to greet", error="expected a name, found an empty string")
    return ext_sdk.Result.ok(f"Hello, {args.name}!", outputs={"name": args.name, "letters": len(args.name)})


if __name__ == "__main__":
    raise SystemExit(extension.run())
