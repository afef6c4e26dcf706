"""Waits on objects: shared informers, predicates, deletion, and the report of a wait that failed."""
