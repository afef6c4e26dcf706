"""Git repositories in evals. Try it: `python ext_git.py call assert-status '{"repository": "."}'`."""

from typing import Annotated

import ext_sdk
from ext_sdk.expect import Integer, Text, check_integer, check_text, conclude

NOBODY = {f"GIT_{role}_{part}": "eval" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")  # an agent's settings must not run programs
Repository = Annotated[str, ext_sdk.Meta(description="Folder of the repository")]
extension = ext_sdk.Extension("git", version="1.0.0", description="Git repositories", requires=["git"])


def git(context: ext_sdk.Context, repository: str, *words: str) -> str:
    return context.run(["git", *SAFE, *words], cwd=repository, env=NOBODY | SETTINGS).stdout.text.rstrip("\n")


@extension.operation(example={"repository": ".", "message": "Add a page"})
def commit(
    context: ext_sdk.Context, message: str, repository: Repository = ".", branch: str = "main"
) -> ext_sdk.Result:
    """Commit all files of a folder, which becomes a repository if it is none.

    Args:
        message: Message of the commit.
        branch: Branch of a new repository.
    """
    git(context, repository, "init", "--quiet", f"--initial-branch={branch}")
    git(context, repository, "add", "--all")
    git(context, repository, "commit", "--quiet", "--allow-empty", f"--message={message}")
    return ext_sdk.Result.ok("committed", outputs={"commit": git(context, repository, "rev-parse", "HEAD")})


@extension.operation("assert-status", example={"repository": ".", "changes": ""})
def assert_status(context: ext_sdk.Context, repository: Repository = ".", changes: Text = "") -> ext_sdk.Result:
    """Check the changes that are not committed, as `git status --porcelain` lists them; none by default."""
    checks = check_text(changes, git(context, repository, "status", "--porcelain"), where="changes")
    return conclude(checks, done=f"status of {repository}")


@extension.operation("assert-history", example={"revision": "HEAD", "message": {"startsWith": "Add"}})
def assert_history(
    context: ext_sdk.Context,
    repository: Repository = ".",
    revision: Annotated[str, ext_sdk.Meta(description="Branch, tag or range such as main..HEAD")] = "HEAD",
    message: Annotated[Text, ext_sdk.Meta(description="Message of the last commit")] | None = None,
    count: Annotated[Integer, ext_sdk.Meta(description="Number of commits")] = "nonzero",
) -> ext_sdk.Result:
    """Check the commits of a branch."""
    number = int(git(context, repository, "rev-list", "--count", "--end-of-options", revision))
    checks = check_integer(count, number, where="number of commits")
    if message is not None:
        last = git(context, repository, "log", "-1", "--format=%B", "--end-of-options", revision)
        checks += check_text(message, last, where="message", redact=context.secrets.redact)
    return conclude(checks, done=f"history of {revision}", outputs={"count": number})


if __name__ == "__main__":
    raise SystemExit(extension.run())
