// The Gantt chart: one row per device, for 36,000 tasks and more. Tasks are sorted by device and start, so the visible
// tasks of a row are found by bisection. Narrow tasks are drawn together; the shade shows how busy the device is.

const COLUMN = 2; // pixels; narrower tasks are drawn together
const AXIS = 24;
const DRAG = 4; // pixels that the pointer must move before the chart pans

function makeGantt(canvas, schedule, view) {
  const { names, start, end, offset, resolution, ports } = schedule;
  const devices = schedule.rows ?? schedule.devices; // the rows of a pipeline are tracks of devices, those of parallel devices lanes
  const styleOf = (task, row) => (schedule.color ? schedule.colors[schedule.color[task]] : devices[row]);
  const rowHeight = heightOfRows(devices.length, 46, 30, 18) + (ports ? 12 : 0);
  const gap = devices.length <= 16 ? 6 : Math.min(2, rowHeight / 8);
  const labelled = Math.ceil(14 / rowHeight); // a name needs the height of this many rows
  const height = AXIS + devices.length * rowHeight + 6;
  const rowOf = new Uint16Array(names.length);
  const reach = new Float64Array(names.length); // latest end so far in the row: sorted even where tasks overlap
  const busy = new Float64Array(names.length + 1); // total ticks of all previous tasks
  devices.forEach((_, row) => {
    for (let task = offset[row]; task < offset[row + 1]; task += 1) {
      rowOf[task] = row;
      reach[task] = task > offset[row] ? Math.max(reach[task - 1], end[task]) : end[task];
    }
  });
  for (let task = 0; task < names.length; task += 1) busy[task + 1] = busy[task] + end[task] - start[task];
  const portReach = new Float64Array(schedule.transfer.end); // as `reach`, for all transfers
  for (let k = 1; k < portReach.length; k += 1) portReach[k] = Math.max(portReach[k], portReach[k - 1]);
  const steps = schedule.critical;
  const onPath = new Uint8Array(names.length);
  for (let k = 0; k < steps.task.length; k += 1) if (steps.kind[k] === 0) onPath[steps.task[k]] = 1;

  const blockOf = new Int32Array(names.length); // first task of the block of each task, in a pipeline
  const blocks = devices.map((_, row) => (schedule.run ? blocksOf(row) : []));

  /** Returns the blocks of a row of a pipeline as [first, last]: tasks of one run and colour that follow each other. */
  function blocksOf(row) {
    const found = [];
    for (let task = offset[row]; task < offset[row + 1]; task += 1) {
      const before = task - 1;
      const same = found.length && schedule.run[before] === schedule.run[task] && schedule.color[before] === schedule.color[task];
      if (same && start[task] === end[before]) found[found.length - 1][1] = task;
      else found.push([task, task]);
      blockOf[task] = found[found.length - 1][0];
    }
    return found.filter(([task]) => schedule.run[task]);
  }

  const state = { hovered: -1, selected: -1, critical: false, time: null };
  let width = 0;
  let left = 0;
  let colors = theme();
  const xOf = (tick) => left + ((tick - view.from) / (view.to - view.from)) * (width - left);
  const tickOf = (x) => view.from + ((x - left) / (width - left)) * (view.to - view.from);
  const topOf = (row) => AXIS + row * rowHeight + gap / 2;
  const boxHeight = rowHeight - gap - (ports ? 12 : 0);

  function draw() {
    let context;
    [context, width] = prepared(canvas, height);
    colors = theme();
    left = labelWidth(width);
    devices.forEach((device, row) => {
      context.fillStyle = colors.idle;
      context.fillRect(left, topOf(row), width - left, boxHeight);
    });
    drawTimeAxis(context, colors, view, left, width, height, resolution);
    context.save();
    context.beginPath();
    context.rect(left, AXIS, width - left, height - AXIS);
    context.clip();
    devices.forEach((device, row) => (device.unavailable ?? []).forEach((window) => drawWindow(context, row, window)));
    devices.forEach((_, row) => drawRow(context, row));
    if (ports) drawPorts(context);
    if (schedule.period) drawPeriods(context);
    if (state.critical) drawCritical(context);
    drawLinks(context);
    drawMarks(context);
    context.restore();
    devices.forEach((device, row) => {
      if (row % labelled === 0) drawLabel(context, colors, device.label ?? device.name, left, topOf(row) + boxHeight / 2);
    });
  }

  /** Leaves a gap in the row of a device where it is unavailable. */
  function drawWindow(context, row, [from, to]) {
    const [a, b] = [Math.max(xOf(from), left), Math.min(xOf(to), width)];
    if (b <= a) return;
    context.fillStyle = colors.paper;
    context.fillRect(a, topOf(row), b - a, boxHeight);
    context.font = `10.5px ${colors.font}`;
    if (boxHeight < 12 || b - a < 72) return;
    context.fillStyle = colors.ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(fitted(context, "unavailable", b - a - 8), (a + b) / 2, topOf(row) + boxHeight / 2);
    context.textAlign = "left";
  }

  function drawRow(context, row) {
    const [from, to, top] = [view.from, view.to, topOf(row)];
    const last = offset[row + 1];
    const perPixel = (to - from) / (width - left);
    const dim = state.critical ? 0.3 : 1;
    const labels = [];
    const clashes = []; // overlaps of tasks: only in schedules that the verifier rejects
    let pending = null; // adjacent columns that are equally busy
    const flush = () => {
      if (!pending) return;
      context.fillStyle = pending.color;
      context.globalAlpha = dim * (0.2 + 0.1 * pending.level);
      context.fillRect(pending.x, top, pending.width, boxHeight);
      pending = null;
    };
    let task = firstAbove(reach, from, offset[row], last);
    while (task < last && start[task] < to) {
      const { color } = styleOf(task, row);
      const x = xOf(start[task]);
      const wide = (end[task] - start[task]) / perPixel;
      if (wide >= COLUMN) {
        flush();
        const [a, b] = [Math.max(x, left - 2), Math.min(xOf(end[task]), width + 2)];
        if (b > a) {
          context.fillStyle = color;
          context.globalAlpha = dim;
          context.fillRect(a, top, Math.max(b - a - (wide > 4 ? 1 : 0.4), 1), boxHeight);
          const room = task + 1 < last ? Math.min(b, xOf(start[task + 1])) - a : b - a;
          if (room > 26 && boxHeight >= 12) labels.push([task, a, room]);
        }
        if (task > offset[row] && reach[task - 1] > start[task]) clashes.push([x, xOf(Math.min(reach[task - 1], end[task]))]);
        task += 1;
        continue;
      }
      const column = Math.floor((x - left) / COLUMN);
      const after = view.from + (column + 1) * COLUMN * perPixel;
      let next = Math.max(firstFrom(start, after, task + 1, last), task + 1);
      if (next > task + 1 && (end[next - 1] - start[next - 1]) / perPixel >= COLUMN) next -= 1; // wide enough for its own bar
      const share = Math.min((busy[next] - busy[task]) / (COLUMN * perPixel), 1);
      const level = Math.max(1, Math.ceil(share * 8));
      const at = left + column * COLUMN;
      if (pending && pending.level === level && pending.color === color && pending.x + pending.width === at) pending.width += COLUMN;
      else {
        flush();
        pending = { x: at, width: COLUMN, level, color };
      }
      task = next;
    }
    flush();
    context.globalAlpha = 1;
    for (const [a, b] of clashes) drawClash(context, Math.max(a, left), top, Math.min(b, width));
    context.globalAlpha = state.critical ? 0.75 : 1;
    context.font = `${boxHeight >= 24 ? 12 : 10.5}px ${colors.font}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const named = new Set(); // blocks with a name of a task
    for (const [task, x, room] of labels) {
      const label = fitted(context, names[task], room - 9);
      if (schedule.run && label.length < 6) continue; // the number of the run says more
      named.add(blockOf[task]);
      context.fillStyle = state.critical ? colors.ink : styleOf(task, row).text;
      context.fillText(label, x + 4, top + boxHeight / 2);
    }
    context.globalAlpha = 1;
    drawRuns(context, row, named);
  }

  /** Draws the number of the run on each block whose tasks are too narrow for names. */
  function drawRuns(context, row, named) {
    context.font = `bold ${boxHeight >= 24 ? 12 : 10.5}px ${colors.font}`;
    context.textAlign = "center";
    for (const [first, last] of blocks[row]) {
      if (named.has(first)) continue;
      const [a, b] = [Math.max(xOf(start[first]), left), Math.min(xOf(end[last]), width)];
      if (b - a < 22 || boxHeight < 12) continue;
      context.fillStyle = styleOf(first, row).text;
      const word = b - a < 56 ? "" : "run ";
      context.fillText(`${word}${schedule.run[first]}`, (a + b) / 2, topOf(row) + boxHeight / 2);
    }
    context.textAlign = "left";
  }

  /** Draws the boundaries between the periods of a pipeline. */
  function drawPeriods(context) {
    context.strokeStyle = colors.ink;
    context.lineWidth = 1;
    context.setLineDash([5, 3]);
    context.beginPath();
    for (let tick = 0; tick <= schedule.makespan; tick += schedule.period) {
      const x = Math.round(xOf(tick)) + 0.5;
      context.moveTo(x, AXIS);
      context.lineTo(x, height);
    }
    context.stroke();
    context.setLineDash([]);
  }

  /** Draws hatching where two tasks overlap. */
  function drawClash(context, from, top, to) {
    if (to <= from) return;
    context.save();
    context.beginPath();
    context.rect(from, top, Math.max(to - from, 2), boxHeight);
    context.clip();
    context.fillStyle = colors.paper;
    context.fillRect(from, top, Math.max(to - from, 2), boxHeight);
    context.strokeStyle = colors.limit;
    context.lineWidth = 2;
    context.beginPath();
    for (let x = Math.floor((from - boxHeight) / 6) * 6; x < to; x += 6) {
      context.moveTo(x, top + boxHeight);
      context.lineTo(x + boxHeight, top);
    }
    context.stroke();
    context.restore();
  }

  /** Draws transfers on ports: below each row those sent, then those received; each pixel is painted once. */
  function drawPorts(context) {
    const { transfer } = schedule;
    const painted = [new Float64Array(devices.length), new Float64Array(devices.length)]; // right end of what is painted, per port
    const last = firstAbove(transfer.start, view.to, 0, transfer.start.length);
    for (let k = firstAbove(portReach, view.from, 0, last); k < last; k += 1) {
      const [a, b] = [xOf(transfer.start[k]), xOf(transfer.end[k])];
      const [x, until] = b - a >= COLUMN ? [a, b - 0.4] : [Math.floor(a), Math.floor(a) + 1];
      context.fillStyle = devices[transfer.from[k]].color;
      [transfer.from[k], transfer.to[k]].forEach((row, side) => {
        if (until <= painted[side][row]) return;
        painted[side][row] = until;
        context.fillRect(x, topOf(row) + boxHeight + 1 + 5 * side, until - x, 4);
      });
    }
  }

  /** Draws the critical path: its tasks in full colour, transfers as solid lines, waits as dashed lines. */
  function drawCritical(context) {
    const low = firstAbove(steps.end, view.from, 0, steps.end.length);
    let [lastX, lastRow] = [-9, -1];
    for (let k = Math.max(low - 1, 0); k < steps.end.length && steps.start[k] <= view.to; k += 1) {
      const [a, b] = [xOf(steps.start[k]), xOf(steps.end[k])];
      const row = rowOf[steps.task[k]];
      if (steps.kind[k] === 0) {
        if (row === lastRow && b < lastX) continue; // this pixel is already drawn
        const [from, to] = [Math.max(a, left - 2), Math.min(b, width + 2)];
        context.fillStyle = devices[row].color;
        context.fillRect(from, topOf(row), Math.max(to - from - 0.5, 1), boxHeight);
        context.strokeStyle = colors.ink;
        context.lineWidth = 1.5;
        if (to - from > 3) context.strokeRect(from + 0.75, topOf(row) + 0.75, to - from - 2, boxHeight - 1.5);
        else {
          context.fillStyle = colors.ink;
          context.fillRect(from, topOf(row) - 1, Math.max(to - from, 1), 2);
        }
        if (to - from > 26 && boxHeight >= 12) {
          context.fillStyle = devices[row].text;
          context.font = `${boxHeight >= 24 ? 12 : 10.5}px ${colors.font}`;
          context.textAlign = "left";
          context.textBaseline = "middle";
          context.fillText(fitted(context, names[steps.task[k]], to - from - 10), from + 5, topOf(row) + boxHeight / 2);
        }
        [lastX, lastRow] = [Math.floor(b) + 1, row];
      } else {
        const target = k + 1 < steps.task.length && steps.kind[k] === 1 ? rowOf[steps.task[k + 1]] : row;
        const moves = steps.kind[k] === 1;
        context.strokeStyle = moves ? colors.ink : colors.limit;
        context.lineWidth = 1.75;
        context.setLineDash(moves ? [] : [3, 3]);
        context.beginPath();
        context.moveTo(a, topOf(row) + boxHeight / 2);
        context.lineTo(b, topOf(target) + boxHeight / 2);
        context.stroke();
        context.setLineDash([]);
        lastRow = -1;
      }
    }
  }

  /** Draws the edges of the hovered or selected task. */
  function drawLinks(context) {
    const task = state.hovered >= 0 ? state.hovered : state.selected;
    if (task < 0) return;
    const { into, out } = links(task);
    const middle = (row) => topOf(row) + boxHeight / 2;
    context.lineWidth = 1.5;
    for (const [edges, color] of [[into, colors.accent], [out, colors.ink]])
      for (const edge of edges.slice(0, 400)) {
        const [source, target] = [schedule.edge.source[edge], schedule.edge.target[edge]];
        const [a, b] = [xOf(end[source]), xOf(start[target])];
        const [ya, yb] = [middle(rowOf[source]), middle(rowOf[target])];
        const bend = Math.max(Math.abs(b - a) / 2, 14);
        context.strokeStyle = color;
        context.beginPath();
        context.moveTo(a, ya);
        if (rowOf[source] === rowOf[target]) context.quadraticCurveTo((a + b) / 2, ya - boxHeight * 0.9, b, yb);
        else context.bezierCurveTo(a + bend, ya, b - bend, yb, b, yb);
        context.stroke();
        context.fillStyle = color;
        context.beginPath();
        context.arc(b, yb, 2.5, 0, 7);
        context.fill();
      }
  }

  function drawMarks(context) {
    for (const [task, color] of [[state.hovered, colors.ink], [state.selected, colors.accent]]) {
      if (task < 0) continue;
      const [a, b] = [Math.max(xOf(start[task]), left - 4), Math.min(xOf(end[task]), width + 4)];
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.strokeRect(a - 1, topOf(rowOf[task]) - 1, Math.max(b - a, 2) + 1, boxHeight + 2);
    }
    if (state.time !== null) {
      context.strokeStyle = colors.muted;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(xOf(state.time), AXIS);
      context.lineTo(xOf(state.time), height);
      context.stroke();
    }
  }

  let incident = null;
  /** Returns the edges into and out of a task. */
  function links(task) {
    const { source, target } = schedule.edge;
    if (!incident) {
      const sorted = (key) => {
        const first = new Uint32Array(names.length + 1);
        for (const task of key) first[task + 1] += 1;
        for (let k = 0; k < names.length; k += 1) first[k + 1] += first[k];
        const place = first.slice();
        const edges = new Uint32Array(key.length);
        key.forEach((task, edge) => {
          edges[place[task]] = edge;
          place[task] += 1;
        });
        return (task) => Array.from(edges.subarray(first[task], first[task + 1]));
      };
      incident = { into: sorted(target), out: sorted(source) };
    }
    return { into: incident.into(task), out: incident.out(task) };
  }

  /** Returns the nearest task within three pixels of a point, -1 for none. */
  function taskAt(x, y) {
    const row = Math.floor((y - AXIS) / rowHeight);
    if (row < 0 || row >= devices.length || x < left) return -1;
    const tick = tickOf(x);
    const slack = (3 * (view.to - view.from)) / (width - left);
    let found = -1;
    let best = slack;
    const after = firstAbove(start, tick + slack, offset[row], offset[row + 1]);
    for (let task = after - 1; task >= offset[row] && task >= after - 200; task -= 1) {
      const away = Math.max(start[task] - tick, tick - end[task], 0);
      if (away < best || (away === best && found < 0)) [found, best] = [task, away];
      if (best === 0 || reach[task] < tick - slack) break;
    }
    return found;
  }

  /** Returns the facts of a task as [label, text] pairs. */
  function taskFacts(task) {
    const device = devices[rowOf[task]];
    const time = (tick) => secondsText(tick * resolution, 7);
    const pairs = [
      ["device", oneLine(device.name)],
      ["from, to", `${time(start[task])} – ${time(end[task])}`],
      ["duration", `${time(end[task] - start[task])} (${countText(end[task] - start[task])} ticks)`],
    ];
    for (const [term, amounts] of [["resident", schedule.resident], ["output", schedule.output], ["scratch", schedule.scratch],
      ["receives", schedule.received], ["sends", schedule.sent]])
      if (amounts[task]) pairs.push([term, sizeText(amounts[task])]);
    if (onPath[task]) pairs.push(["critical", "on the critical path"]);
    return pairs;
  }

  function select(task, show = true) {
    state.selected = task;
    byId("details").replaceChildren();
    if (task >= 0) {
      byId("details").append(element("strong", { text: oneLine(names[task], 300) }), termList(taskFacts(task)));
      if (show) view.reveal(start[task], end[task]);
    }
    view.redraw();
  }

  /** Selects the next (`step` 1) or previous (-1) task of the device; the first visible task if none is selected. */
  function walk(step) {
    if (state.selected < 0) return selectNear(0);
    const row = rowOf[state.selected];
    select(Math.min(Math.max(state.selected + step, offset[row]), offset[row + 1] - 1));
  }

  /** Selects a task at about the same time on the next device that has tasks. */
  function cross(step) {
    if (state.selected < 0) return selectNear(0);
    let row = rowOf[state.selected] + step;
    while (row >= 0 && row < devices.length && offset[row] === offset[row + 1]) row += step;
    if (row >= 0 && row < devices.length) selectNear(row, start[state.selected]);
  }

  function selectNear(row, tick = Math.max(view.from, 0)) {
    while (row < devices.length - 1 && offset[row] === offset[row + 1]) row += 1;
    if (offset[row] < offset[row + 1]) select(Math.min(firstAbove(reach, tick, offset[row], offset[row + 1]), offset[row + 1] - 1));
  }

  function setCritical(on) {
    state.critical = on;
    byId("show-critical").setAttribute("aria-pressed", String(on));
    view.redraw();
  }

  function hover(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const before = state.hovered;
    state.hovered = taskAt(x, y);
    if (state.hovered >= 0)
      showTip(event.clientX, event.clientY, element("strong", { text: oneLine(names[state.hovered], 300) }), termList(taskFacts(state.hovered)));
    else hideTip();
    if (before !== state.hovered) view.redraw();
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, from: view.from, to: view.to, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return hover(event);
    if (Math.abs(event.clientX - drag.x) > DRAG) drag.moved = true;
    if (!drag.moved) return;
    canvas.classList.add("dragging");
    hideTip();
    const by = ((drag.x - event.clientX) / (width - left)) * (drag.to - drag.from);
    view.show(drag.from + by, drag.to + by);
  });
  const drop = (event) => {
    canvas.classList.remove("dragging");
    if (drag && !drag.moved && event.type === "pointerup") {
      const box = canvas.getBoundingClientRect();
      select(taskAt(event.clientX - box.left, event.clientY - box.top), false);
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", drop);
  canvas.addEventListener("pointerleave", () => {
    state.hovered = -1;
    hideTip();
    view.redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    // The wheel scrolls the page unless the chart has the focus or Ctrl is held.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return view.pan((event.deltaX || event.deltaY) / (width - left));
    const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    view.zoom(Math.exp(Math.min(Math.max(pixels, -300), 300) * 0.0022), tickOf(event.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });
  const keys = {
    "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), 0: () => view.all(), Home: () => view.all(),
    ArrowLeft: () => view.pan(-0.2), ArrowRight: () => view.pan(0.2), PageUp: () => view.pan(-0.9), PageDown: () => view.pan(0.9),
    ArrowUp: () => cross(-1), ArrowDown: () => cross(1), n: () => walk(1), p: () => walk(-1),
    c: () => setCritical(!state.critical), Escape: () => select(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  view.add(draw);
  return { state, select, setCritical, xOf, taskAt, middleOf: (row) => topOf(row) + boxHeight / 2 };
}
