"""Operations that send requests: `request`, `wait`, `download`, `graphql`, `session`, and their results.

An operation module imports `result` and the layers below, not another operation.
"""
