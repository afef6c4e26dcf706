// The chosen row: request and response side by side, what belongs to the call, and what can be copied.

const NAMES = { in: "host → child", out: "child → host", err: "standard error" };
const NEAR_AT_MOST = 200; // rows that belong to a call

function drawDetail() {
  const row = state.row;
  at("detail").hidden = at("divider").hidden = row < 0;
  if (row < 0) return;
  const id = textOf("id", row);
  at("title").replaceChildren(visible(nameOf(row) || kindOf(row)), " ", element("span", "id", visible(id && `#${id}`)));
  const facts = [
    lanes.length > 1 ? lanes[laneOf(row)].role : "",
    textOf("client", row) && `from ${visible(textOf("client", row))}`,
    kindOf(row) === "http" ? (isRun ? "" : "child → server") : NAMES[textOf("stream", row)],
    `at ${timeOf(row)} s`,
    page.took[row] >= 0 && `took ${duration(page.took[row])}`,
    severalConnections && `connection ${page.conn[row]}`,
    page.line[row] && `${sourceOf(row).file}:${page.line[row]}`,
  ];
  at("facts").replaceChildren(
    element("span", `outcome ${statusOf(row)}`, textOf("outcome", row)),
    ...facts.filter(Boolean).map((fact) => element("span", "", fact)),
  );
  at("command").hidden = !bodyReady(row) || !commandFor(row);
  at("command").textContent = kindOf(row) === "http" ? "Copy as curl" : "Copy as command";
  const word = words().find((each) => !each.startsWith("-")) ?? "";
  const verdict = answersInWords(row);
  at("verdict").hidden = !verdict || page.chat[row] >= 0 || !["ok", "error"].includes(statusOf(row));
  at("verdict").className = statusOf(row);
  at("verdict").textContent = visible(verdict);
  at("talk").replaceChildren(...[conversation(row, word)].filter(Boolean));
  const panes = [pane(row, page.request[row], REQUESTS[kindOf(row)])];
  const responses = responsesOf(row);
  responses.forEach((body, number) =>
    panes.push(pane(row, body, responses.length > 1 ? `Response ${number + 1} of ${responses.length}` : "Response")),
  );
  if (kindOf(row) === "call" && !responses.length)
    panes.push(element("section", "pane", element("h3", "", "Response"), element("p", "note", missingAnswer(row))));
  at("panes").replaceChildren(...panes.filter(Boolean));
  at("panes").className = panes.length > 1 ? "two" : "one";
  at("near").replaceChildren(...near(row));
}

const bodyReady = (row) => page.request[row] < 0 || bodyText(page.request[row]) !== null;
const missingAnswer = (row) =>
  statusOf(row) === "cancelled"
    ? "The request was cancelled, and has no answer."
    : "The session has no answer to this request.";

const REQUESTS = {
  call: "Request",
  http: "Request",
  notification: "Notification",
  response: "Response to no request",
  stderr: "Line",
  junk: "Not a message",
  other: "Message",
};

// One message: its main part, or all of it as it was sent.
function pane(row, body, name) {
  if (body < 0) return null;
  const made = element("section", "pane");
  const room = element("div", "content");
  const text = bodyText(body);
  const part = contentName(body);
  const copy = button("Copy", () => take(copy, saysOf(row, body) || text));
  copy.title = "Copy what is shown below";
  const raw = button("Raw", () => show(raw.ariaPressed !== "true"));
  raw.ariaPressed = "false";
  raw.title = "The complete message as it was sent (r)";
  raw.className = "raw";
  const where = [
    hasContent(body) ? part : "",
    size(bodies.size[body]),
    bodies.line[body] ? `line ${bodies.line[body]}` : "",
  ];
  made.append(
    element(
      "header",
      "",
      element("h3", "", name),
      element("span", "where", where.filter(Boolean).join(" · ")),
      raw,
      copy,
    ),
    room,
  );
  const word = words().find((each) => !each.startsWith("-")) ?? "";
  const show = (whole) => {
    raw.ariaPressed = String(whole);
    room.replaceChildren();
    if (text === null) room.append(element("p", "note", "The page is loading …"));
    else if (whole) room.append(appendMarked(element("pre", "text"), visible(text), word));
    else room.append(...main(row, body, word));
    if (isCut(body)) room.append(element("p", "note", cutNote(row, body)));
  };
  show(false);
  made.addEventListener("raw", () => show(raw.ariaPressed !== "true"));
  return made;
}

