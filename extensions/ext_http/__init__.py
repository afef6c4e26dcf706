"""ext-http: send HTTP requests, check the responses, and serve mock servers to an agent, as steps of an eval task.

`extension` lists the operations. The folders are layers, and each imports only those below it: `operations`, `request`,
`mock`, `response`, `client`. `result` is what the operations that send requests share.
"""
