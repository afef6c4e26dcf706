"""Operations: requests and mock servers. Their modules do not import each other."""

# Descriptions of outputs that operations of several modules have. An output whose name ends with `?` is optional.
RESPONSE = {
    "status": "status of the response, such as `200`",
    "body": "body as text; of a long one the beginning and the end. Later steps get the complete body",
    "bodyFile?": "path of a file with the complete body, if `body` is shortened",
    "duration": "duration, such as `12ms`",
    "url": "last requested URL; after a redirect it differs from the given one",
    "attempts": "number of requests",
    "NAME?": "captured value, if `capture` has this name",
}
OUTCOME = {
    **{name: text for name, text in RESPONSE.items() if name not in {"status", "body"}},
    "status?": "status of the response, such as `200`, if there is a response",
    "body?": RESPONSE["body"] + "; if there is a response",
    "failure?": "the failure that occurred, such as `refused`, if `expect.failure` is given",
}
