// The lanes of the page: of a recorded run the host, agents, models, servers; one of a cassette without HTTP traffic.

const { lanes, sources } = page.about;
const sourceOf = (row) => sources[page.source[row]];
const laneOf = (row) => sourceOf(row).lane;
const roleOf = (row) => lanes[laneOf(row)].role;
const isRun = lanes.some((lane) => lane.role === "host");
const saysInWords = (row) => textOf("says", row);
const answersInWords = (row) => textOf("answers", row);

// What a person looks for first: phases, steps, prompts, tool calls, turns of a model, and what failed.
const KEY_METHODS = ["execute", "session/prompt", "tools/call"];
const isKey = (row) =>
  ["phase", "task"].includes(kindOf(row)) ||
  page.chat[row] >= 0 ||
  statusOf(row) === "error" ||
  textOf("subject", row) === "tool_call" ||
  (kindOf(row) === "call" && KEY_METHODS.includes(textOf("method", row)));

// Paths of the icons, in a square of 16.
const ICONS = {
  host: "M2 3h12v10H2zM4 6l2 2-2 2M8 10h4",
  agent: "M3 6h10v7H3zM8 6V3M8 3h.01M6 9h.01M10 9h.01M6 11h4M1 9v2M15 9v2",
  model: "M8 1.5 9.6 6.4 14.5 8 9.6 9.6 8 14.5 6.4 9.6 1.5 8 6.4 6.4z",
  mcp: "M6 2v4M10 2v4M4 6h8v2a4 4 0 0 1-8 0zM8 12v3",
  extension: "M3 5h3a2 2 0 1 1 4 0h3v3a2 2 0 1 0 0 4v1H3z",
  child: "M3 3h10v10H3zM6 6h4v4H6z",
  cluster: "M8 1.5 13.6 4.7v6.6L8 14.5 2.4 11.3V4.7zM8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z",
  service: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM1.5 8h13M8 1.5c4 4 4 9 0 13c-4-4-4-9 0-13",
};

function icon(role) {
  const space = "http:/" + "/www.w3.org/2000/svg";
  const made = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  made.setAttribute("viewBox", "0 0 16 16");
  made.setAttribute("class", "icon");
  made.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[role] ?? ICONS.child);
  made.append(path);
  return made;
}

// The name of a lane with its icon; `short` for rows.
function laneLabel(lane) {
  const { role, name } = lanes[lane];
  const label = element("span", `lane ${role}`, icon(role), element("span", "lane-name", visible(name)));
  label.title = `${role}: ${visible(name)}`;
  return label;
}
