"""ext-kubernetes: make, change, await and check what is in a cluster, as steps of an eval task.

`extension` lists the operations. `client` is the one way to the API server and the only module that knows the
`kubernetes` package; `settings` finds out which server, `discovery` which kinds it has, `naming` what a user means by
`pod/nginx`, and `errors` is what can go wrong, told so that a user can act on it.
"""
