"""HTTP helpers that extensions share."""
