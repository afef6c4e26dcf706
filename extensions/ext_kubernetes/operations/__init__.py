"""One module for each family of operations. They import everything below, and never each other."""

# Descriptions of outputs that operations of several modules have. An output whose name ends with `?` is optional.
IDENTITY = {
    "name": "name of the object",
    "namespace": "namespace of the object; empty for a cluster-wide kind",
    "uid": "unique id of the object",
    "resourceVersion": "stored version of the object",
}
ONE = {f"{name}?": f"{text}, if there is one object" for name, text in IDENTITY.items()}
SENT = {"count": "number of objects", "resources": "each object with its result, one per line"} | ONE
DONE = {"done": "`true`; `false` if the time was over, with `onTimeout: ok`"}
DONE_IF_WAITED = {"done?": "as in `wait`, if it was waited for"}
LEFT = {"left?": "objects that still exist, one per line, if the wait did not succeed"}
FAILED_WAIT = {
    "status?": "last seen state, if the wait did not succeed",
    "attempts?": "number of reads, if the wait did not succeed",
}
REPORT = {
    "reportFile?": "path of the complete failure report, if the wait did not succeed and there is an object",
    "storyFile?": "previous name of `reportFile`",
}
SECONDS = {"seconds": "duration in seconds"}
REFUSAL = {"failure?": "the refusal, if `expect.failure` is given"}
