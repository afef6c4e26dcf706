"""Protocols as data: one module for each, with its dialect and, in `rules()`, the rules of its specification.

A dialect (see `dialect`) names the parts of messages that matter to record and replay. Rules (see `rules`) are
used by `lint`, `conformance` and the tests; a function creates them because replay needs no schemas.
"""
