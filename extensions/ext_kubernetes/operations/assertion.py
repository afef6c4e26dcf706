"""Operation `assert`: an object matches an expected one, polled until the deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.fields import identity, text
from ext_kubernetes.objects.matching import Difference, Lists, WrongPattern, check_pattern, differences
from ext_kubernetes.objects.yaml_loader import Json  # noqa: TC001 - msgspec reads it
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import TargetArgs
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.predicates import display_name, resolve_target
from ext_kubernetes.waiting.waiter import Selector, Timeout, wait_for
from ext_sdk.expect import Integer, Searcher, SearchFailed, check_integer

if TYPE_CHECKING:
    from ext_kubernetes.objects.yaml_loader import Object


MOST_TOLD = 10  # differences in the error


class AssertArgs(TargetArgs, any_of=("expected", "absent", "count")):
    """Which object, and how it must look."""

    expected: Annotated[
        dict[str, Json],
        Meta(
            description="Part of the object, such as {spec: {replicas: 3}}. null: not there. Operators in place of a "
            "value: $equals $ne $in $notIn $gt $gte $lt $lte (quantities too) $exists $type $contains $matches $length "
            "$not $every, such as {status: {readyReplicas: {$gte: 2}}}"
        ),
    ] = field(default_factory=dict)
    lists: Annotated[
        Lists,
        Meta(
            description="key: each expected item is found, by its name or other key of Kubernetes, or anywhere; order: "
            "they come in this order, first; exact: and there are no others"
        ),
    ] = "key"
    absent: Annotated[bool, Meta(description="There must be none like this, or none at all without `expected`")] = False
    count: Annotated[
        Integer | UnsetType,
        Meta(description="How many look so, for a kind with or without `selector`; one at least if left out"),
    ] = UNSET
    selector: Selector = ""
    timeout: Timeout = ext_sdk.Duration.parse("10s")

    def __post_init__(self) -> None:
        try:
            check_pattern(self.expected)
        except WrongPattern as error:
            raise ValueError(str(error)) from error
        if self.absent and self.count is not UNSET:
            raise ValueError("`absent` is a count of 0 already")


def assert_(args: AssertArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify that an object looks as expected, or that none does; look again until the timeout.

    What is expected is a part of the object: members that are not named may be anything.
    """
    client = client_for(context)
    target = resolve_target(args, args.selector, context, client)
    if target.name and args.count is not UNSET:
        raise ext_sdk.InvalidArgs("count", "this is for several objects: leave the name out")
    with Searcher() as searcher:
        looks = MatchesExpected(args, searcher)
        try:
            with error_context(f"failed to check {target}"):
                seen = wait_for(target, looks, context, client, selector=args.selector)
        except SearchFailed as error:
            raise ext_sdk.OperationFailed(f"{target} can't be checked", error=str(error)) from error
    outputs: dict[str, str | int | bool] = {"count": looks.count, "seconds": f"{seen.waited.seconds:.3f}"}
    outputs |= identity(seen.objects[0]) if len(seen.objects) == 1 else {}
    if seen.waited.done:
        return ext_sdk.Result.ok(
            f"{display_name(target)} {target.are} {'absent' if args.absent else 'as expected'}", outputs=outputs
        )
    wanted = "absent" if args.absent else "as expected"
    found = f"found after {seen.waited.seconds:.1f} s: {looks.status(MOST_TOLD)}"
    message = f"{display_name(target)} {target.are} {'there' if args.absent else 'not as expected'}"
    told = f"expected {target.where} to be {wanted}, {found}"
    if checks := looks.failed():
        told = f"expected another number of {target.where}: {checks}; {found}"
    return wait_failure(
        seen,
        wanted,
        context,
        client,
        timeout=args.timeout,
        outputs=outputs,
        message=message,
        error=told,
    )


class MatchesExpected:
    """Tells whether what there is looks as expected.

    Attributes:
        count: how many objects did, at the last look.
    """

    def __init__(self, args: AssertArgs, searcher: Searcher) -> None:
        self._args = args
        self._searcher = searcher
        self._closest: tuple[str, list[Difference]] | None = None
        self._found = 0
        self._matching: list[str] = []
        self.count = 0

    def __call__(self, objects: list[Object]) -> Verdict:
        self._closest, self._found, self._matching = None, len(objects), []
        for item in objects:
            name = text(item, "metadata", "name")
            found = differences(self._args.expected, item, lists=self._args.lists, searcher=self._searcher)
            if not found:
                self._matching.append(name)
            elif self._closest is None or len(found) < len(self._closest[1]):
                self._closest = name, found
        self.count = len(self._matching)
        return Verdict(done=self._holds(), status=self.status(2))

    def _holds(self) -> bool:
        if self._args.absent:
            return not self.count
        if isinstance(self._args.count, UnsetType):
            return self.count > 0
        return not self.failed()

    def failed(self) -> str:
        """What is wrong with the number of those that look as expected; "" where nothing is."""
        if isinstance(self._args.count, UnsetType):
            return ""
        checks = check_integer(self._args.count, self.count, where="count")
        return "; ".join(str(check) for check in checks if not check.ok)

    def status(self, most: int) -> str:
        """What was found, with so many differences at most."""
        told = f"{self.count} of {self._found} as expected"
        if self._args.absent or self._closest is None:
            names = ", ".join(self._matching[:5])
            return f"{told}{f': {names}' if names else ''}" if self._found else "nothing there"
        name, found = self._closest
        more = f"; and {len(found) - most} more" if len(found) > most else ""
        return f"{told}; {name}: {'; '.join(map(str, found[:most]))}{more}"


OPERATIONS = (
    ext_sdk.Operation(
        "assert",
        assert_,
        {"resource": "deploy/web", "expected": {"spec": {"replicas": 2}, "status": {"readyReplicas": {"$gte": 1}}}},
    ),
)
