// Start of the page: header, filters, keys, and what is drawn again when something changes.

function change(values) {
  Object.assign(state, values);
  filter();
  layList();
  at("list").scrollTop = 0;
  if (state.row >= 0) scrollToRow(state.row);
  draw();
  writeAddress();
}

// Chooses a row; `reveal` takes the filters away if they hide it.
function choose(row, { follow = false, reveal = false } = {}) {
  if (reveal && !shown.includes(row)) Object.assign(state, { ...DEFAULTS, sort: state.sort, idle: state.idle });
  state.row = row;
  if (reveal) {
    for (let parent = page.parent[row]; parent >= 0; parent = page.parent[parent]) closed.delete(parent);
    filter();
    layList();
  }
  drawDetail(); // before the list, whose height it changes
  if (follow) scrollToRow(row);
  if (reveal) draw();
  else {
    drawList();
    drawChosen();
  }
  writeAddress();
}

function draw() {
  drawDetail();
  drawFilters();
  drawHeads();
  drawList();
  drawOverview();
  drawFigures();
}

function drawFilters() {
  if (document.activeElement !== at("search")) at("search").value = state.q;
  at("method").value = state.method;
  if (state.method && at("method").value !== state.method) at("method").append(new Option(state.method, state.method, true, true));
  at("way").value = state.way;
  at("connection").value = state.conn;
  for (const each of document.querySelectorAll("[data-toggle]")) each.ariaPressed = String(listed(each.dataset.toggle).includes(each.value));
  at("idle").hidden = !gaps.length;
  at("idle").ariaPressed = String(skipsIdle());
  for (const [id, value] of [["from", state.from], ["to", state.to]]) if (document.activeElement !== at(id)) at(id).value = value;
  at("count").textContent = shown.length === COUNT ? plural(COUNT, "row") : `${shown.length.toLocaleString("en")} of ${plural(COUNT, "row")}`;
  at("clear").hidden = Object.keys(DEFAULTS).every((name) => ["row", "idle", "sort"].includes(name) || state[name] === DEFAULTS[name]);
}

function makeHeader() {
  const { about } = page;
  const calls = page.number.filter((number, row) => number && kindOf(row) === "call").length;
  const facts = [`${about.protocol} over ${about.framing}`, about.recorded && `recorded ${about.recorded.replace("T", " ").replace("Z", " UTC")}`, plural(calls, "call"), duration(sessionEnd), about.command];
  at("about").textContent = visible(facts.filter(Boolean).join(" · "));
  const { rows, bodies: cut, http } = about.leftOut;
  const notes = [
    rows && `${plural(rows, "message")} after the first ${COUNT.toLocaleString("en")} rows are not on this page: ext-recorder trim makes a shorter cassette.`,
    cut && `${plural(cut, "message")} too long for this page: cut, or without text. The cassette has all of it: ext-recorder show --raw.`,
    http && `The HTTP traffic is not on this page: ${http}.`,
  ].filter(Boolean);
  at("left-out").hidden = !notes.length;
  at("left-out").textContent = notes.join(" ");
}

function makeFilters() {
  const count = (of) => {
    const found = new Map();
    for (let row = 0; row < COUNT; row += 1) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
    return found;
  };
  const chips = (name, counts, labels) => {
    for (const [value, label] of labels) {
      if (!counts.get(value)) continue;
      const chip = button(label, () => toggle(name, value), `chip ${value}`);
      chip.append(element("span", "count", counts.get(value).toLocaleString("en")));
      chip.value = value;
      chip.dataset.toggle = name;
      at(`${name}-chips`).append(chip);
    }
  };
  chips("kind", count(groupOf), [...new Set(Object.values(GROUPS))].map((group) => [group, group]));
  chips("status", count(statusOf), Object.entries(STATUSES));
  const messages = count((row) => ["call", "notification", "http"].includes(kindOf(row)) ? textOf("method", row) : "");
  messages.delete("");
  for (const [method, number] of [...messages].sort(([one], [other]) => (one < other ? -1 : 1))) at("method").append(new Option(`${visible(method)} (${number})`, method));
  at("connection").hidden = !severalConnections;
  for (const conn of [...new Set(page.conn)].sort((one, other) => one - other)) at("connection").append(new Option(conn ? `connection ${conn}` : "no connection", conn));
}

const later = (action, wait) => {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
};

// Draws at most once between two frames.
function perFrame(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      action();
    });
  };
}

