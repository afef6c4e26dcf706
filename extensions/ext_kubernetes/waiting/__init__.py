"""Waits on objects: shared informers, predicates, deletion, and the report of a wait that failed.

Texts about the state of one object (a container that crashes, a rollout that is stuck) are in `objects.readiness`.
"""
