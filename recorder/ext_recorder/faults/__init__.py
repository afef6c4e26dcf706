"""Faults: what goes wrong with a replayed child, laid over a cassette that stays as it is."""
