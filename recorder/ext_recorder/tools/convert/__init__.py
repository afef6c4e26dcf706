"""`convert`: cassettes from and to JSON lines, and from recordings of other programs."""
