// Commands for a shell: a call that is sent to the program again, an HTTP request by curl.

const quoted = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

// The requests before which a program may answer nothing: initialize, and the notifications that follow it.
function handshake(conn) {
  const first = [];
  for (let row = 0; row < COUNT; row += 1) {
    if (page.conn[row] !== conn || textOf("stream", row) !== "in" || page.request[row] < 0) continue;
    const call = kindOf(row) === "call";
    if (call && (first.length || textOf("method", row) !== "initialize")) break;
    if (call || first.length) first.push(row);
  }
  return first;
}

// Why no command is offered, or {text}. Which rows it is for: see detail.js.
function commandFor(row) {
  if (kindOf(row) === "http") return curl(row);
  const { command, framing, file } = page.about;
  const own = kindOf(row) === "call" && textOf("stream", row) === "in";
  if (!own || !command) return null;
  if ((children.get(row) ?? []).some((child) => kindOf(child) === "call")) {
    // The program asks the host something during the call: only `verify` answers that.
    const part = file.replace(/\.yaml$/, "") + `-call-${page.number[row]}.yaml`;
    return `ext-recorder trim --calls ${page.number[row]} -o ${quoted(part)} ${quoted(file)} && ext-recorder verify ${quoted(part)} -- ${command}`;
  }
  const before = handshake(page.conn[row]).filter((other) => other < row);
  const sent = [...before, row].map((each) => page.request[each]);
  if (!SEND[framing] || sent.some(isCut)) return null;
  const texts = sent.map((body) => bodyText(body));
  const lines = texts.map((text) => `send ${quoted(text)}`);
  // Many programs end with their input: it stays open for as long as the recorded calls took, and a little longer.
  lines.push(`sleep ${2 + Math.ceil([...before, row].reduce((sum, each) => sum + Math.max(0, page.took[each]), 0) / 1e6)}`);
  return `${notes(texts.join("\n") + command)}${SEND[framing]}\n{ ${lines.join("; ")}; } | ${command}`;
}

// How a shell sends a message. The length is counted when it is sent: a path in it may have been replaced.
const SEND = {
  ndjson: `send() { printf '%s\\n' "$1"; }`,
  "content-length": `send() { printf 'Content-Length: %d\\r\\n\\r\\n%s' "$(printf %s "$1" | wc -c)" "$1"; }`,
};

// What has to be replaced in a command before it works on this machine.
function notes(text) {
  const folders = Object.entries(page.about.bindings).filter(([, path]) => text.includes(path));
  const lines = folders.map(([name, path]) => `# ${path} is ${name} of the recording: put a path of this machine in its place`);
  if (text.includes("[redacted:")) lines.push("# [redacted:…] was a secret: put it in its place");
  return lines.map((line) => `${line.replace(/[\r\n]/g, " ")}\n`).join("");
}

function curl(row) {
  const text = bodyText(page.request[row]) ?? "";
  const head = text.slice(0, bodies.start[page.request[row]]).trimEnd().split("\n");
  const [method, ...address] = head[0].split(" ");
  const own = ["host", "content-length", "accept-encoding", "connection", "transfer-encoding"];
  const headers = head.slice(1).filter((line) => !own.includes(line.split(":")[0].toLowerCase()));
  const body = contentText(page.request[row]);
  if (isCut(page.request[row]) || contentName(page.request[row]) === "base64" || method === "CONNECT") return null;
  const options = ["curl", "--compressed", "-i", ...(method === "HEAD" ? ["-I"] : ["-X", method])];
  for (const line of headers) options.push("-H", line);
  if (hasContent(page.request[row])) options.push("--data-raw", body);
  return notes(text) + [...options, address.join(" ")].map(quoted).join(" ");
}
