"""Typed expectations of operations: text, JSON and numbers, their checks, and the error text of those that fail.

An author declares a field of an operation's arguments as `expect.Text` or `expect.Integer`, checks the value found
with `check_text` or `check_integer`, and passes the checks to `conclude`, which builds the Result. An expectation that
checks nothing is refused when the arguments are read.
"""

from __future__ import annotations

from ext_sdk.core.regex import Found, Searcher, SearchFailed

from .check import Check, Expectation, conclude, failure_text, passed, section, summary
from .json_expectation import JsonExpectation, check_json
from .numbers import DurationExpectation, Integer, IntegerExpectation, check_duration, check_integer
from .text import Text, TextExpectation, check_text

__all__ = [
    "Check",
    "DurationExpectation",
    "Expectation",
    "Found",
    "Integer",
    "IntegerExpectation",
    "JsonExpectation",
    "SearchFailed",
    "Searcher",
    "Text",
    "TextExpectation",
    "check_duration",
    "check_integer",
    "check_json",
    "check_text",
    "conclude",
    "failure_text",
    "passed",
    "section",
    "summary",
]
