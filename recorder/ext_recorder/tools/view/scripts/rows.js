// The table: columns of numbers, made by rows.py. A row is its number.

const COUNT = page.kind.length;
const textOf = (column, row) => page.texts[page[column][row]];
const kindOf = (row) => textOf("kind", row);
const statusOf = (row) => textOf("status", row);
const startOf = (row) => page.time[row];
const sessionEnd = page.time.reduce((last, time, row) => Math.max(last, time + Math.max(0, page.took[row])), 1);
// Times of a short session need more digits to differ.
const timeOf = (row) => seconds(startOf(row), sessionEnd < 1e5 ? 6 : sessionEnd < 1e7 ? 4 : 3);
// A call that was never answered lasts until the end.
const endOf = (row) =>
  page.took[row] >= 0 ? startOf(row) + page.took[row] : statusOf(row) === "open" ? sessionEnd : startOf(row);
const hasBar = (row) => page.took[row] >= 0 || statusOf(row) === "open";
const severalConnections = page.conn.some((conn) => conn > 1);
const stepAt = (row) => kindOf(row) === "phase" || kindOf(row) === "task";
const sentBytes = (row) => (page.request[row] < 0 ? 0 : bodies.size[page.request[row]]);
const responsesOf = (row) => [...(page.further[row] ?? []), page.response[row]].filter((body) => body >= 0);
const receivedBytes = (row) => responsesOf(row).reduce((sum, body) => sum + bodies.size[body], 0);

// What a row says: the main part of its message; all of what is not a message; nothing of a message without a main part.
const isWhole = (row) => ["stderr", "junk", "other"].includes(kindOf(row));
const saysOf = (row, body, most = Infinity) =>
  body < 0 || !(isWhole(row) || hasContent(body)) ? "" : contentText(body, most);

// Groups of kinds, by which the page filters.
const GROUPS = {
  call: "calls",
  response: "calls",
  notification: "notifications",
  stderr: "stderr",
  http: "HTTP",
  phase: "phases",
  task: "phases",
  mark: "other",
  junk: "other",
  other: "messages",
};
const groupOf = (row) => GROUPS[kindOf(row)];

// The order of a tree: each call before what belongs to it, both by time.
const children = new Map();
const treeOrder = [];
const depths = new Uint8Array(COUNT);
{
  const byTime = (one, other) => startOf(one) - startOf(other) || one - other;
  const roots = [];
  for (let row = 0; row < COUNT; row += 1) {
    const parent = page.parent[row];
    if (parent < 0) roots.push(row);
    else if (children.has(parent)) children.get(parent).push(row);
    else children.set(parent, [row]);
  }
  for (const rows of children.values()) rows.sort(byTime);
  const stack = roots.sort(byTime).reverse();
  for (let row; (row = stack.pop()) !== undefined;) {
    treeOrder.push(row);
    for (const child of (children.get(row) ?? []).slice().reverse()) {
      depths[child] = Math.min(depths[row] + 1, 6);
      stack.push(child);
    }
  }
}

// The name of a row in the address: #call-12 is the 12th request of the host, #line-40 the line of the cassette. Of
// several cassettes, their names are before it: #shell.call-12.
const phaseRows = [...Array(COUNT).keys()].filter(stepAt);
const severalFiles = page.about.sources.filter((source) => source.name).length > 1;
function addressOf(row) {
  if (kindOf(row) === "http") return `http-${page.number[row]}`;
  if (stepAt(row)) return `phase-${phaseRows.indexOf(row) + 1}`;
  const { name } = page.about.sources[page.source[row]];
  if (!name) return "end";
  return (severalFiles ? `${name}.` : "") + (page.number[row] ? `call-${page.number[row]}` : `line-${page.line[row]}`);
}

function rowAt(address) {
  const [, file, kind, digits] = /^(?:(.+)\.)?(call|http|line|phase)-(\d+)$/.exec(address) ?? [];
  const number = Number(digits);
  if (kind === "phase") return phaseRows[number - 1] ?? -1;
  if (address === "end") return COUNT - 1;
  for (let row = 0; kind && row < COUNT; row += 1) {
    const http = kindOf(row) === "http";
    if (!http && file !== undefined && page.about.sources[page.source[row]].name !== file) continue;
    if (
      kind === "line"
        ? !http && (page.line[row] === number || responsesOf(row).some((body) => bodies.line[body] === number))
        : http === (kind === "http") && page.number[row] === number
    )
      return row;
  }
  return -1;
}
