// Start of the page: what is drawn again when something changes, and what listens to the pointer, theme and printer.

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
  const redraw = perFrame(() => {
    layList();
    drawList();
  });
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
  const set = (theme) => {
    root.dataset.theme = theme;
  };
  try {
    set(localStorage.getItem("ext-recorder-theme") ?? "");
  } catch {
    set("");
  }
  at("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    set(dark ? "light" : "dark");
    try {
      localStorage.setItem("ext-recorder-theme", root.dataset.theme);
    } catch {
      // Then it lasts as long as the page.
    }
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
}

// On paper there is no scrolling: the rows are all there, up to a number that the page names.
const MOST_PRINTED = 1000;
function listenToPrinter() {
  addEventListener("beforeprint", () => {
    const axis = scale();
    at("rows-shown").replaceChildren(
      ...listedRows.slice(0, MOST_PRINTED).map((row, place) => rowElement(row, place, axis)),
    );
    if (listedRows.length > MOST_PRINTED)
      at("rows-shown").append(element("p", "note", `and ${plural(listedRows.length - MOST_PRINTED, "more row")}`));
  });
  addEventListener("afterprint", () => {
    at("rows-shown").replaceChildren();
    drawList();
  });
}

function listen() {
  at("search").addEventListener(
    "input",
    later(() => change({ q: at("search").value }), 120),
  );
  for (const id of ["method", "way"]) at(id).addEventListener("change", () => change({ [id]: at(id).value }));
  at("connection").addEventListener("change", () => change({ conn: at("connection").value }));
  for (const id of ["from", "to"]) at(id).addEventListener("change", () => change({ [id]: at(id).value }));
  at("clear").addEventListener("click", () =>
    change({ ...DEFAULTS, row: state.row, sort: state.sort, idle: state.idle }),
  );
  at("key").addEventListener("click", () => change({ key: state.key ? "" : "1" }));
  at("idle").addEventListener("click", () => change({ idle: skipsIdle() ? "keep" : "skip" }));
  at("show-figures").addEventListener("click", toggleFigures);
  at("subjects").addEventListener("change", () => {
    figures.subjects = at("subjects").checked;
    drawFigures();
  });
  at("show-help").addEventListener("click", () => at("help").showModal());
  at("close").addEventListener("click", () => choose(-1));
  at("link").addEventListener("click", () => take(at("link"), location.href.split("#")[0] + addressOfState()));
  at("command").addEventListener("click", () => take(at("command"), commandFor(state.row)));
  for (const head of document.querySelectorAll("#heads [data-sort]"))
    head.firstElementChild.addEventListener("click", () =>
      change({
        sort:
          { [head.dataset.sort]: `-${head.dataset.sort}`, [`-${head.dataset.sort}`]: "" }[state.sort] ??
          head.dataset.sort,
      }),
    );
  at("rows-shown").addEventListener("click", (event) => {
    const row = Number(event.target.closest(".row")?.dataset.row ?? -1);
    if (row < 0) return;
    if (event.target.closest(".fold")) fold(row, !closed.has(row));
    else choose(row);
  });
  at("list").addEventListener("scroll", perFrame(scrollList), { passive: true });
  addEventListener(
    "resize",
    perFrame(() => {
      layList();
      drawHeads();
      drawList();
      drawOverview();
    }),
  );
  addEventListener("hashchange", () => {
    readAddress();
    change({});
  });
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
