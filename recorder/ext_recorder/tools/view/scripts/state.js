// What is shown: search, filters, order, range of time, the chosen row. The address has it, so that a link does.

const DEFAULTS = {
  q: "",
  kind: "",
  status: "",
  method: "",
  way: "",
  conn: "",
  lane: "",
  key: "",
  from: "",
  to: "",
  sort: "",
  idle: "",
  row: -1,
};
const STATUSES = { ok: "ok", error: "errors", open: "no answer", cancelled: "cancelled" };
const state = { ...DEFAULTS };
let shown = []; // the rows that pass the filters, in their order
let searched = new Map(); // word to the flags of bodies, of the last search

const words = () => state.q.toLowerCase().split(/\s+/).filter(Boolean);
const listed = (name) => (state[name] ? state[name].split(",") : []);

function toggle(name, value) {
  const values = new Set(listed(name));
  if (!values.delete(value)) values.add(value);
  change({ [name]: [...values].join(",") });
}

// The part of the session on the time axis, in µs.
const rangeStart = () => (state.from === "" ? 0 : Math.min(sessionEnd, Number(state.from) * 1e6));
const rangeEnd = () => (state.to === "" ? sessionEnd : Math.max(rangeStart() + 1, Number(state.to) * 1e6));

function readAddress() {
  const [first, ...rest] = location.hash.slice(1).split("&");
  const named = first.includes("=") || !first ? "" : first;
  const given = new URLSearchParams(named ? rest.join("&") : location.hash.slice(1));
  for (const [name, value] of Object.entries(DEFAULTS))
    state[name] = name === "row" ? rowAt(named) : (given.get(name) ?? value);
  for (const name of ["from", "to"]) if (!Number.isFinite(Number(state[name]))) state[name] = "";
}

function addressOfState() {
  const given = new URLSearchParams(Object.entries(state).filter(([name, value]) => name !== "row" && value !== ""));
  return `#${[state.row < 0 ? "" : addressOf(state.row), given.toString()].filter(Boolean).join("&")}`;
}

// Browsers refuse to change the address more than a few times a second.
const ADDRESS_EVERY = 300; // ms
let addressTime = -ADDRESS_EVERY;
let addressTimer = 0;
function writeAddress() {
  if (parent !== window) return; // in a frame, a new address would scroll the page around it
  clearTimeout(addressTimer);
  const wait = addressTime + ADDRESS_EVERY - performance.now();
  if (wait > 0) {
    addressTimer = setTimeout(writeAddress, wait);
    return;
  }
  addressTime = performance.now();
  try {
    history.replaceState(null, "", addressOfState());
  } catch {
    // A page from a file may not be allowed to.
  }
}

// Which rows pass. Words must all be found in the messages or the name of a row; -word must not.
function filter() {
  const found = words().map((word) => {
    const wanted = !word.startsWith("-") || word.length === 1;
    const text = wanted ? word : word.slice(1);
    const flags = searched.get(text) ?? bodiesWith(text);
    searched.set(text, flags);
    const named = page.texts.map((name) => name.toLowerCase().includes(text));
    const laneNamed = lanes.map(({ role, name }) => `${role} ${name}`.toLowerCase().includes(text));
    return (row) => {
      const has =
        named[page.method[row]] ||
        named[page.subject[row]] ||
        named[page.outcome[row]] ||
        named[page.client[row]] ||
        named[page.says[row]] ||
        named[page.answers[row]] ||
        (severalFiles && laneNamed[laneOf(row)]) ||
        flags[page.request[row]] === 1 ||
        responsesOf(row).some((body) => flags[body] === 1);
      return has === wanted;
    };
  });
  if (searched.size > 20) searched = new Map();
  const [kinds, statuses, inLanes] = [listed("kind"), listed("status"), listed("lane")];
  const [start, end, ranged] = [rangeStart(), rangeEnd(), state.from !== "" || state.to !== ""];
  const passes = (row) =>
    (!kinds.length || kinds.includes(groupOf(row))) &&
    (!statuses.length || statuses.includes(statusOf(row))) &&
    (!state.method || nameOf(row) === state.method || textOf("method", row) === state.method) &&
    (!state.way || textOf("stream", row) === state.way) &&
    (!state.conn || page.conn[row] === Number(state.conn)) &&
    (!inLanes.length || inLanes.includes(String(laneOf(row)))) &&
    (!state.key || isKey(row)) &&
    (!ranged || (endOf(row) >= start && startOf(row) <= end)) &&
    found.every((has) => has(row));
  shown = treeOrder.filter(passes);
  if (state.sort) sortRows();
}

const nameOf = (row) => [textOf("method", row), textOf("subject", row)].filter(Boolean).join(" ");
const SORTS = {
  time: startOf,
  name: nameOf,
  status: (row) => textOf("outcome", row),
  took: (row) => endOf(row) - startOf(row),
  size: (row) => sentBytes(row) + receivedBytes(row),
};

function sortRows() {
  const down = state.sort.startsWith("-");
  const key = SORTS[state.sort.replace("-", "")] ?? startOf;
  const keys = new Map(shown.map((row) => [row, key(row)]));
  const sign = down ? -1 : 1;
  shown.sort((one, other) =>
    keys.get(one) < keys.get(other) ? -sign : keys.get(one) > keys.get(other) ? sign : one - other,
  );
}
