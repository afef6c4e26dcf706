"""Checks of a file. Try it: `python looker.py call look '{"path": "looker.py", "content": {"contains": "Look"}}'`."""

import ext_sdk
from ext_sdk.expect import Text, check_text, conclude
from ext_sdk.files import Workdir, os_errors

LIMIT_BYTES = 1_048_576


class Look(ext_sdk.Args):
    path: str
    content: Text


extension = ext_sdk.Extension("looker", version="1.0.0", description="Checks files")


@extension.operation()
def look(args: Look, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check the content of a file in the working directory."""
    with os_errors("read", args.path):
        text = Workdir(context.workdir).read(args.path, limit=LIMIT_BYTES).decode(errors="replace")
    redact, workdir = context.secrets.redact, context.workdir  # of secrets in the text; of `jsonSchemaFile`
    checks = check_text(args.content, text, where=args.path, redact=redact, workdir=workdir)
    return conclude(checks, done=f"checked {args.path}")


if __name__ == "__main__":
    raise SystemExit(extension.run())
