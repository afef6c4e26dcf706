"""Pure functions on objects as dicts: fields, conditions, readiness, JSONPath, matching, YAML. No I/O.

`readiness` also describes containers, as in "CrashLoopBackOff"; `kubectl_jsonpath` is kubectl's dialect of JSONPath.
"""
