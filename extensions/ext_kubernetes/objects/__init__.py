"""Pure functions on objects as dicts: fields, conditions, readiness, JSONPath, matching, YAML. No I/O.

`readiness` also describes containers, as in "CrashLoopBackOff"; `jsonpath` is the dialect of kubectl.
"""
