"""Requests: from the arguments of an operation to the bytes sent, with credentials, sessions and redirects."""
