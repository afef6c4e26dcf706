"""Reports for programs: what became of each cassette, as JUnit XML and as JSON."""
