"""An MCP server without tools: mcpchecker requires one. Put the server that you test in its place."""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        server = {"name": "empty", "version": "1.0.0"}
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    elif request["method"] == "tools/list":
        answer["result"] = {"tools": []}
    else:
        answer["error"] = {"code": -32601, "message": f"no such method: {request['method']}"}
    if "id" in request:
        print(json.dumps(answer), flush=True)
