// Figures for each method of the rows that are shown: counts, errors, percentiles of the time, bytes.

const FIGURES = [
  ["method", "Method", (each) => each.name],
  ["count", "Count", (each) => each.count],
  ["errors", "Errors", (each) => each.errors],
  ["open", "No answer", (each) => each.open],
  ["p50", "p50", (each) => percentile(each.times, 50), duration],
  ["p90", "p90", (each) => percentile(each.times, 90), duration],
  ["max", "Max", (each) => percentile(each.times, 100), duration],
  ["sent", "Sent", (each) => each.sent, size],
  ["received", "Received", (each) => each.received, size],
];
const figures = { sort: "count", down: true, subjects: false };

// The nearest-rank percentile of sorted times; -1 of none.
const percentile = (times, rank) =>
  times.length ? times[Math.max(0, Math.ceil((times.length * rank) / 100) - 1)] : -1;

function collectFigures() {
  const found = new Map();
  for (const row of shown) {
    if (!["call", "notification", "http"].includes(kindOf(row))) continue;
    const name = figures.subjects ? nameOf(row) : textOf("method", row);
    const side = textOf("stream", row);
    const key = `${side} ${name}`;
    if (!found.has(key)) found.set(key, { name, side, count: 0, errors: 0, open: 0, sent: 0, received: 0, times: [] });
    const each = found.get(key);
    each.count += 1;
    each.errors += statusOf(row) === "error";
    each.open += statusOf(row) === "open";
    if (page.response[row] >= 0) each.times.push(page.took[row]);
    each.sent += sentBytes(row);
    each.received += receivedBytes(row);
  }
  const all = [...found.values()];
  for (const each of all) each.times.sort((one, other) => one - other);
  return all;
}

function drawFigures() {
  if (at("figures").hidden) return;
  const [, , key] = FIGURES.find(([name]) => name === figures.sort);
  const sign = figures.down ? -1 : 1;
  const all = collectFigures().sort((one, other) => (key(one) < key(other) ? -sign : key(one) > key(other) ? sign : 0));
  const head = element("tr");
  for (const [name, label] of FIGURES) {
    const cell = element(
      "th",
      "",
      button(label, () => sortFigures(name)),
    );
    cell.scope = "col";
    if (name === figures.sort) cell.ariaSort = figures.down ? "descending" : "ascending";
    head.append(cell);
  }
  const body = element("tbody");
  for (const each of all) {
    const line = element("tr");
    const name = button(`${each.side === "out" ? "← " : "→ "}${visible(each.name)}`, () =>
      change({ method: state.method === each.name ? "" : each.name }),
    );
    name.title = "Show only this method";
    name.ariaPressed = String(state.method === each.name);
    const first = element("th", "", name);
    first.scope = "row";
    line.append(
      first,
      ...FIGURES.slice(1).map(([column, , value, unit]) => {
        const number = value(each);
        return element(
          "td",
          number > 0 && (column === "errors" || column === "open") ? "error" : "",
          unit ? unit(number) || "–" : number.toLocaleString("en"),
        );
      }),
    );
    body.append(line);
  }
  at("table").replaceChildren(element("thead", "", head), body);
}

function sortFigures(name) {
  figures.down = figures.sort === name ? !figures.down : name !== "method";
  figures.sort = name;
  drawFigures();
}
