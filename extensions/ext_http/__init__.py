"""ext-http: ask HTTP servers and judge their answers, as steps of an eval task.

`extension` lists the operations. `request`, `wait`, `download` and `graphql` ask; what they are given is prepared and
sent by `client`, the one package that knows the HTTP library, and comes back as an `answer`.
"""
