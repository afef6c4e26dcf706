"use strict";
// Each event: [time in s, kind, stream, label, payload, took in s or null, connection, shell command or ""].
const all = JSON.parse(document.getElementById("events").textContent);
const [TIME, KIND, STREAM, LABEL, PAYLOAD, TOOK, CONN, COMMAND] = [0, 1, 2, 3, 4, 5, 6, 7];
const WRONG = new Set(["error", "failure", "junk"]);
const MARKS = new Set(["eof", "exit", "signal", "open"]);
const ROW = 26, SPARE = 12;
const at = (id) => document.getElementById(id);
const [scroll, room, rows, search, lane, count, detail, text, what, copy, command, calls] =
  ["scroll", "room", "rows", "search", "lane", "count", "detail", "text", "what", "copy", "command", "calls"].map(at);
const several = all.some((event) => event[CONN] !== 1);
let shown = all.map((_, index) => index);
let chosen = -1;

const wrong = (event) => WRONG.has(event[KIND]) || (event[KIND] === "exit" && event[LABEL] !== "exit 0");
const duration = (seconds) => seconds === null ? "" :
  seconds >= 10 ? seconds.toFixed(1) + " s" : seconds >= 1 ? seconds.toFixed(2) + " s" : (seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0) + " ms";

function element(name, className, content) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = content;
  return made;
}

function row(index) {
  const event = all[index];
  const own = MARKS.has(event[KIND]) ? "mark" : event[STREAM];
  const item = element("li", own + (wrong(event) ? " wrong" : "") + (index === chosen ? " chosen" : ""), "");
  item.dataset.index = index;
  const host = event[STREAM] === "in" || event[KIND] === "signal";
  const brief = element("span", host ? "host" : "child", event[LABEL]);
  if (own !== "mark") brief.append(event[LABEL] ? "  " : "", element("span", "rest", event[PAYLOAD].slice(0, 300)));
  const none = element("span", "", "");
  const way = own === "mark" ? "•" : event[STREAM] === "in" ? "──▶" : event[STREAM] === "err" ? "╌╌" : "◀──";
  item.append(element("span", "time", event[TIME].toFixed(3)), element("span", "conn", several ? event[CONN] || "·" : ""),
    host ? brief : none, element("span", "way", way), host ? none : brief, element("span", "took", duration(event[TOOK])));
  item.title = event[LABEL];
  return item;
}

function draw() {
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - SPARE);
  const last = Math.min(shown.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + SPARE);
  room.style.setProperty("height", shown.length * ROW + "px");
  rows.style.setProperty("top", first * ROW + "px");
  rows.replaceChildren(...shown.slice(first, last).map(row));
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const side = lane.value;
  shown = [];
  all.forEach((event, index) => {
    if (side === "wrong" ? !wrong(event) : side && event[STREAM] !== side) return;
    const where = (event[LABEL] + " " + event[PAYLOAD]).toLowerCase();
    if (words.every((word) => where.includes(word))) shown.push(index);
  });
  count.textContent = shown.length === all.length ? `${all.length} events` : `${shown.length} of ${all.length} events`;
  scroll.scrollTop = 0;
  draw();
  remember();
}

// JSON by tokens, not by JSON.parse: numbers, duplicate names and their order stay what they were.
function pretty(payload) {
  try { JSON.parse(payload); } catch { return null; }
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
  const parts = [];
  let depth = 0, opened = false, match;
  const line = () => parts.push(["", "\n" + "  ".repeat(depth)]);
  while ((match = token.exec(payload))) {
    const piece = match[0];
    if (piece === "}" || piece === "]") { depth -= 1; if (!opened) line(); parts.push(["", piece]); opened = false; continue; }
    if (opened) { line(); opened = false; }
    if (piece === "{" || piece === "[") { parts.push(["", piece]); depth += 1; opened = true; }
    else if (piece === ",") { parts.push(["", piece]); line(); }
    else if (piece === ":") { if (parts.length) parts[parts.length - 1][0] = "key"; parts.push(["", ": "]); }
    else parts.push([piece[0] === '"' ? "string" : "number", piece]);
  }
  return parts;
}

