"""Checks of the clauses: one module for each section, one function for each clause. A failed check is a Violation."""

from __future__ import annotations

from ext_recorder.conformance.clauses import REGISTERED

from . import durations, errors, execute, host_behaviour, initialize, log, one_shot, requests, shutdown, transport

# In the order of the specification, which is that of the numbers of the clauses.
MODULES = (transport, requests, initialize, execute, log, shutdown, errors, one_shot, durations, host_behaviour)
CLAUSES = tuple(clause for module in MODULES for clause in REGISTERED if clause.check.__module__ == module.__name__)
