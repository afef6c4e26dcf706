"""Pure functions on objects as dicts: fields, conditions, readiness, JSONPath, matching, YAML. No I/O."""
