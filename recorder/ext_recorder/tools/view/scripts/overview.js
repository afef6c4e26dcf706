// The time axis: all calls as bars that overlap, lines and notifications as marks; a dragged range zooms and filters.

const TOP = 16; // px of the labels
const BOTTOM = 8; // px of the marks
const LANES = { most: 14, height: 12 }; // bars that overlap stand below each other; px of one at most

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
    line: of("line"),
    soft: of("soft"),
    mark: of("soft"),
  };
}

function colourOf(row, paint) {
  if (statusOf(row) !== "ok") return paint[statusOf(row)] ?? paint.mark;
  if (kindOf(row) === "http") return paint.http;
  return textOf("stream", row) === "out" ? paint.child : paint.ok;
}

// All but the chosen row, which changes more often.
const ground = document.createElement("canvas");

function drawOverview() {
  const { clientWidth: width, clientHeight: height } = at("axis");
  if (!width) return;
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
  const { bars, points, lanes } = layBars(axis, width);
  const laneHeight = Math.min(LANES.height, (height - TOP - BOTTOM) / lanes);
  for (const [x, length, lane, row] of bars) {
    draw.fillStyle = colourOf(row, paint);
    draw.fillRect(x, TOP + lane * laneHeight, length, Math.max(1, laneHeight - 1));
  }
  for (const [x, row] of points) {
    draw.fillStyle = colourOf(row, paint);
    draw.fillRect(x, height - BOTTOM + (kindOf(row) === "stderr" ? 3 : 0), 1, 5);
  }
  drawChosen();
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
  draw.strokeRect(x - 1, TOP - 2, Math.max(3, axis.x(endOf(state.row)) * width - x + 2), height - TOP);
}

function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const draw = canvas.getContext("2d");
  draw.scale(ratio, ratio);
  return draw;
}

// Places the bars of the rows that are shown: [x, length, lane, row]; and the marks: [x, row].
function layBars(axis, width) {
  const [bars, points, free] = [[], [], []]; // free: where each lane ends so far
  for (const row of shown.slice().sort((one, other) => startOf(one) - startOf(other))) {
    const [x, end] = [axis.x(startOf(row)) * width, axis.x(endOf(row)) * width];
    if (end < 0 || x > width) continue;
    if (!hasBar(row)) {
      points.push([x, row]);
      continue;
    }
    // With more at once than there are lanes, bars cover each other.
    let lane = free.findIndex((until) => until <= x);
    if (lane < 0) lane = free.length < LANES.most ? free.length : free.indexOf(Math.min(...free));
    const length = Math.max(1.5, end - x);
    free[lane] = x + length + 0.5;
    bars.push([x, length, lane, row]);
  }
  return { bars, points, lanes: Math.max(1, free.length) };
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
    else chooseAt(axis.time(from), 4 * (axis.time(Math.min(1, from + 1 / canvas.clientWidth)) - axis.time(from)));
  });
  canvas.addEventListener("dblclick", () => setRange(0, sessionEnd));
}

// The shortest bar at a moment, or the nearest row.
function chooseAt(time, slack) {
  const inside = shown.filter((row) => hasBar(row) && startOf(row) - slack <= time && endOf(row) + slack >= time);
  const length = (row) => endOf(row) - startOf(row);
  const distance = (row) => Math.abs(startOf(row) - time);
  const best = inside.length
    ? inside.reduce((a, b) => (length(b) < length(a) ? b : a))
    : shown.length
      ? shown.reduce((a, b) => (distance(b) < distance(a) ? b : a))
      : -1;
  if (best >= 0) choose(best, { follow: true });
}

// The whole part of the session that a row takes, with some time around it.
function zoomTo(row) {
  const around = Math.max((endOf(row) - startOf(row)) * 0.1, 1000);
  setRange(startOf(row) - around, endOf(row) + around);
}
