"""The clauses and the checks, both ways."""

from __future__ import annotations

import inspect
from collections import Counter

from ext_recorder.conformance.checks import CLAUSES, MODULES

# What a check takes; helpers of the check modules give something back, or take more.
SIGNATURE = "(target: 'Target') -> 'None'"


def test_every_check_belongs_to_one_clause_and_every_clause_has_one() -> None:
    checks = {
        function
        for module in MODULES
        for function in vars(module).values()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and str(inspect.signature(function)) == SIGNATURE
    }
    assert Counter(clause.check for clause in CLAUSES) == Counter(checks)


def test_ids_are_unique_and_of_the_two_levels() -> None:
    assert len({clause.id for clause in CLAUSES}) == len(CLAUSES)
    assert {clause.level for clause in CLAUSES} == {"spec", "host"}


def test_every_clause_says_what_it_demands() -> None:
    assert all(clause.text and clause.section for clause in CLAUSES)
