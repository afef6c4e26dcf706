"""A stub HTTP server for the agent under test to call, and checks of what it called.

`server` accepts a connection, `http1` reads a `request` from it; `routing` finds the route, and `http1` sends its
`response` with the `template` filled; `journal` keeps both. `verification` checks the journal for mock-verify.
"""
