// The head of the page: what the session is, what is left out, and the filters.

function drawFilters() {
  if (document.activeElement !== at("search")) at("search").value = state.q;
  at("method").value = state.method;
  if (state.method && at("method").value !== state.method)
    at("method").append(new Option(state.method, state.method, true, true));
  at("way").value = state.way;
  at("connection").value = state.conn;
  for (const each of document.querySelectorAll("[data-toggle]"))
    each.ariaPressed = String(listed(each.dataset.toggle).includes(each.value));
  at("key").hidden = !isRun;
  at("key").ariaPressed = String(state.key !== "");
  at("idle").hidden = !gaps.length;
  at("idle").ariaPressed = String(skipsIdle());
  for (const [id, value] of [
    ["from", state.from],
    ["to", state.to],
  ])
    if (document.activeElement !== at(id)) at(id).value = value;
  at("count").textContent =
    shown.length === COUNT ? plural(COUNT, "row") : `${shown.length.toLocaleString("en")} of ${plural(COUNT, "row")}`;
  at("clear").hidden = Object.keys(DEFAULTS).every(
    (name) => ["row", "idle", "sort"].includes(name) || state[name] === DEFAULTS[name],
  );
}

function makeHeader() {
  const { about } = page;
  const calls = page.number.filter((number, row) => number && kindOf(row) === "call").length;
  const facts = [
    isRun ? "" : `${about.protocol} over ${about.framing}`,
    about.recorded && `recorded ${about.recorded.replace("T", " ").replace("Z", " UTC")}`,
    plural(calls, "call"),
    duration(sessionEnd),
    about.command,
  ];
  drawBadges(about);
  at("about").textContent = visible(facts.filter(Boolean).join(" · "));
  const { rows, bodies: cut, http } = about.leftOut;
  const notes = [];
  if (rows) {
    const what = `${plural(rows, "message")} after the first ${COUNT.toLocaleString("en")} rows`;
    notes.push(`${what} are not on this page: ext-recorder trim makes a shorter cassette.`);
  }
  if (cut) {
    const what = `${plural(cut, "message")} too long for this page: cut, or without text.`;
    notes.push(`${what} The cassette has all of it: ext-recorder show --raw.`);
  }
  if (http) notes.push(`The HTTP traffic is not on this page: ${http}.`);
  at("left-out").hidden = !notes.length;
  at("left-out").textContent = notes.join(" ");
}

// Of a run, the verdicts and the figures that are asked first.
function drawBadges({ exit, steps, chats, tokens }) {
  const made = [];
  const badge = (kind, text) => made.push(element("span", `badge ${kind}`, text));
  if (steps?.[0])
    badge(
      steps[1] ? "error" : "ok",
      steps[1] ? `✗ ${steps[1]} of ${plural(steps[0], "step")} failed` : `✓ ${plural(steps[0], "step")} ok`,
    );
  if (exit !== undefined) badge(exit === 0 ? "ok" : "error", Number.isInteger(exit) ? `exit ${exit}` : String(exit));
  if (chats) badge("", plural(chats, "model call"));
  if (tokens?.[0] || tokens?.[1]) badge("", `${count(tokens[0])} tokens in, ${count(tokens[1])} out`);
  at("badges").replaceChildren(...made);
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
  chips(
    "kind",
    count(groupOf),
    [...new Set(Object.values(GROUPS))].map((group) => [group, group]),
  );
  chips("status", count(statusOf), Object.entries(STATUSES));
  const messages = count((row) =>
    ["call", "notification", "http"].includes(kindOf(row)) ? textOf("method", row) : "",
  );
  messages.delete("");
  for (const [method, number] of [...messages].sort(([one], [other]) => (one < other ? -1 : 1)))
    at("method").append(new Option(`${visible(method)} (${number})`, method));
  document.body.classList.toggle("run", lanes.length > 1);
  at("connection").hidden = !severalConnections;
  for (const conn of [...new Set(page.conn)].sort((one, other) => one - other))
    at("connection").append(new Option(conn ? `connection ${conn}` : "no connection", conn));
}
