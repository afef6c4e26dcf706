"""Mock HTTP server for the agent under test, and checks of the requests it received.

`server` accepts connections and reads a `request`, `routing` selects the route, `response` fills in its templates, and
`journal` records both. `verification` checks the journal for mock-verify.
"""
