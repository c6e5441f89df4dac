// Where buffers lie in the memory of each device, on the time axis of the Gantt chart.

const BUFFERS = ["resident", "output", "scratch"];
const SHADES = [0.35, 0.85, 0.6]; // opacity of each kind

/** Draws a row for each device that holds buffers; `boxes` has them by device. Returns the entries of a legend. */
function makeAddresses(canvas, schedule, boxes, view, gantt) {
  const { devices, names, resolution } = schedule;
  const shown = devices.map((_, row) => row).filter((row) => boxes.offset[row] < boxes.offset[row + 1]);
  const rowHeight = Math.max(60, Math.min(220, Math.floor(9000 / shown.length)));
  const height = shown.length * rowHeight + 26;
  const heights = shown.map((row) => boxes.high.subarray(boxes.offset[row], boxes.offset[row + 1]).reduce((most, high) => Math.max(most, high), 1));
  const tops = shown.map((row, place) => {
    const capacity = devices[row].capacity;
    return 1.05 * (capacity !== null && capacity <= 4 * heights[place] ? Math.max(capacity, heights[place]) : heights[place]);
  });
  let width = 0;
  let left = 0;
  const floorOf = (place) => 24 + (place + 1) * rowHeight - 3;
  const room = rowHeight - 6;
  const xOf = (tick) => left + ((tick - view.from) / (view.to - view.from)) * (width - left);

  function draw() {
    let context;
    [context, width] = prepared(canvas, height);
    const colors = theme();
    left = labelWidth(width);
    drawTimeAxis(context, colors, view, left, width, height, resolution);
    shown.forEach((row, place) => {
      const device = devices[row];
      const floor = floorOf(place);
      const y = (bytes) => floor - (room * bytes) / tops[place];
      context.save();
      context.beginPath();
      context.rect(left, floor - room, width - left, room);
      context.clip();
      for (let k = boxes.offset[row]; k < boxes.offset[row + 1]; k += 1) {
        if (boxes.to[k] <= view.from || boxes.from[k] >= view.to) continue;
        const [x, end] = [Math.max(xOf(boxes.from[k]), left), Math.min(xOf(boxes.to[k]), width)];
        const [top, bottom] = [y(boxes.high[k]), y(boxes.low[k])];
        context.globalAlpha = SHADES[boxes.kind[k]];
        context.fillStyle = device.color;
        context.fillRect(x, top, Math.max(end - x, 0.5), Math.max(bottom - top, 0.5));
        context.globalAlpha = 1;
        if (end - x < 3 || bottom - top < 3) continue;
        context.strokeStyle = colors.paper;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, top + 0.5, end - x - 1, bottom - top - 1);
        if (end - x < 30 || bottom - top < 12) continue;
        context.font = `10.5px ${colors.font}`;
        context.textAlign = "center";
        context.fillStyle = boxes.kind[k] === 1 ? device.text : colors.ink;
        context.fillText(fitted(context, names[boxes.task[k]], end - x - 6), (x + end) / 2, (top + bottom) / 2);
      }
      if (device.capacity !== null) drawLevel(context, left, width, y(device.capacity), colors.limit, [6, 3]);
      context.restore();
      context.strokeStyle = colors.grid;
      context.strokeRect(left + 0.5, Math.round(floor) + 0.5, width - left, 0);
      drawLabel(context, colors, device.name, left, floor - room / 2 - 7);
      context.font = `10.5px ${colors.font}`;
      context.fillStyle = device.capacity !== null && heights[place] > device.capacity ? colors.limit : colors.muted;
      const limit = device.capacity === null ? "" : ` of ${sizeText(device.capacity)}`;
      context.fillText(fitted(context, sizeText(heights[place]) + limit, left - 12), 8, floor - room / 2 + 8);
    });
    if (gantt.state.time !== null) {
      context.fillStyle = colors.muted;
      if (gantt.xOf(gantt.state.time) >= left) context.fillRect(gantt.xOf(gantt.state.time), 24, 1, height);
    }
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const place = Math.floor((y - 24) / rowHeight);
    if (place < 0 || place >= shown.length || x < left) return hideTip();
    const row = shown[place];
    const tick = view.from + ((x - left) / (width - left)) * (view.to - view.from);
    const bytes = ((floorOf(place) - y) / room) * tops[place];
    gantt.state.time = tick;
    view.redraw();
    for (let k = boxes.offset[row]; k < boxes.offset[row + 1]; k += 1) {
      if (tick < boxes.from[k] || tick >= boxes.to[k] || bytes < boxes.low[k] || bytes >= boxes.high[k]) continue;
      const pairs = [
        ["buffer", `${BUFFERS[boxes.kind[k]]}, ${sizeText(boxes.high[k] - boxes.low[k])}`],
        ["bytes", `${countText(boxes.low[k])} – ${countText(boxes.high[k])}`],
        ["live", `${secondsText(boxes.from[k] * resolution, 7)} – ${secondsText(boxes.to[k] * resolution, 7)}`],
      ];
      return showTip(event.clientX, event.clientY, element("strong", { text: oneLine(names[boxes.task[k]]) }), termList(pairs));
    }
    return hideTip();
  });
  canvas.addEventListener("pointerleave", () => {
    gantt.state.time = null;
    hideTip();
    view.redraw();
  });
  view.add(draw);
  const color = devices[shown[0]].color;
  const shade = (opacity) => `${color}${Math.round(255 * opacity).toString(16).padStart(2, "0")}`;
  return BUFFERS.map((label, kind) => ({ label, colors: [shade(SHADES[kind])] }));
}
