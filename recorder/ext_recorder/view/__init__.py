"""`ext-recorder view`: a cassette as one HTML page that needs nothing else: no server, no network, no other file."""
