"""Why there is no figure."""


class BenchError(Exception):
    """A candidate did not do what was to be measured."""


class NotHere(Exception):
    """Something can't be measured on this machine; the text says why."""
