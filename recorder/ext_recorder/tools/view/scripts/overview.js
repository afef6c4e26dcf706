// The time axis: all calls as bars that overlap, lines and notifications as marks; a dragged range zooms and filters.

const TOP = 16; // px of the labels
const BOTTOM = 8; // px of the marks
// Bars that overlap stand below each other, in a cassette of its own in more rows than in one lane of several.
const LANES = lanes.length > 1 ? { most: 3, height: 9, text: 15, least: 17 } : { most: 14, height: 12, text: 12, least: 0 };

// Time without anything, which the axis may leave out: gaps of at least this part of the busy time.
const GAP_PART = 0.2;
const gaps = [];
{
  const spans = [...Array(COUNT).keys()]
    .map((row) => [startOf(row), page.took[row] < 0 ? startOf(row) : endOf(row)])
    .sort((a, b) => a[0] - b[0]);
  let busy = 0;
  let until = 0;
  const empty = [];
  for (const [start, end] of spans) {
    if (start > until) empty.push([until, start]);
    busy += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  const least = Math.max(busy * GAP_PART, 1000);
  for (const gap of empty) if (gap[1] - gap[0] >= least) gaps.push(gap);
}
const idleTime = gaps.reduce((sum, [start, end]) => sum + end - start, 0);
const skipsIdle = () => gaps.length > 0 && (state.idle === "" ? idleTime > 0.6 * sessionEnd : state.idle === "skip");

// A moment of the session to a position from 0 to 1 on the axis, and back.
function scale() {
  const kept = Math.max((sessionEnd - idleTime) * 0.03, 1); // what is left of a gap
  const skipped = skipsIdle() ? gaps : [];
  const before = [0]; // what is left out before each gap
  for (const [start, end] of skipped) before.push(before[before.length - 1] + Math.max(0, end - start - kept));
  const warp = (time) => {
    let [low, high] = [0, skipped.length]; // how many gaps begin before it
    while (low < high) {
      const middle = (low + high) >> 1;
      if (skipped[middle][0] < time) low = middle + 1;
      else high = middle;
    }
    if (!low) return time;
    const [start, end] = skipped[low - 1];
    const within = Math.min(1, (time - start) / (end - start));
    return time - before[low - 1] - within * (before[low] - before[low - 1]);
  };
  const unwarp = (place) => {
    let [low, high] = [0, sessionEnd];
    for (let step = 0; step < 50; step += 1) {
      const middle = (low + high) / 2;
      if (warp(middle) < place) low = middle;
      else high = middle;
    }
    return high;
  };
  const [from, to] = [warp(rangeStart()), warp(rangeEnd())];
  return {
    x: (time) => (warp(time) - from) / (to - from || 1),
    time: (x) => unwarp(from + x * (to - from)),
    skipped,
    even: !skipped.some(([start, end]) => end > rangeStart() && start < rangeEnd()),
  };
}

// Moments with a label: round ones, or, where time is left out, those at even distances.
function ticks(axis, most) {
  const [from, to] = [rangeStart(), rangeEnd()];
  if (!axis.even) {
    const times = Array.from({ length: most }, (_, each) => axis.time((each + 0.5) / most));
    return times.map((time, each) => [time, moment(time, each ? time - times[each - 1] : times[1] - time)]);
  }
  const rough = Math.max(1, (to - from) / most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) found.push([time, moment(time, step)]);
  return found;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ok: of("ok"),
    error: of("wrong"),
    open: of("open"),
    cancelled: of("open"),
    http: of("http"),
    child: of("host"),
    ...Object.fromEntries([...new Set(lanes.map(({ role }) => role))].map((role) => [`role-${role}`, of(`role-${role}`)])),
    ground: of("back"),
    fore: of("fore"),
    bar: of("bar"),
    line: of("line"),
    soft: of("soft"),
    mark: of("soft"),
  };
}

function colourOf(row, paint) {
  if (statusOf(row) !== "ok" && !(isRun && stepAt(row) && !statusOf(row))) {
    if (paint[statusOf(row)]) return paint[statusOf(row)];
    return isRun && hasBar(row) ? paint[`role-${roleOf(row)}`] : paint.mark;
  }
  if (lanes.length > 1 && roleOf(row) !== "child") return paint[`role-${roleOf(row)}`];
  if (kindOf(row) === "http") return paint.http;
  return textOf("stream", row) === "out" ? paint.child : paint.ok;
}

// All but the chosen row, which changes more often.
const ground = document.createElement("canvas");

