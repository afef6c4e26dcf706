"""ext-http: send HTTP requests and check the responses, and serve mocks for an agent, as steps of an eval task.

`extension` lists the operations. The folders are layers, and each imports only those below it: `operations`, `request`,
`mock`, `response`, `client`.
"""
