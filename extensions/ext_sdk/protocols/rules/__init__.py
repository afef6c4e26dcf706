"""What the specifications say a session has to be, as data: messages and their schemas, states, limits, clauses.

    rule       the shape of it: `Clause`, `Machine`, `During`, `Rules`
    schema     short ways to write JSON Schema
    gevals …   one module a protocol, with its `RULES`

`ext-recorder lint` holds cassettes against it. Every rule names the clause that it follows from.
"""
