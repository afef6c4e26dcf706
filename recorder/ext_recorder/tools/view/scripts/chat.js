// A turn of a conversation: what was new for the model or agent, and what it said and called.

const LONG_PART = 3000; // characters of a part that are shown at first

function conversation(row, word) {
  const text = page.chat[row] < 0 ? null : bodyText(page.chat[row]);
  if (!text) return null;
  let chat;
  try {
    chat = JSON.parse(text);
  } catch {
    return null; // cut
  }
  const made = element("section", "chat");
  made.setAttribute("aria-label", "Conversation");
  if (chat.system) made.append(folded("system", chat.system, word));
  if (chat.earlier) made.append(element("p", "note", `${plural(chat.earlier, "earlier message")}: see the request`));
  for (const { role, parts } of chat.messages ?? []) made.append(...parts.map((part) => bubble(role, part, word)));
  made.append(...(chat.reply ?? []).map((part) => bubble("reply", part, word)));
  if (chat.problem) made.append(element("p", "problem", visible(chat.problem)));
  const facts = [
    chat.model,
    chat.input && `${count(chat.input)} tokens in`,
    chat.cached && `${count(chat.cached)} of them cached`,
    chat.output && `${count(chat.output)} out`,
    chat.stop,
  ];
  const line = facts.filter(Boolean).map(String).join(" · ");
  if (line) made.append(element("p", "note", visible(line)));
  return made;
}

const count = (number) => Number(number).toLocaleString("en");

function folded(name, text, word) {
  const body = element("pre");
  appendMarked(body, visible(text), word);
  return element("details", "bubble system", element("summary", "", name), body);
}

// One part: a text, a thought, the call of a tool, its result.
function bubble(role, part, word) {
  const kind = ["thinking", "call", "result", "other"].find((name) => name in part) ?? "text";
  const made = element("div", `bubble ${kind} ${role === "reply" || role === "assistant" ? "reply" : "given"}`);
  const names = { thinking: "thought", call: "tool call", result: part.failed ? "failed result" : "result", other: "" };
  const label = kind === "text" ? (role === "reply" ? "answer" : role) : names[kind];
  made.append(element("span", "who", visible(label)));
  if (part.failed) made.classList.add("failed");
  if (kind === "call") {
    made.append(element("b", "", visible(String(part.call))));
    made.append(contents(typeof part.input === "string" ? part.input : JSON.stringify(part.input), { word }));
  } else if (kind === "other") made.append(element("span", "note", visible(String(part.other))));
  else made.append(textBlock(String(part[kind]), word, "said", LONG_PART));
  return made;
}
