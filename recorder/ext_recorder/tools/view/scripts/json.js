// JSON as a tree that keeps the spelling: 1.0, numbers of 22 digits, duplicate names and the order stay what they were.

// The position after a string that begins with a quotation mark; -1 if it does not end.
function stringEnd(text, from) {
  for (let end = from; (end = text.indexOf('"', end + 1)) >= 0;) {
    let escapes = end;
    while (text[escapes - 1] === "\\") escapes -= 1;
    if ((end - escapes) % 2 === 0) return end + 1;
  }
  return -1;
}

// Nodes: {type: "{" | "[" | '"' | "", key, raw, items, cut}. Text that was cut gives the tree of what is there.
// Without recursion: the nesting of a message may be any.
function parseTree(text) {
  const root = { type: "[", items: [] };
  const open = [root];
  const word = /[^\s,:{}[\]"]+/y;
  let key = null;
  for (let from = 0; from < text.length;) {
    const char = text[from];
    const top = open[open.length - 1];
    if (char === "{" || char === "[") {
      const node = { type: char, key, items: [], cut: true };
      top.items.push(node);
      open.push(node);
      key = null;
      from += 1;
    } else if (char === "}" || char === "]") {
      if (open.length > 1) open.pop().cut = false;
      from += 1;
    } else if (char === '"') {
      const end = stringEnd(text, from);
      const raw = end < 0 ? text.slice(from) : text.slice(from, end);
      from += raw.length;
      if (top.type === "{" && key === null) key = raw;
      else {
        top.items.push({ type: '"', key, raw, cut: end < 0 });
        key = null;
      }
    } else {
      word.lastIndex = from;
      const raw = word.exec(text)?.[0];
      if (raw) {
        top.items.push({ type: "", key, raw });
        key = null;
      }
      from += raw?.length ?? 1;
    }
  }
  return root.items[0] ?? null;
}

// The tree of a text that is a JSON object or array (or the beginning of one that was cut); null for other text.
function treeOf(text, cut = false) {
  if (!/^\s*[{[]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    if (!cut) return null;
  }
  return parseTree(text);
}

// A string as its characters.
function stringOf(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return raw.slice(1); // cut, or with a control character in it
  }
}
