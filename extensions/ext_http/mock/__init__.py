"""Mock HTTP server for the agent under test, and checks of the requests it received.

`server` accepts connections, `http1` reads a `request`, `routing` selects the route, `http1` sends its `response` with
the `template` filled in, and `journal` records both. `verification` checks the journal for mock-verify.
"""
