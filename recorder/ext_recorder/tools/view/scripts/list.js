// The rows: only those in view are elements, so that the number of rows does not matter.

const SPARE = 6; // rows above and below the view
const closed = new Set(); // calls whose rows below them are hidden
// Of a run, only phases, prompts and what has failed below it are open at first.
if (isRun)
  for (const row of children.keys()) if (!stepAt(row) && textOf("method", row) !== "session/prompt") closed.add(row);
for (const row of children.keys()) if (kindOf(row) === "notification") closed.add(row);
let listedRows = []; // `shown` without those
let rowHeight = 28;

function layList() {
  const hidden = (row) => {
    for (let parent = page.parent[row]; parent >= 0; parent = page.parent[parent]) if (closed.has(parent)) return true;
    return false;
  };
  listedRows = closed.size && !state.sort ? shown.filter((row) => !hidden(row)) : shown;
  rowHeight = parseFloat(getComputedStyle(at("list")).getPropertyValue("--row")) || 28;
  at("room").style.setProperty("height", `${listedRows.length * rowHeight}px`);
  at("list").setAttribute("aria-rowcount", listedRows.length);
  at("empty").hidden = listedRows.length > 0;
}

let drawn = new Map(); // row to its element, of the rows in view

function drawList() {
  for (const each of drawn.values()) each.remove();
  drawn = new Map();
  scrollList();
}

// Adds the rows that have come into view, and removes the others. The elements are in the order of the rows.
function scrollList() {
  const list = at("list"),
    room = at("rows-shown");
  const { scrollTop, clientHeight } = list;
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - SPARE);
  const last = Math.min(listedRows.length, Math.ceil((scrollTop + clientHeight) / rowHeight) + SPARE);
  const wanted = new Set(listedRows.slice(first, last));
  for (const [row, each] of drawn) {
    if (wanted.has(row)) continue;
    each.remove();
    drawn.delete(row);
  }
  const axis = scale();
  let next = room.firstChild;
  for (let place = first; place < last; place += 1) {
    const row = listedRows[place];
    if (drawn.has(row)) {
      next = drawn.get(row).nextSibling;
      continue;
    }
    const made = rowElement(row, place, axis);
    made.style.setProperty("top", `${place * rowHeight}px`);
    drawn.set(row, made);
    room.insertBefore(made, next);
  }
  list.setAttribute("aria-activedescendant", drawn.has(state.row) ? `row-${state.row}` : "");
}

const ARROWS = { in: "→", out: "←", err: "!" };

function rowElement(row, place, axis) {
  const made = element("div", `row ${kindOf(row)} ${statusOf(row)} from-${textOf("stream", row) || "none"}`);
  made.id = `row-${row}`;
  made.dataset.row = row;
  made.setAttribute("role", "row");
  made.setAttribute("aria-rowindex", place + 1);
  made.setAttribute("aria-selected", row === state.row);
  const depth = state.sort ? 0 : depths[row];
  made.setAttribute("aria-level", depth + 1);
  const name = element("span", "name");
  name.style.setProperty("--depth", depth);
  const below = !state.sort && children.has(row);
  if (below) {
    made.setAttribute("aria-expanded", !closed.has(row));
    name.append(element("span", "fold", closed.has(row) ? "▸" : "▾"));
  }
  name.append(
    element("span", "method", visible(textOf("method", row))),
    " ",
    element("span", "subject", visible(textOf("subject", row))),
  );
  name.title = visible(nameOf(row));
  const says = isWhole(row) ? element("span", "says", beginning(row, page.request[row])) : "";
  if (says) says.style.setProperty("--depth", depth);
  const took = page.took[row] < 0 ? "" : duration(page.took[row]);
  const bytes = sentBytes(row) + receivedBytes(row);
  if (lanes.length > 1) made.classList.add(`role-${roleOf(row)}`);
  made.append(
    element("span", "time", timeOf(row)),
    ...(lanes.length > 1 ? [element("span", "lane-cell", laneLabel(laneOf(row)))] : []),
    element(
      "span",
      "way",
      (severalConnections && page.conn[row] ? page.conn[row] : "") + (ARROWS[textOf("stream", row)] ?? "•"),
    ),
    ...(isWhole(row) ? [says] : [name, excerpt(row)]),
    element("span", "outcome", textOf("outcome", row)),
    element("span", "took", took),
    element("span", "size", bytes ? size(bytes) : ""),
    bar(row, axis),
  );
  for (const cell of made.children) cell.setAttribute("role", "gridcell");
  return made;
}

