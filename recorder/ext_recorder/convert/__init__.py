"""`convert`: cassettes from and to other formats.

formats       the formats by name, and which of them a file is
jsonl         a cassette as JSON lines, for programs; nothing is lost either way
foreign       what all recordings of other programs have in common: they are redacted, and nothing in them is run
mcp_rec       mcp-rec: JSON lines
mcp_cassette  mcp-cassette for Python: one JSON document
typescript    mcp-cassette for TypeScript: JSON lines
mcpsnoop      mcpsnoop's session logs: JSON lines
"""
