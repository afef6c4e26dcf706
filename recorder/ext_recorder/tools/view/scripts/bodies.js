// The messages: plain text in chunks behind the scripts, cut out by position when they are shown, searched as they are.

const page = JSON.parse(at("rows").textContent);
const bodies = page.bodies;
// What stands in the chunks for characters that HTML would change; bodies.py has the reverse.
const DECODED = { "\ufdd0": "<", "\ufdd1": "\r", "\ufdd2": "\0" };
const ENCODED = { "<": "\ufdd0", "\r": "\ufdd1", "\0": "\ufdd2" };
const decoded = (text) => text.replace(/[\ufdd0-\ufdd2]/g, (char) => DECODED[char]);
const encoded = (text) => text.replace(/[<\r\0]/g, (char) => ENCODED[char]);

// Where each body begins in its chunk.
const offsets = new Float64Array(bodies.length.length);
const chunkOf = new Uint32Array(bodies.length.length);
bodies.chunks.forEach((end, chunk) => {
  for (let body = bodies.chunks[chunk - 1] ?? 0, offset = 0; body < end; offset += bodies.length[body], body += 1) {
    offsets[body] = offset;
    chunkOf[body] = chunk;
  }
});

const chunkTexts = [];

// The text of a chunk; null while the browser has not read it yet.
function chunkText(chunk) {
  if (chunkTexts[chunk] === undefined) {
    const node = at(`bodies-${chunk}`);
    if (!node?.nextSibling && document.readyState === "loading") return null;
    chunkTexts[chunk] = node ? node.textContent : "";
  }
  return chunkTexts[chunk];
}

// A part of a body; null while it is not there yet, and for the body -1.
function bodyPart(body, start, end) {
  const text = body < 0 ? null : chunkText(chunkOf[body]);
  return text === null
    ? null
    : decoded(text.slice(offsets[body] + start, offsets[body] + Math.min(end, bodies.length[body])));
}

const bodyText = (body) => bodyPart(body, 0, Infinity);
const hasContent = (body) => bodies.end[body] > bodies.start[body];
// The main part of a message: parameters, result, error; all of it, if it has no such part.
const contentText = (body, most = Infinity) =>
  hasContent(body)
    ? bodyPart(body, bodies.start[body], Math.min(bodies.end[body], bodies.start[body] + most))
    : bodyPart(body, 0, most);
const contentName = (body) => bodies.names[bodies.name[body]];
const cutBodies = new Set(bodies.cut);
const isCut = (body) => cutBodies.has(body);

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// Which bodies contain a word, in any case; also as JSON writes it in a string.
function bodiesWith(word) {
  const flags = new Uint8Array(bodies.length.length);
  const forms = new Set([word, JSON.stringify(word).slice(1, -1)]);
  const pattern = new RegExp([...forms].map((form) => literal(encoded(form))).join("|"), "gi");
  bodies.chunks.forEach((last, chunk) => {
    const text = chunkText(chunk) ?? "";
    let body = bodies.chunks[chunk - 1] ?? 0;
    pattern.lastIndex = 0;
    for (let match; (match = pattern.exec(text));) {
      while (offsets[body] + bodies.length[body] <= match.index) body += 1;
      const end = offsets[body] + bodies.length[body];
      const inside = match.index + match[0].length <= end;
      if (inside) flags[body] = 1;
      pattern.lastIndex = inside ? end : match.index + 1;
    }
  });
  return flags;
}