function drawOverview() {
  const { clientWidth: width, clientHeight: height } = at("axis");
  if (!width) return;
  layLanes();
  if (lanes.length > 1 && at("axis").clientHeight !== height) return drawOverview();
  drawLaneNames();
  const draw = sized(ground, width, height);
  const [axis, paint] = [scale(), colours()];
  draw.font = "11px system-ui, sans-serif";
  draw.textBaseline = "top";
  for (const [time, label] of ticks(axis, Math.max(2, Math.floor(width / 110)))) {
    const x = Math.round(axis.x(time) * width);
    draw.fillStyle = paint.line;
    draw.fillRect(x, 0, 1, height);
    draw.fillStyle = paint.soft;
    draw.fillText(label, Math.min(x + 4, width - draw.measureText(label).width - 2), 1);
  }
  draw.fillStyle = paint.line;
  for (const [start, end] of axis.skipped) {
    const x = axis.x(start) * width;
    const wide = axis.x(end) * width - x;
    for (let stripe = 1; stripe < wide; stripe += 4) draw.fillRect(x + stripe, TOP, 1, height);
  }
  layout.forEach(({ top, height: tall }, lane) => {
    if (lanes.length === 1) return;
    draw.fillStyle = paint.line;
    draw.fillRect(0, top + tall, width, 1);
  });
  const laid = layBars(axis, width);
  for (const [x, length, deep, row] of laid.bars) {
    const { top, step } = barBox(row, deep);
    draw.fillStyle = colourOf(row, paint);
    draw.fillRect(x, top, length, Math.max(1, step - 1));
    if (isRun && step > 11 && length > 34) drawLabel(draw, row, [x, top, length, step], paint);
  }
  for (const [x, row] of laid.points) {
    const { top, height: tall } = layout[laneOf(row)];
    draw.fillStyle = colourOf(row, paint);
    if (lanes.length === 1) draw.fillRect(x, height - BOTTOM + (kindOf(row) === "stderr" ? 3 : 0), 1, 5);
    else draw.fillRect(x, top + tall - 4, 1, 3);
  }
  drawChosen();
}

// What a wide bar is, in it.
function drawLabel(draw, row, [x, top, length, step], paint) {
  const sign = { ok: "✓ ", error: "✗ " }[statusOf(row)] ?? "";
  const from = Math.max(0, x);
  draw.save();
  draw.beginPath();
  draw.rect(from, top, length - (from - x) - 3, step);
  draw.clip();
  draw.fillStyle = paint.ground;
  const name = stepAt(row) ? [textOf("method", row), saysInWords(row)] : [nameOf(row)];
  draw.fillText(`${stepAt(row) ? sign : ""}${visible(name.filter(Boolean).join("  "))}`, from + 4, top + 1);
  draw.restore();
}

// Where the lanes are: top and height of each, and the height of one of its bars.
let layout = [];
function layLanes() {
  const deepest = new Array(lanes.length).fill(1);
  for (const [, , deep, row] of layBars(scale(), at("axis").clientWidth).bars)
    deepest[laneOf(row)] = Math.max(deepest[laneOf(row)], deep + 1);
  if (lanes.length === 1) {
    const height = at("axis").clientHeight - TOP - BOTTOM;
    layout = [{ top: TOP, height, step: Math.min(LANES.height, height / deepest[0]) }];
    return;
  }
  let top = TOP;
  layout = lanes.map(({ role }, lane) => {
    const step = role === "host" ? LANES.text : LANES.height;
    const height = Math.max(LANES.least, deepest[lane] * step + 5);
    top += height + 1;
    return { top: top - height - 1, height, step };
  });
  at("overview").style.setProperty("height", `${top + 2}px`);
}

function barBox(row, deep) {
  const { top, step } = layout[laneOf(row)];
  return { top: top + deep * step + (lanes.length > 1 ? 2 : 0), step };
}

// The names of the lanes, which filter by them.
function drawLaneNames() {
  at("lanes").hidden = lanes.length === 1;
  if (lanes.length === 1) return;
  at("lanes").replaceChildren(
    ...lanes.map((_, lane) => {
      const made = button("", () => toggle("lane", String(lane)), "lane-button");
      made.append(laneLabel(lane));
      made.ariaPressed = String(listed("lane").includes(String(lane)));
      made.style.setProperty("top", `${layout[lane].top}px`);
      made.style.setProperty("height", `${layout[lane].height}px`);
      return made;
    }),
  );
}

function drawChosen() {
  const { clientWidth: width, clientHeight: height } = at("axis");
  if (!width || !ground.width) return;
  const draw = sized(at("axis"), width, height);
  draw.drawImage(ground, 0, 0, width, height);
  if (state.row < 0) return;
  const axis = scale();
  const x = axis.x(startOf(state.row)) * width;
  draw.strokeStyle = colours().child;
  draw.strokeStyle = lanes.length > 1 ? colours().fore : colours().child;
  const { top, height: tall } = layout[laneOf(state.row)] ?? { top: TOP, height: height - TOP };
  const box = lanes.length > 1 ? [top + 0.5, tall] : [TOP - 2, height - TOP];
  draw.lineWidth = 1.5;
  draw.strokeRect(x - 1, box[0], Math.max(3, axis.x(endOf(state.row)) * width - x + 2), box[1]);
}

