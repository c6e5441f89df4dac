// Live memory of each device on the time axis of the Gantt chart.

function makeMemory(canvas, schedule, view, gantt) {
  const { resolution, memory } = schedule;
  // With many devices, those without live memory are left out.
  const holds = (row) => memory.bytes.subarray(memory.offset[row], memory.offset[row + 1]).some((amount) => amount > 0);
  const shown = schedule.devices.map((_, row) => row).filter((row) => schedule.devices.length <= 16 || holds(row));
  const devices = shown.map((row) => schedule.devices[row]);
  const rowHeight = heightOfRows(devices.length, 52, 36, 22);
  const labelled = Math.ceil(14 / rowHeight);
  const height = devices.length * rowHeight + 26;
  // A row is scaled to the capacity if that is at most four times the used memory, else to the used memory.
  const tops = devices.map((device, place) => {
    let most = 1;
    for (let k = memory.offset[shown[place]]; k < memory.offset[shown[place] + 1]; k += 1) most = Math.max(most, memory.bytes[k]);
    const used = Math.max(most, device.counted ?? 0);
    return device.capacity !== null && device.capacity <= 4 * used ? Math.max(device.capacity, used) * 1.1 : used * 1.1;
  });
  const indexAt = (row, tick) => Math.max(firstAbove(memory.ticks, tick, memory.offset[row], memory.offset[row + 1]) - 1, memory.offset[row]);
  let width = 0;
  let left = 0;

  function draw() {
    let context;
    [context, width] = prepared(canvas, height);
    const colors = theme();
    left = labelWidth(width);
    drawTimeAxis(context, colors, view, left, width, height, resolution);
    devices.forEach((device, place) => {
      const floor = 24 + (place + 1) * rowHeight - 3;
      const room = rowHeight - Math.min(6, rowHeight / 4);
      const y = (bytes) => floor - (room * bytes) / tops[place];
      context.save();
      context.beginPath();
      context.rect(left, floor - room, width - left, room);
      context.clip();
      drawArea(context, shown[place], y, floor, device.color);
      const line = (bytes, color, dashes) => {
        context.strokeStyle = color;
        context.lineWidth = 1.25;
        context.setLineDash(dashes);
        context.beginPath();
        context.moveTo(left, Math.round(y(bytes)) + 0.5);
        context.lineTo(width, Math.round(y(bytes)) + 0.5);
        context.stroke();
        context.setLineDash([]);
      };
      if (device.counted !== null) line(device.counted, colors.muted, [2, 3]);
      if (device.capacity !== null) line(device.capacity, colors.limit, [6, 3]);
      context.restore();
      context.strokeStyle = colors.grid;
      context.strokeRect(left + 0.5, Math.round(floor) + 0.5, width - left, 0);
      if (place % labelled === 0) drawLabel(context, colors, device.name, left, floor - room / 2 - (rowHeight > 30 ? 7 : 0));
      if (rowHeight > 30) drawNote(context, colors, device, floor - room / 2 + 8);
    });
    if (gantt.state.time !== null) {
      const x = gantt.xOf(gantt.state.time);
      context.fillStyle = colors.muted;
      if (x >= left) context.fillRect(x, 24, 1, height);
    }
  }

  /** Draws one step per pixel: the largest live memory within it. */
  function drawArea(context, row, y, floor, color) {
    const last = memory.offset[row + 1];
    const perPixel = (view.to - view.from) / (width - left);
    context.beginPath();
    context.moveTo(left, floor);
    let k = indexAt(row, view.from);
    let level = memory.ticks[k] <= view.from ? memory.bytes[k] : 0;
    if (memory.ticks[k] <= view.from) k += 1;
    context.lineTo(left, y(level));
    while (k < last && memory.ticks[k] <= view.to) {
      const x = Math.floor((memory.ticks[k] - view.from) / perPixel);
      const next = Math.max(firstFrom(memory.ticks, view.from + (x + 1) * perPixel, k + 1, last), k + 1);
      let most = level;
      for (; k < next; k += 1) most = Math.max(most, memory.bytes[k]);
      context.lineTo(left + x, y(level));
      context.lineTo(left + x, y(most));
      level = memory.bytes[next - 1];
      context.lineTo(left + x + 1, y(most));
      context.lineTo(left + x + 1, y(level));
    }
    context.lineTo(width, y(level));
    context.lineTo(width, floor);
    context.fillStyle = color;
    context.globalAlpha = 0.75;
    context.fill();
    context.globalAlpha = 1;
  }

  /** Draws required memory and capacity below the name of a device. */
  function drawNote(context, colors, device, y) {
    const over = device.capacity !== null && device.memory > device.capacity;
    const limit = device.capacity === null ? "" : ` of ${sizeText(device.capacity)}`;
    context.font = `10.5px ${colors.font}`;
    context.textAlign = "left";
    context.fillStyle = over ? colors.limit : colors.muted;
    context.fillText(fitted(context, sizeText(device.memory) + limit, left - 12), 8, y);
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const place = Math.floor((y - 24) / rowHeight);
    if (place < 0 || place >= devices.length || x < left) return hideTip();
    const device = devices[place];
    const tick = view.from + ((x - left) / (width - left)) * (view.to - view.from);
    const k = indexAt(shown[place], tick);
    gantt.state.time = tick;
    view.redraw();
    const pairs = [["at", secondsText(tick * resolution, 7)], ["live", sizeText(memory.ticks[k] <= tick ? memory.bytes[k] : 0)]];
    if (device.counted !== null) pairs.push(["counted", sizeText(device.counted)]);
    pairs.push(["capacity", device.capacity === null ? "unlimited" : sizeText(device.capacity)]);
    showTip(event.clientX, event.clientY, element("strong", { text: oneLine(device.name) }), termList(pairs));
  });
  canvas.addEventListener("pointerleave", () => {
    gantt.state.time = null;
    hideTip();
    view.redraw();
  });
  view.add(draw);
}
