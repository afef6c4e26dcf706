"use strict";
// Elements and units, which all other parts use. Text of a cassette becomes text nodes, never markup.

const at = (id) => document.getElementById(id);

function element(name, className = "", ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function button(label, action, className = "") {
  const made = element("button", className, label);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

// Characters that would be invisible or would reorder the text around them are shown by their number.
const HIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const visible = (text) =>
  text.replace(HIDDEN, (char) => `⟨${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// Colours of a terminal. A cassette keeps them, the page leaves them out where it shows text.
const COLOURS = /\u001b\[[0-9;:]*[mK]/g;

function duration(micros) {
  if (micros < 0) return "";
  if (micros < 1000) return `${micros} µs`;
  if (micros < 10_000) return `${(micros / 1000).toFixed(1)} ms`;
  if (micros < 1_000_000) return `${Math.round(micros / 1000)} ms`;
  if (micros < 100_000_000) return `${(micros / 1_000_000).toFixed(2)} s`;
  const seconds = Math.round(micros / 1_000_000);
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

// The label of a moment on an axis, with the digits in which those at this distance differ.
function moment(micros, step) {
  const digits = (unit) => Math.min(3, Math.max(0, Math.ceil(-Math.log10(step / unit))));
  if (micros < 1) return "0";
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 1_000_000) return `${(micros / 1000).toFixed(digits(1000))} ms`;
  return micros < 120_000_000 || step < 1_000_000
    ? `${(micros / 1_000_000).toFixed(digits(1_000_000))} s`
    : duration(micros);
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const seconds = (micros, digits) => (micros / 1_000_000).toFixed(digits);
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// Appends text with the searched word marked, so often as a person may look at.
const MOST_MARKS = 500;
function appendMarked(into, text, word) {
  const low = word ? text.toLowerCase() : "";
  let from = 0;
  for (let found, marks = 0; word && marks < MOST_MARKS && (found = low.indexOf(word, from)) >= 0; marks += 1) {
    into.append(text.slice(from, found), element("mark", "", text.slice(found, found + word.length)));
    from = found + word.length;
  }
  into.append(text.slice(from));
  return into;
}
