"""Version of the distribution; it is set only here."""

__version__ = "0.1.0"