function cutNote(row, body) {
  const { file } = sourceOf(row);
  const whole = kindOf(row) === "http" ? file : `ext-recorder show --raw ${quoted(file)}`;
  return `Cut: the page has ${size(bodies.length[body])} of ${size(bodies.size[body])}. All of it: ${whole}`;
}

// The main part of a message as elements.
function main(row, body, word) {
  const cut = isCut(body);
  const head = kindOf(row) === "http" ? messageHead(body, word) : [];
  if (contentName(body) === "base64") return [...head, binary(contentText(body))];
  const says = saysOf(row, body);
  if (contentName(body) === "error") head.push(...errorMessage(says, cut));
  if (says || isWhole(row) || cut) return [...head, contents(says, { word, cut })];
  return head.length ? head : [element("p", "note", "Nothing but the envelope.")];
}

// The message of a JSON-RPC error, which is what people look for in it.
function errorMessage(text, cut) {
  const found = treeOf(text, cut)?.items.find((each) => each.key === '"message"' && each.type === '"');
  return found ? [element("p", "problem", visible(stringOf(found.raw)))] : [];
}

// The first line and the headers of an HTTP message.
function messageHead(body, word) {
  const [first, ...headers] = bodyPart(body, 0, bodies.start[body] || Infinity)
    .trimEnd()
    .split("\n");
  const table = element("dl", "headers");
  for (const header of headers) {
    const [name] = header.split(":", 1);
    table.append(
      element("dt", "", visible(name)),
      appendMarked(element("dd"), visible(header.slice(name.length + 1).trim()), word),
    );
  }
  const made = [appendMarked(element("p", "first"), visible(first), word)];
  if (headers.length)
    made.push(element("details", "branch", element("summary", "", plural(headers.length, "header")), table));
  return made;
}

// What belongs to a call: rows below it, the call above it, lines on standard error while it was open.
function near(row) {
  const made = [];
  const link = (other) => {
    const line = button("", () => choose(other, { follow: true, reveal: true }), `near-row ${statusOf(other)}`);
    const text = kindOf(other) === "stderr" ? (saysOf(other, page.request[other], 200) ?? "") : nameOf(other);
    const outcome = textOf("outcome", other);
    line.append(
      element("span", "time", startOf(other) < startOf(row) ? "" : `+${duration(startOf(other) - startOf(row))}`),
      " ",
      ARROWS[textOf("stream", other)] ?? "•",
      " ",
      visible(text.replace(COLOURS, "")),
      " ",
      element("span", "outcome", outcome === "ok" ? duration(page.took[other]) : outcome),
    );
    return line;
  };
  const group = (title, rows) => {
    if (!rows.length) return;
    made.push(element("h3", "", title), ...rows.slice(0, NEAR_AT_MOST).map(link));
    if (rows.length > NEAR_AT_MOST)
      made.push(element("p", "note", `and ${plural(rows.length - NEAR_AT_MOST, "more row")}`));
  };
  if (page.parent[row] >= 0) group(isRun ? "During" : "Belongs to", [page.parent[row]]);
  const below = children.get(row) ?? [];
  const belowOf = (kind) => below.filter((other) => kindOf(other) === kind);
  group("Phases", belowOf("phase"));
  group("HTTP", belowOf("http"));
  group(isRun ? "Calls" : "Requests of the child", belowOf("call"));
  group("Notifications", belowOf("notification"));
  const meanwhile = (line) => laneOf(line) === laneOf(row) && startOf(line) >= startOf(row) && startOf(line) <= endOf(row);
  if (kindOf(row) === "call") group("Standard error meanwhile", errorLines.filter(meanwhile));
  return made;
}
const errorLines = [...Array(COUNT).keys()].filter((row) => kindOf(row) === "stderr");

async function take(from, content) {
  const label = from.textContent;
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    const area = element("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  from.textContent = "Copied";
  setTimeout(() => {
    from.textContent = label;
  }, 1200);
}
