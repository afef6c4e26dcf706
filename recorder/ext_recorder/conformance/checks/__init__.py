"""Checks of the clauses: one module for each part of the specification, one function for each clause.

A failed check raises Violation. All checks test extensions: those in `host_behaviour` test what hosts need of them.
"""

from __future__ import annotations

from ext_recorder.conformance.target import REGISTERED

from . import errors, execute, host_behaviour, initialize, messages

# In the order of the specification, which is that of the numbers of the clauses.
MODULES = (messages, initialize, execute, errors, host_behaviour)
CLAUSES = tuple(clause for module in MODULES for clause in REGISTERED if clause.check.__module__ == module.__name__)
