"""HTTP client. Only this folder imports the HTTP library, httpx2; it imports nothing of the folders above it.

`client` and `network` import the library, which takes 130 ms, so they are imported only to send a request;
`settings`, `response`, `errors` and `url` are plain data.
"""
