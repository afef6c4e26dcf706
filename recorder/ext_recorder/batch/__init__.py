"""Many cassettes: selected by file, folder, pattern or address, processed in parallel, reported as XML or JSON."""
