"""From arguments to one request: URL, headers, body, credentials, redirects."""
