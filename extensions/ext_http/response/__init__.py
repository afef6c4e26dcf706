"""Responses: expectations and their checks. Captures and excerpts for messages are those of `ext_sdk`."""
