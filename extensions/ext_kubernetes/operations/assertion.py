"""Operation `assert`: an object matches an expected one, polled until the deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.fields import identity
from ext_kubernetes.objects.matching import Difference, Lists, WrongPattern, check_pattern, differences
from ext_kubernetes.objects.yaml_loader import Json  # noqa: TC001 - msgspec reads it
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import TargetArgs
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.waiter import Selector, Timeout, display_name, resolve_target, wait_for
from ext_sdk.expect import Integer, Searcher, SearchFailed, check_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


MOST_DIFFERENCES = 10  # in the error


class AssertArgs(TargetArgs, any_of=("expected", "absent", "count")):
    """Arguments of `assert`."""

    expected: Annotated[
        dict[str, Json],
        Meta(
            description="Part of the object, such as {spec: {replicas: 3}}. null: the field is absent. Operators "
            "replace a value: $equals $ne $in $notIn $gt $gte $lt $lte (also of quantities) $quantity $exists $type "
            "$contains $matches $length $not $every, such as {status: {readyReplicas: {$gte: 2}}}"
        ),
    ] = field(default_factory=dict)
    lists: Annotated[
        Lists,
        Meta(
            description="Comparison of lists. key: each expected item matches the item of the same name or other "
            "Kubernetes key, at any index; order: the first items match in this order; exact: the same, and there are "
            "no further items"
        ),
    ] = "key"
    absent: Annotated[
        bool, Meta(description="Require that no object matches; without `expected`, that no object exists")
    ] = False
    count: Annotated[
        Integer | UnsetType,
        Meta(description="Number of matching objects of a kind, with or without `selector`; default: at least one"),
    ] = UNSET
    selector: Selector = ""
    timeout: Timeout = ext_sdk.Duration.parse("10s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        try:
            check_pattern(self.expected)
        except WrongPattern as error:
            raise ValueError(str(error)) from error
        if self.absent and self.count is not UNSET:
            raise ValueError("`absent` and `count` exclude each other; `absent` means a count of 0")


def assert_(args: AssertArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify that an object matches an expected one, or that none does; poll until the timeout.

    The expected object is a partial one: fields that it omits may have any value.
    """
    client = client_for(context, args)
    target = resolve_target(args, args.selector, context, client)
    if target.name and args.count is not UNSET:
        raise ext_sdk.InvalidArgs("count", "not accepted for a single object; omit the name")
    with Searcher() as searcher:
        predicate = MatchesExpected(args, searcher, target.name_of)
        try:
            with error_context(f"failed to check {target}"):
                result = wait_for(target, predicate, context, client, selector=args.selector)
        except SearchFailed as error:
            raise ext_sdk.OperationFailed(f"{target} can't be checked", error=str(error)) from error
    outputs: Outputs = {"count": predicate.count, "seconds": f"{result.outcome.seconds:.3f}"}
    outputs |= identity(result.objects[0]) if len(result.objects) == 1 else {}
    state = "absent" if args.absent else "as expected"
    if result.outcome.done:
        return ext_sdk.Result.ok(f"{display_name(target)} {target.are} {state}", outputs=outputs | {"done": True})
    found = f"found after {result.outcome.seconds:.1f} s: {predicate.status(MOST_DIFFERENCES)}"
    first_line = f"expected {target.where} to be {state}, {found}"
    if checks := predicate.failed_count():
        first_line = f"expected another number of {target.where}: {checks}; {found}"
    return wait_failure(
        result,
        state,
        context,
        client,
        timeout=args.timeout,
        on_timeout=args.on_timeout,
        outputs=outputs,
        message=f"{display_name(target)} {target.are} {'present' if args.absent else 'not as expected'}",
        error=first_line,
    )


class MatchesExpected:
    """Predicate of a wait: the expected number of objects match.

    Attributes:
        count: number of objects that matched at the last poll.
    """

    def __init__(self, args: AssertArgs, searcher: Searcher, name_of: Callable[[Object], str]) -> None:
        self._args = args
        self._searcher = searcher
        self._name_of = name_of
        self._closest: tuple[str, list[Difference]] | None = None
        self._total = 0
        self._matching: list[str] = []
        self.count = 0

    def __call__(self, objects: list[Object]) -> Verdict:
        self._closest, self._total, self._matching = None, len(objects), []
        for item in objects:
            name = self._name_of(item)
            different = differences(self._args.expected, item, lists=self._args.lists, searcher=self._searcher)
            if not different:
                self._matching.append(name)
            elif self._closest is None or len(different) < len(self._closest[1]):
                self._closest = name, different
        self.count = len(self._matching)
        if self._args.absent:
            done = not self.count
        else:
            done = not self.failed_count() if self._args.count is not UNSET else self.count > 0
        return Verdict(done, self.status(2))

    def failed_count(self) -> str:
        """Return the failed checks of `count` as text; "" if all passed."""
        if isinstance(self._args.count, UnsetType):
            return ""
        checks = check_integer(self._args.count, self.count, where="count")
        return "; ".join(str(check) for check in checks if not check.ok)

    def status(self, most: int) -> str:
        """Return the state at the last poll, with at most `most` differences."""
        counts = f"{self.count} of {self._total} as expected"
        if self._args.absent or self._closest is None:
            names = ", ".join(self._matching[:5])
            return f"{counts}{f': {names}' if names else ''}" if self._total else "no object"
        name, different = self._closest
        more = f"; and {len(different) - most} more" if len(different) > most else ""
        return f"{counts}; {name}: {'; '.join(map(str, different[:most]))}{more}"


OPERATIONS = (
    ext_sdk.Operation(
        "assert",
        assert_,
        {"resource": "deploy/web", "expected": {"spec": {"replicas": 2}, "status": {"readyReplicas": {"$gte": 1}}}},
    ),
)