function marked(into, content, word) {
  const low = content.toLowerCase();
  let from = 0, found;
  while (word && (found = low.indexOf(word, from)) >= 0) {
    into.append(content.slice(from, found), element("mark", "", content.slice(found, found + word.length)));
    from = found + word.length;
  }
  into.append(content.slice(from));
}

function choose(index, follow) {
  chosen = index;
  detail.hidden = index < 0;
  if (index >= 0) {
    const event = all[index];
    what.textContent = [event[LABEL] || event[KIND], duration(event[TOOK])].filter(Boolean).join(" · ");
    const word = search.value.toLowerCase().split(/\s+/).filter(Boolean)[0] || "";
    text.replaceChildren();
    for (const [kind, piece] of pretty(event[PAYLOAD]) || [["", event[PAYLOAD]]]) {
      const span = kind ? element("span", kind, "") : text;
      marked(span, piece, word);
      if (kind) text.append(span);
    }
    command.hidden = !event[COMMAND];
    command.dataset.command = event[COMMAND];
    if (follow) scroll.scrollTop = Math.max(0, shown.indexOf(index) * ROW - scroll.clientHeight / 2);
  }
  draw();
  remember();
}

// What is shown is in the address, so that it can be passed on, and come back to.
function remember() {
  const state = new URLSearchParams();
  if (search.value) state.set("q", search.value);
  if (lane.value) state.set("show", lane.value);
  if (chosen >= 0) state.set("event", chosen + 1);
  try { history.replaceState(null, "", "#" + state); } catch { /* a page from a file may not be allowed to */ }
}

async function take(button, content) {
  const said = button.textContent;
  try { await navigator.clipboard.writeText(content); } catch {
    const area = element("textarea", "", "");
    area.value = content;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = said; }, 1200);
}

// One bar for each call, from its request to its answer; calls that overlap are beside each other.
function overview() {
  const bars = all.map((event, index) => [event[TIME] - event[TOOK], event[TIME], index]).filter(([, , i]) => all[i][TOOK] !== null)
    .sort((one, other) => one[0] - other[0]);
  if (!bars.length || bars.length > 5000) return;
  const end = Math.max(...bars.map((bar) => bar[1])) || 1;
  const free = [];
  for (const bar of bars) {
    let level = free.findIndex((until) => until <= bar[0]);
    if (level < 0) level = free.push(0) - 1;
    free[level] = bar[1];
    bar.push(level);
  }
  const height = free.length * 9;
  calls.setAttribute("viewBox", `0 0 1000 ${height}`);
  calls.style.setProperty("height", Math.min(height, 90) + "px");
  for (const [from, to, index, level] of bars) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const fields = { x: 1000 * from / end, y: level * 9, width: Math.max(2, 1000 * (to - from) / end), height: 7 };
    Object.entries(fields).forEach(([name, value]) => bar.setAttribute(name, value));
    if (wrong(all[index])) bar.classList.add("wrong");
    bar.append(document.createElementNS("http://www.w3.org/2000/svg", "title"));
    bar.firstChild.textContent = `${all[index][LABEL]} · ${duration(all[index][TOOK])}`;
    bar.addEventListener("click", () => choose(index, true));
    calls.append(bar);
  }
}

function step(by) {
  const place = shown.indexOf(chosen) + by;
  if (place >= 0 && place < shown.length) choose(shown[place], true);
}

rows.addEventListener("click", (event) => {
  const item = event.target.closest("li");
  if (item) choose(Number(item.dataset.index), false);
});
scroll.addEventListener("scroll", draw);
addEventListener("resize", draw);
search.addEventListener("input", filter);
lane.addEventListener("change", filter);
copy.addEventListener("click", () => take(copy, all[chosen][PAYLOAD]));
command.addEventListener("click", () => take(command, all[chosen][COMMAND]));
at("close").addEventListener("click", () => choose(-1, false));
document.addEventListener("keydown", (event) => {
  if (event.target === search) {
    if (event.key === "Escape") search.blur();
    return;
  }
  if (event.key === "/") { event.preventDefault(); search.focus(); }
  else if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); step(1); }
  else if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); step(-1); }
  else if (event.key === "Escape") choose(-1, false);
});

const state = new URLSearchParams(location.hash.slice(1));
search.value = state.get("q") || "";
lane.value = state.get("show") || "";
const wanted = Number(state.get("event")) - 1;
overview();
filter();
if (all[wanted]) choose(wanted, true);
