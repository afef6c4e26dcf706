"""Responses: expectations and their checks, captures, excerpts for messages and outputs."""