// The beginning of what was asked and answered, without the signs of JSON and without what the row says already.
const BEGINNING = 140; // characters
function beginning(row, body) {
  if (body >= 0 && contentName(body) === "base64")
    return `${size(decodedSize(contentText(body) ?? ""))} of binary data`;
  const text = (saysOf(row, body, 3 * BEGINNING) ?? "").replace(COLOURS, "");
  const plain = /^[{[]/.test(text) && !isWhole(row) ? withoutSigns(text, textOf("subject", row)) : text;
  return visible(plain.slice(0, BEGINNING));
}

function withoutSigns(json, subject) {
  const first = /^\{\s*"[^"]*"\s*:\s*"([^"]*)"\s*,?/.exec(json);
  return (first && first[1] === subject ? json.slice(first[0].length) : json)
    .replace(/"type"\s*:\s*"text"\s*,?/g, "")
    .replace(/\\*"\s*:\s*/g, ": ")
    .replace(/\\*"/g, "")
    .replace(/[{}[\]]/g, " ")
    .replace(/\\n|\s+/g, " ")
    .replace(/ ?,/g, ", ")
    .replace(/ {2,}/g, " ")
    .trim();
}

function excerpt(row) {
  const request = saysInWords(row) || beginning(row, page.request[row]);
  const response = answersInWords(row) || beginning(row, page.response[row]);
  if (!response) return element("span", "excerpt", visible(request));
  return element(
    "span",
    "excerpt both",
    element("span", "", visible(request)),
    element("span", "", `⇒ ${visible(response)}`),
  );
}

function bar(row, axis) {
  const cell = element("span", "waterfall");
  const [from, to] = [axis.x(startOf(row)), axis.x(endOf(row))];
  if (to < 0 || from > 1) return cell;
  const made = element("i", hasBar(row) ? "bar" : "point");
  made.style.setProperty("left", `${Math.max(0, from) * 100}%`);
  if (hasBar(row)) made.style.setProperty("width", `${(Math.min(1, to) - Math.max(0, from)) * 100}%`);
  cell.append(made);
  return cell;
}

// The labels of the axis over the bars of the list, and which column sorts.
function drawHeads() {
  const axis = scale();
  const cell = at("head-waterfall");
  const marks = ticks(axis, Math.max(2, Math.floor(cell.clientWidth / 80))).map(([time, label]) => {
    const made = element("span", "tick", label);
    made.style.setProperty("left", `${axis.x(time) * 100}%`);
    return made;
  });
  cell.replaceChildren(...marks);
  for (const head of document.querySelectorAll("#heads [data-sort]")) {
    const order =
      state.sort.replace("-", "") === head.dataset.sort
        ? state.sort.startsWith("-")
          ? "descending"
          : "ascending"
        : "none";
    head.setAttribute("aria-sort", order);
  }
}

function scrollToRow(row) {
  const place = listedRows.indexOf(row);
  if (place < 0) return;
  const list = at("list");
  const room = list.clientHeight - at("heads").offsetHeight;
  const top = place * rowHeight;
  if (top < list.scrollTop) list.scrollTop = Math.max(0, top - room / 3);
  else if (top + rowHeight > list.scrollTop + room) list.scrollTop = top - (room * 2) / 3;
}

function fold(row, close) {
  if (!children.has(row) || closed.has(row) === close) return;
  if (close) closed.add(row);
  else closed.delete(row);
  layList();
  drawList();
}

const rowsInView = () => Math.max(1, Math.floor(at("list").clientHeight / rowHeight) - 2);

function step(by) {
  const place = listedRows.indexOf(state.row);
  const next = place < 0 ? 0 : Math.min(listedRows.length - 1, Math.max(0, place + by));
  if (listedRows.length) choose(listedRows[next], { follow: true });
}

// The next row that is an error, or a call without an answer.
function stepToProblem(by) {
  const wrong = (row) => ["error", "open"].includes(statusOf(row));
  for (let place = listedRows.indexOf(state.row) + by; place >= 0 && place < listedRows.length; place += by)
    if (wrong(listedRows[place])) return choose(listedRows[place], { follow: true });
}
