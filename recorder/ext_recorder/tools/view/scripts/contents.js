// What a message says: JSON as a tree, JSON within texts unfolded, images drawn, other texts with their line breaks.

const OPEN_AT_FIRST = 250; // nodes of a tree that are shown without a click
const ITEMS_AT_ONCE = 200;
const TEXT_AT_ONCE = 4000; // characters
// Images by their own first bytes, not by what a message says of them. SVG is not among them: it may hold scripts.
const IMAGES = { iVBORw0KGgo: "image/png", "/9j/": "image/jpeg", R0lGOD: "image/gif", UklGR: "image/webp" };

// Renders a text: as a tree, if it is JSON.
function contents(text, { word = "", cut = false } = {}) {
  const tree = treeOf(text, cut);
  if (!tree) return textBlock(text, word, "text");
  const made = element("div", "tree");
  if (tree.items.length) appendItems(made, tree, 0, { left: OPEN_AT_FIRST, word });
  else made.append(node(tree, { left: 1, word }));
  if (tree.cut) made.append(element("div", "note", "… cut here"));
  return made;
}

// A node with its name; `context.left` says how many more may be shown before something is clicked.
function node(tree, context) {
  context.left -= 1;
  const name = tree.key === null || tree.key === undefined ? "" : stringOf(tree.key);
  const label = name === "" ? [] : [appendMarked(element("span", "key"), visible(name), context.word), " "];
  if (tree.type === "{" || tree.type === "[") return branch(label, tree, context);
  if (tree.type === '"') return string(label, tree, context);
  const kind = /^[-\d]/.test(tree.raw) ? "number" : "literal";
  return element("div", "leaf", ...label, appendMarked(element("span", kind), tree.raw, context.word));
}

function branch(label, tree, context, note = "") {
  const count = tree.items.length;
  const brackets = tree.type === "{" ? ["{", "}"] : ["[", "]"];
  if (!count && !tree.cut) return element("div", "leaf", ...label, element("span", "literal", brackets.join("")));
  const what = note || (tree.type === "{" ? `{${count}}` : `[${count}]`);
  const made = element("details", "branch", element("summary", "", ...label, element("span", "count", what)));
  const room = element("div", "items");
  made.append(room);
  const fill = () => {
    if (room.childNodes.length) return;
    appendItems(room, tree, 0, context);
    if (tree.cut) room.append(element("div", "note", "… cut here"));
  };
  if (context.left > 10) {
    made.open = true;
    fill();
  }
  made.addEventListener("toggle", () => {
    context.left = Math.max(context.left, 40);
    fill();
  });
  return made;
}

function appendItems(room, tree, from, context) {
  const to = Math.min(tree.items.length, from + Math.min(ITEMS_AT_ONCE, Math.max(10, context.left)));
  for (let item = from; item < to; item += 1) {
    const made = node(tree.items[item], context);
    if (tree.type === "[") made.dataset.index = item;
    room.append(made);
  }
  if (to < tree.items.length) {
    const more = button(`${(tree.items.length - to).toLocaleString("en")} more`, () => {
      more.remove();
      context.left = ITEMS_AT_ONCE;
      appendItems(room, tree, to, context);
    });
    room.append(more);
  }
}

function string(label, tree, context) {
  const value = stringOf(tree.raw);
  const image = tree.cut ? null : imageOf(value);
  if (image) return element("div", "leaf", ...label, image);
  const [before, inner] = jsonIn(value);
  if (before)
    return element(
      "div",
      "leaf",
      ...label,
      textBlock(before, context.word, "string"),
      string([], { ...tree, raw: JSON.stringify(value.slice(before.length)) }, context),
    );
  if (inner) {
    context.left -= 1;
    const made = branch(
      label,
      inner,
      context,
      inner.type === "{" ? `JSON in text {${inner.items.length}}` : `JSON in text [${inner.items.length}]`,
    );
    made.classList.add("inner");
    return made;
  }
  if (value.length > 100 || value.includes("\n"))
    return element("div", "leaf", ...label, textBlock(value, context.word, "string"));
  const shown = appendMarked(element("span", "string"), visible(value), context.word);
  return element("div", "leaf", ...label, shown);
}

// The JSON that a text is, or with which it ends after some lines: [the text before it, its tree]; ["", null] without.
function jsonIn(text) {
  const whole = treeOf(text);
  if (whole) return ["", whole];
  const start = text.search(/\n[ \t]*[{[]/);
  const tree = start < 0 ? null : treeOf(text.slice(start));
  return tree ? [text.slice(0, start), tree] : ["", null];
}

// A text with its line breaks; a long one in parts.
function textBlock(text, word, className, most = TEXT_AT_ONCE) {
  const clean = visible(text.replace(COLOURS, "").replace(/\r\n/g, "\n"));
  const made = element("pre", className);
  const show = (from, to) => {
    appendMarked(made, clean.slice(from, to), word);
    if (to >= clean.length) return;
    const more = button(`${(clean.length - to).toLocaleString("en")} more characters`, () => {
      more.remove();
      show(to, Math.min(clean.length, to + 50 * TEXT_AT_ONCE));
    });
    made.append(more);
  };
  show(0, most);
  return made;
}

const decodedSize = (base64) => Math.floor((base64.length * 3) / 4) - /=*$/.exec(base64)[0].length;

// An image in base64, or in a data URL; null for other texts.
function imageOf(text) {
  const start = text.startsWith("data:image/") ? text.indexOf(",") + 1 : 0;
  const first = Object.keys(IMAGES).find((beginning) => text.startsWith(beginning, start));
  if (!first) return null;
  const data = text.slice(start).replace(/\s/g, "");
  if (data.length < 60 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return null;
  const type = IMAGES[first];
  const image = element("img");
  const caption = element("figcaption", "", `${type}, ${size(decodedSize(data))}`);
  image.alt = `image of type ${type}`;
  image.decoding = "async";
  image.addEventListener("load", () => caption.append(`, ${image.naturalWidth} × ${image.naturalHeight}`));
  image.addEventListener("error", () => caption.append(", cannot be drawn"));
  image.src = `data:${type};base64,${data}`;
  return element("figure", "", image, caption);
}

// Binary data, given in base64: an image, or bytes in hexadecimal with their characters.
const BYTES_AT_MOST = 2048;
function binary(base64) {
  const image = imageOf(base64);
  if (image) return image;
  const text = atob(base64.slice(0, Math.ceil(BYTES_AT_MOST / 3) * 4));
  const lines = [];
  for (let from = 0; from < text.length; from += 16) {
    const bytes = [...text.slice(from, from + 16)];
    const hex = bytes.map((char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    const chars = bytes.map((char) => (/[\x20-\x7e]/.test(char) ? char : ".")).join("");
    lines.push(`${from.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${chars}`);
  }
  const rest = decodedSize(base64) - text.length;
  return element("pre", "text hex", lines.join("\n"), rest ? `\n… ${size(rest)} more` : "");
}
