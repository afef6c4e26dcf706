"""`conformance`: check a live extension against its specification, clause by clause.

Clauses of the extension protocol are functions in `checks`, which use `raw_host`, a host that shares no code with
ext_sdk. Clauses of other protocols are checked during `conversations`, which are data, by the rules that lint uses.
"""
