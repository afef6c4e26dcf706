// The keyboard. page.html lists the keys in its dialog.

const KEYS = {
  "/": () => at("search").focus(),
  j: () => step(1),
  ArrowDown: () => step(1),
  k: () => step(-1),
  ArrowUp: () => step(-1),
  PageDown: () => step(rowsInView()),
  PageUp: () => step(-rowsInView()),
  Home: () => step(-COUNT),
  End: () => step(COUNT),
  g: () => step(-COUNT),
  G: () => step(COUNT),
  ArrowRight: () => fold(state.row, false),
  ArrowLeft: () => fold(state.row, true),
  e: () => stepToProblem(1),
  E: () => stepToProblem(-1),
  r: () => {
    for (const pane of document.querySelectorAll(".pane")) pane.dispatchEvent(new Event("raw"));
  },
  z: () => state.row >= 0 && zoomTo(state.row),
  0: () => setRange(0, sessionEnd),
  f: () => toggleFigures(),
  h: () => isRun && change({ key: state.key ? "" : "1" }),
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