function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const draw = canvas.getContext("2d");
  draw.scale(ratio, ratio);
  return draw;
}

// Places the bars of the rows that are shown: [x, length, depth in its lane, row]; and the marks: [x, row].
function layBars(axis, width) {
  const [bars, points] = [[], []];
  const ends = lanes.map(() => []); // where each row of bars of a lane ends so far
  for (const row of shown.slice().sort((one, other) => startOf(one) - startOf(other))) {
    const [x, end] = [axis.x(startOf(row)) * width, axis.x(endOf(row)) * width];
    if (end < 0 || x > width) continue;
    if (!hasBar(row)) {
      points.push([x, row]);
      continue;
    }
    // With more at once than there are rows in a lane, bars cover each other.
    const free = ends[laneOf(row)];
    let lane = free.findIndex((until) => until <= x + 1);
    if (lane < 0) lane = free.length < LANES.most ? free.length : free.indexOf(Math.min(...free));
    const length = Math.max(1.5, end - x);
    free[lane] = x + length + 0.5;
    bars.push([x, length, lane, row]);
  }
  return { bars, points };
}

function setRange(start, end) {
  const whole = start <= 0 && end >= sessionEnd;
  change(
    whole ? { from: "", to: "" } : { from: seconds(Math.max(0, start), 6), to: seconds(Math.min(sessionEnd, end), 6) },
  );
}

// Drags a range; a click chooses the call that is nearest to it.
function listenToAxis() {
  const [canvas, brush] = [at("axis"), at("brush")];
  let began = null;
  const place = (event) =>
    Math.min(1, Math.max(0, (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth));
  canvas.addEventListener("pointerdown", (event) => {
    began = place(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (began === null) return;
    const now = place(event);
    brush.hidden = Math.abs(now - began) * canvas.clientWidth < 4;
    brush.style.setProperty("left", `${Math.min(began, now) * 100}%`);
    brush.style.setProperty("width", `${Math.abs(now - began) * 100}%`);
  });
  canvas.addEventListener("pointercancel", () => {
    began = null;
    brush.hidden = true;
  });
  canvas.addEventListener("pointerup", (event) => {
    const axis = scale();
    const [from, to] = [Math.min(began, place(event)), Math.max(began, place(event))];
    const dragged = !brush.hidden;
    began = null;
    brush.hidden = true;
    if (dragged) setRange(axis.time(from), axis.time(to));
    else chooseAt(laneAt(event), axis.time(from), 4 * (axis.time(Math.min(1, from + 1 / canvas.clientWidth)) - axis.time(from)));
  });
  if (lanes.length > 1) listenToHover(canvas);
  canvas.addEventListener("dblclick", () => setRange(0, sessionEnd));
}

// What is below the pointer, as text.
function listenToHover(canvas) {
  const tip = at("tip");
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    const axis = scale();
    const box = canvas.getBoundingClientRect();
    const [here, next] = [0, 4].map((by) => axis.time((event.clientX + by - box.left) / canvas.clientWidth));
    const lane = laneAt(event);
    const row = lane < 0 ? -1 : nearest(lane, here, next - here);
    tip.hidden = row < 0 || startOf(row) > next + (next - here) || endOf(row) < here - (next - here);
    if (tip.hidden) return;
    const facts = [nameOf(row), saysInWords(row), answersInWords(row), textOf("outcome", row), duration(page.took[row])];
    tip.textContent = visible(facts.filter(Boolean).join(" · "));
    tip.style.setProperty("left", `${Math.min(event.clientX, innerWidth - 380)}px`);
    tip.style.setProperty("top", `${event.clientY + 16}px`);
  });
}

// The lane below the pointer; -1 of a page with one, and above and below them.
function laneAt(event) {
  if (lanes.length === 1) return -1;
  const y = event.clientY - at("axis").getBoundingClientRect().top;
  return layout.findIndex(({ top, height }) => y >= top && y <= top + height);
}

// The shortest bar at a moment, or the nearest row.
function chooseAt(lane, time, slack) {
  const row = nearest(lane, time, slack);
  if (row >= 0) choose(row, { follow: true, reveal: isRun });
}

function nearest(lane, time, slack) {
  const among = lane < 0 ? shown : shown.filter((row) => laneOf(row) === lane);
  const inside = among.filter((row) => hasBar(row) && startOf(row) - slack <= time && endOf(row) + slack >= time);
  const length = (row) => endOf(row) - startOf(row);
  const distance = (row) => Math.abs(startOf(row) - time);
  const best = inside.length
    ? inside.reduce((a, b) => (length(b) < length(a) ? b : a))
    : among.length
      ? among.reduce((a, b) => (distance(b) < distance(a) ? b : a))
      : -1;
  return best;
}

// The whole part of the session that a row takes, with some time around it.
function zoomTo(row) {
  const around = Math.max((endOf(row) - startOf(row)) * 0.1, 1000);
  setRange(startOf(row) - around, endOf(row) + around);
}
