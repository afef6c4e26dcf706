"""A stub HTTP server for the agent under test to call, and checks of what it called.

From a request to its answer: `server` and `receiving` read it, by h11; `routing` finds the route (`routes`, `paths`)
and has its answer made (`answers`, `template`, `response`); `journal` notes both; `sending` sends it. `calls` is what
mock-verify checks of the journal.
"""