const KEYS = {
  "/": () => at("search").focus(),
  j: () => step(1), ArrowDown: () => step(1),
  k: () => step(-1), ArrowUp: () => step(-1),
  PageDown: () => step(10), PageUp: () => step(-10),
  Home: () => step(-COUNT), End: () => step(COUNT), g: () => step(-COUNT), G: () => step(COUNT),
  ArrowRight: () => fold(state.row, false), ArrowLeft: () => fold(state.row, true),
  e: () => stepToProblem(1), E: () => stepToProblem(-1),
  r: () => { for (const pane of document.querySelectorAll(".pane")) pane.dispatchEvent(new Event("raw")); },
  z: () => state.row >= 0 && zoomTo(state.row),
  0: () => setRange(0, sessionEnd),
  f: () => toggleFigures(),
  "?": () => at("help").showModal(),
};

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || at("help").open) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else if (at("detail").contains(document.activeElement)) at("list").focus();
      else if (state.row >= 0) choose(-1);
      return;
    }
    if (event.key === "Enter" && event.target === at("search")) {
      change({ q: at("search").value });
      step(0);
      at("list").focus();
      return;
    }
    if (typing) return;
    if (event.key === "Enter" && event.target === at("list")) {
      if (state.row < 0) step(0);
      at("detail").focus();
      return;
    }
    const inDetail = at("detail").contains(event.target) || at("figures").contains(event.target);
    if (inDetail && /^(Arrow|Page|Home|End)/.test(event.key)) return; // they scroll it
    const action = Object.hasOwn(KEYS, event.key) && KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function toggleFigures() {
  at("figures").hidden = !at("figures").hidden;
  at("show-figures").ariaPressed = String(!at("figures").hidden);
  draw();
}

// The divider between list and detail, by pointer or arrow keys.
function listenToDivider() {
  const divider = at("divider");
  const share = (part) => at("main").style.setProperty("--detail", `${Math.min(85, Math.max(15, part))}%`);
  const current = () => (at("detail").offsetHeight / at("main").offsetHeight) * 100;
  const redraw = perFrame(() => { layList(); drawList(); });
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const box = at("main").getBoundingClientRect();
    share(((box.bottom - event.clientY) / box.height) * 100);
    redraw();
  });
  divider.addEventListener("keydown", (event) => {
    if (!["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    share(current() + (event.key === "ArrowUp" ? 5 : -5));
    redraw();
  });
}

// Light, dark, or as the system has it. A page from a file may have no storage.
function listenToTheme() {
  const root = document.documentElement;
  const set = (theme) => { root.dataset.theme = theme; };
  try { set(localStorage.getItem("ext-recorder-theme") ?? ""); } catch { set(""); }
  at("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    set(dark ? "light" : "dark");
    try { localStorage.setItem("ext-recorder-theme", root.dataset.theme); } catch { /* it lasts as long as the page */ }
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
}

// On paper there is no scrolling: the rows are all there, up to a number that the page names.
const MOST_PRINTED = 1000;
function listenToPrinter() {
  addEventListener("beforeprint", () => {
    const axis = scale();
    at("rows-shown").replaceChildren(...listedRows.slice(0, MOST_PRINTED).map((row, place) => rowElement(row, place, axis)));
    if (listedRows.length > MOST_PRINTED) at("rows-shown").append(element("p", "note", `and ${plural(listedRows.length - MOST_PRINTED, "more row")}`));
  });
  addEventListener("afterprint", () => {
    at("rows-shown").replaceChildren();
    drawList();
  });
}

function listen() {
  at("search").addEventListener("input", later(() => change({ q: at("search").value }), 120));
  for (const id of ["method", "way"]) at(id).addEventListener("change", () => change({ [id]: at(id).value }));
  at("connection").addEventListener("change", () => change({ conn: at("connection").value }));
  for (const id of ["from", "to"]) at(id).addEventListener("change", () => change({ [id]: at(id).value }));
  at("clear").addEventListener("click", () => change({ ...DEFAULTS, row: state.row, sort: state.sort, idle: state.idle }));
  at("idle").addEventListener("click", () => change({ idle: skipsIdle() ? "keep" : "skip" }));
  at("show-figures").addEventListener("click", toggleFigures);
  at("subjects").addEventListener("change", () => { figures.subjects = at("subjects").checked; drawFigures(); });
  at("show-help").addEventListener("click", () => at("help").showModal());
  at("close").addEventListener("click", () => choose(-1));
  at("link").addEventListener("click", () => take(at("link"), location.href));
  at("command").addEventListener("click", () => take(at("command"), commandFor(state.row)));
  for (const head of document.querySelectorAll("#heads [data-sort]"))
    head.firstElementChild.addEventListener("click", () => change({ sort: { [head.dataset.sort]: `-${head.dataset.sort}`, [`-${head.dataset.sort}`]: "" }[state.sort] ?? head.dataset.sort }));
  at("rows-shown").addEventListener("click", (event) => {
    const row = Number(event.target.closest(".row")?.dataset.row ?? -1);
    if (row < 0) return;
    if (event.target.closest(".fold")) fold(row, !closed.has(row));
    else choose(row);
  });
  at("list").addEventListener("scroll", perFrame(scrollList), { passive: true });
  addEventListener("resize", perFrame(() => { layList(); drawHeads(); drawList(); drawOverview(); }));
  addEventListener("hashchange", () => { readAddress(); change({}); });
  listenToKeys();
  listenToAxis();
  listenToDivider();
  listenToTheme();
  listenToPrinter();
}

makeHeader();
makeFilters();
listen();
readAddress();
change({});
// The messages are behind the scripts: what needs them is drawn again when they are there.
document.addEventListener("DOMContentLoaded", () => {
  searched = new Map();
  change({});
});
