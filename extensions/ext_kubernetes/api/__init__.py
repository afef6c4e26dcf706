"""Everything that talks to an API server. Only this folder imports `kubernetes`, `urllib3` and `websocket`."""
