"""Operation `assert`: an object matches an expected one, polled until the deadline."""

from __future__ import annotations

from textwrap import indent
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
from ext_kubernetes.waiting.failure_report import duration_text, wait_failure
from ext_kubernetes.waiting.waiter import Selector, Timeout, check_namespace, display_name, resolve_target, wait_for
from ext_sdk.core.text import counted
from ext_sdk.expect import Check, Integer, Searcher, SearchFailed, check_integer, passed
from ext_sdk.expect.check import failures

from . import DONE, FAILED_WAIT, ONE, REPORT, SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_sdk.expect.check import Redact


MOST_DIFFERENCES = 10  # in the error
MOST_NAMES = 5  # of objects in a message


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
        predicate = MatchesExpected(args, searcher, target.name_of, context.secrets.redact)
        try:
            with error_context(f"failed to check {target}"):
                result = wait_for(target, predicate, context, client, selector=args.selector)
        except SearchFailed as error:
            raise ext_sdk.OperationFailed(f"{target} can't be checked", error=str(error)) from error
    outputs: Outputs = {"count": predicate.count, "seconds": f"{result.outcome.seconds:.3f}"}
    outputs |= identity(result.objects[0]) if len(result.objects) == 1 else {}
    state = "absent" if args.absent else "as expected"
    if result.outcome.done:
        if not result.objects:
            check_namespace(target, context, client)
        return ext_sdk.Result.ok(f"{display_name(target)} {target.are} {state}", outputs=outputs | {"done": True})
    duration = duration_text(result, context, args.timeout)
    absent = f"expected {target.where} to be absent, " if args.absent else f"{target.where}: "
    last = f"{absent}last found {predicate.counts}{duration}"
    return wait_failure(
        result,
        state,
        context,
        client,
        args,
        outputs=outputs,
        message=f"{display_name(target)} {target.are} {'present' if args.absent else 'not as expected'}",
        error="\n".join([*predicate.paragraphs(named=not target.name), last]),
    )


class MatchesExpected:
    """Predicate of a wait: the expected number of objects match.

    Attributes:
        count: number of objects that matched at the last poll.
    """

    def __init__(self, args: AssertArgs, searcher: Searcher, name_of: Callable[[Object], str], redact: Redact) -> None:
        self._args = args
        self._searcher = searcher
        self._redact = redact
        self._name_of = name_of
        self._closest: tuple[str, list[Difference]] | None = None
        self._total = 0
        self._matching: list[str] = []
        self.count = 0

    def __call__(self, objects: list[Object]) -> Verdict:
        self._closest, self._total, self._matching = None, len(objects), []
        for item in objects:
            name = self._name_of(item)
            different = differences(
                self._args.expected, item, lists=self._args.lists, searcher=self._searcher, redact=self._redact
            )
            if not different:
                self._matching.append(name)
            elif self._closest is None or len(different) < len(self._closest[1]):
                self._closest = name, different
        self.count = len(self._matching)
        if self._args.absent:
            done = not self.count
        else:
            done = passed(self._checks()) if self._args.count is not UNSET else self.count > 0
        different = self._closest[1] if self._closest and not self._args.absent else []
        return Verdict(done, "; ".join([self.counts, *map(str, different[:2])]))

    def _checks(self) -> list[Check]:
        """Return the checks of `count`."""
        count = self._args.count
        return [] if isinstance(count, UnsetType) else check_integer(count, self.count, where="count")

    @property
    def counts(self) -> str:
        """The numbers of objects at the last poll, with the first names."""
        names = ", ".join(self._matching[:MOST_NAMES])
        counts = f"{self.count} of {self._total} as expected{f': {names}' if names else ''}"
        return counts if self._total else "no object"

    def paragraphs(self, *, named: bool) -> list[str]:
        """Return the failed checks, and the differences of the closest object at the last poll.

        Args:
            named: with the name of that object.
        """
        found = failures(self._checks())
        if self._args.absent or self._closest is None:
            return found
        name, different = self._closest
        shown = [difference.paragraph for difference in different[:MOST_DIFFERENCES]]
        more = len(different) - MOST_DIFFERENCES
        shown += [f"and {counted(more, 'more difference')}"] if more > 0 else []
        return [*found, f"{name}:", indent("\n".join(shown), "  ")] if named else [*found, *shown]


OPERATIONS = (
    ext_sdk.Operation(
        "assert",
        assert_,
        {"resource": "deploy/web", "expected": {"spec": {"replicas": 2}, "status": {"readyReplicas": {"$gte": 1}}}},
        outputs=SECONDS | DONE | {"count": "number of matching objects"} | FAILED_WAIT | REPORT | ONE,
        title="Check objects",
        read_only=True,
    ),
)
