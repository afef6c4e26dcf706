"""Checks, captures and excerpts of a response; mocks check requests by the same means."""
