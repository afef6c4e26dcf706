"""JSONPath of RFC 9535, by python-jsonpath, made exact and bounded; the only module that imports the library.

Changes: integers in a path are exact (the library uses float, where 9007199254740993 matches 9007199254740992);
comparisons in filters are as strict inside arrays and objects as outside (in Python [1] equals [true]); `match()` and
`search()` run in the child process of a Searcher, because their pattern may be in the document; and a query ends after
a number of nodes.
"""

from __future__ import annotations

from contextvars import ContextVar
from decimal import Decimal
from functools import lru_cache
from typing import cast

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError, JSONPathMatch, JSONPathSyntaxError
from jsonpath.filter import UNDEFINED, BaseExpression, IntegerLiteral
from jsonpath.function_extensions import ExpressionType, FilterFunction
from jsonpath.match import NodeList
from jsonpath.parse import Parser

from ext_sdk.core import regex

from .json_equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from jsonpath.match import FilterContextVars
    from jsonpath.stream import TokenStream

    from ext_sdk.core.regex import Searcher


MOST_NODES = 500_000  # nodes that a query may visit, 2 to 5 s: `$..*..*` of a big document would take hours
DEEPEST = 300  # levels that `..` descends; the library recurses
STEPS = 1024  # nodes and comparisons between two readings of the clock, some 5 ms
LONGEST_INTEGER = 400  # digits of an integer in a path, exponent included; no double has more


class PathFailed(ValueError):
    """Invalid path, or query over a limit; str() is the reason, in one line."""


class Node:
    """Value that a path selects, and its own, normalized path."""

    __slots__ = ("path", "value")

    def __init__(self, path: str, value: object) -> None:
        self.path = path
        self.value = value


def problem(path: str) -> str:
    """Return the error in a path, or ""."""
    try:
        _compiled(path)
    except PathFailed as error:
        return str(error)
    return ""


def select(path: str, document: object, searcher: Searcher) -> list[Node]:
    """Return the nodes that a path selects, in the order of RFC 9535.

    Args:
        path: begins with `$`.
        searcher: searches for the patterns of `match()` and `search()`.

    Raises:
        PathFailed: the path is invalid, or visits more than 500,000 nodes.
        SearchFailed: a pattern took too long, or the deadline of the searcher is over.
    """
    compiled = _compiled(path)
    query = _Query(searcher)
    # Not JSONPath.finditer(): that would parse a document that is a string.
    root = _CountedMatch(
        filter_context={"query": query},
        obj=document,
        parent=None,
        path="$",
        parts=(),
        root=document,  # type: ignore[arg-type]  # scalars are fine
    )
    nodes: Iterable[JSONPathMatch] = [root]
    for segment in compiled.segments:
        nodes = segment.resolve(nodes)
    token = _QUERY.set(query)
    try:
        return [Node(node.path, node.obj) for node in nodes]
    except JSONPathError as error:
        raise PathFailed(f"{path!r:.200}: {error.message}") from error
    except RecursionError as error:
        raise PathFailed(_explained(path, error)) from error
    finally:
        _QUERY.reset(token)


@lru_cache(maxsize=256)  # a path is checked with the arguments, then used, often again and again
def _compiled(path: str) -> JSONPath:
    if not path.startswith("$"):
        raise PathFailed(f"{path!r:.200} is not a JSONPath (RFC 9535): it must begin with `$`, the complete document")
    try:
        return cast("JSONPath", _ENVIRONMENT.compile(path))  # a strict environment has no unions of paths
    except (JSONPathError, RecursionError, ValueError, OverflowError) as error:
        raise PathFailed(_explained(path, error)) from error


def _explained(path: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"{path!r:.200}: the path, or the document, is nested too deeply"
    what = error.message if isinstance(error, JSONPathError) else error
    token = getattr(error, "token", None)
    place = f", at character {token.index}" if token and token.index >= 0 else ""
    hint = "; items of an array are written [0]" if "shorthand" in str(what) else ""
    return f"{path!r:.200} is not a JSONPath (RFC 9535): {what}{place}{hint}"


class _Parser(Parser):
    """Parser that reads integers exactly."""

    def parse_integer_literal(self, stream: TokenStream) -> BaseExpression:
        token = stream.next()
        digits, _, exponent = token.value.lower().partition("e")
        if len(digits) + int(exponent or 0) > LONGEST_INTEGER:
            raise JSONPathSyntaxError("the integer is too long", token=token)
        if digits.lstrip("-").startswith("0") and len(digits.lstrip("-")) > 1:
            raise JSONPathSyntaxError("an integer has no leading zeros", token=token)
        return IntegerLiteral(value=int(Decimal(token.value)))


class _Query:
    """One query: its searcher, and the nodes and steps that it has made.

    Attributes:
        searcher: searches for the patterns of `match()` and `search()`.
    """

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher
        self._nodes_left = MOST_NODES
        self._steps = 0

    def count_node(self) -> None:
        """Count a visit; raise JSONPathError if there were too many."""
        self.count_step()
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise JSONPathError(f"it visits more than {MOST_NODES:,} nodes")

    def count_step(self) -> None:
        """Raise SearchFailed if the deadline is over; only every 1,024th call reads the clock."""
        self._steps += 1
        if self._steps % STEPS == 0:
            self.searcher.check_time()


# The query of this thread, for the parts of the library that are called without a node.
_QUERY: ContextVar[_Query] = ContextVar("json_path_query")


class _Environment(JSONPathEnvironment):
    """Settings of the library."""

    parser_class = _Parser

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _PatternFunction(r"\A(?:{})\Z")
        self.function_extensions["search"] = _PatternFunction("{}")

    @property
    def max_recursion_depth(self) -> int:  # type: ignore[override]  # the library has a class variable
        """Limit of depth; reading it counts a node, because the library does so at every node that `..` visits."""
        _QUERY.get().count_node()
        return DEEPEST

    def compare(self, left: object, operator: str, right: object) -> bool:
        _QUERY.get().count_step()
        values = (left, right)
        if operator not in {"==", "!=", "<=", ">="} or any(
            isinstance(value, NodeList) or value is UNDEFINED for value in values
        ):
            return super().compare(left, operator, right)
        same = equal(left, right)
        if operator == "!=":
            return not same
        return same or (operator != "==" and super().compare(left, operator[0], right))


class _CountedMatch(JSONPathMatch):
    """Node whose children are counted by the query in its filter context."""

    __slots__ = ()

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        super().filter_context()["query"].count_node()
        return super().new_child(obj, key)

    def filter_context(self) -> FilterContextVars:
        """Count a step: the library calls this for every value that a filter evaluates."""
        context = super().filter_context()
        context["query"].count_step()
        return context


class _PatternFunction(FilterFunction):
    """`match()` and `search()` (RFC 9535, 2.4.6 and 2.4.7). An invalid pattern is an error here, not false."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012  # as the library declares it
    return_type = ExpressionType.LOGICAL

    def __init__(self, frame: str) -> None:
        self._frame = frame

    def __call__(self, value: object, wanted: object) -> bool:
        if not isinstance(value, str) or not isinstance(wanted, str):
            return False
        if problem := regex.problem(wanted):
            raise JSONPathError(f"{wanted!r:.100} is {problem}")
        return _QUERY.get().searcher.search(self._frame.replace("{}", wanted), value) is not None


_ENVIRONMENT = _Environment(strict=True)
