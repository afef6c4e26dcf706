// Commands for a shell: a call that is sent to the program again, an HTTP request by curl.

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

// The requests before which a program may answer nothing: initialize, and the notifications that follow it.
function handshake(source, conn) {
  const first = [];
  for (let row = 0; row < COUNT; row += 1) {
    if (page.source[row] !== source || page.conn[row] !== conn || textOf("stream", row) !== "in" || page.request[row] < 0) continue;
    const call = kindOf(row) === "call";
    if (call && (first.length || textOf("method", row) !== "initialize")) break;
    if (call || first.length) first.push(row);
  }
  return first;
}

// The command for a row; null if there is none. A terminal may act on a control character that is pasted.
function commandFor(row) {
  const command = kindOf(row) === "http" ? curl(row) : callAgain(row);
  return command && !/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(command) ? command : null;
}

function callAgain(row) {
  const { command, framing, file } = sourceOf(row);
  if (kindOf(row) !== "call" || textOf("stream", row) !== "in" || !command) return null;
  if ((children.get(row) ?? []).some((child) => kindOf(child) === "call")) {
    // The program requests something of its host during the call: only `verify` responds to that.
    const part = quoted(`${file.replace(/\.yaml$/, "")}-call-${page.number[row]}.yaml`);
    const trim = `ext-recorder trim --calls ${page.number[row]} -o ${part} ${quoted(file)}`;
    return `${trim} && ext-recorder verify ${part} -- ${command}`;
  }
  const rows = [...handshake(page.source[row], page.conn[row]).filter((other) => other < row), row];
  const sent = rows.map((each) => page.request[each]);
  if (!SEND[framing] || sent.some(isCut)) return null;
  const texts = sent.map((body) => bodyText(body));
  // Many programs end with their input: it stays open for as long as the recorded calls took, and a little longer.
  const wait = 2 + Math.ceil(rows.reduce((sum, each) => sum + Math.max(0, page.took[each]), 0) / 1e6);
  const lines = [...texts.map((text) => `send ${quoted(text)}`), `sleep ${wait}`];
  return `${notes(row, texts.join("\n") + command)}${SEND[framing]}\n{ ${lines.join("; ")}; } | ${command}`;
}

// How a shell sends a message. The length is counted when it is sent: a path in it may have been replaced.
const SEND = {
  ndjson: `send() { printf '%s\\n' "$1"; }`,
  "content-length": `send() { printf 'Content-Length: %d\\r\\n\\r\\n%s' "$(printf %s "$1" | wc -c)" "$1"; }`,
};

// What has to be replaced in a command before it works on this machine.
function notes(row, text) {
  const folders = Object.entries(sourceOf(row).bindings ?? {}).filter(([, path]) => text.includes(path));
  const lines = folders.map(
    ([name, path]) => `# ${path} is ${name} of the recording: put a path of this machine in its place`,
  );
  if (text.includes("[redacted:")) lines.push("# [redacted:…] was a secret: put it in its place");
  return lines.map((line) => `${line.replace(/[\r\n]/g, " ")}\n`).join("");
}

// Headers that curl writes itself.
const OWN_HEADERS = ["host", "content-length", "accept-encoding", "connection", "transfer-encoding"];

function curl(row) {
  const body = page.request[row];
  const [first, ...headers] = bodyPart(body, 0, bodies.start[body]).trimEnd().split("\n");
  const [method, ...address] = first.split(" ");
  const url = address.join(" ");
  if (isCut(body) || contentName(body) === "base64" || method === "CONNECT" || !/^https?:/.test(url)) return null;
  const options = ["curl", "--globoff", "--compressed", "-i", ...(method === "HEAD" ? ["-I"] : ["-X", method])];
  for (const header of headers) {
    const name = /^[\w!#$%&'*+.^`|~-]+(?=:)/.exec(header)?.[0]; // another text may name a file, as @file
    if (name && !OWN_HEADERS.includes(name.toLowerCase())) options.push("-H", header);
  }
  if (hasContent(body)) options.push("--data-raw", contentText(body));
  return notes(row, bodyText(body)) + [...options, "--url", url].map(quoted).join(" ");
}
