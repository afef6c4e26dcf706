"""ext-kubernetes: create, change, wait for and check objects in a cluster, as steps of an eval task.

`extension` lists the operations. The folders are layers, and each imports only those below it: `operations`,
`manifests`, `waiting`, `pods`, `targets`, `api`, `objects`.
"""
