// Amounts on the time axis of the Gantt chart: live memory of each device, what is in use of each resource.

/** Draws a row for each of `all`; `levels` has their steps, `text` formats an amount of a row, `word` says what it is. */
function makeAmounts(canvas, all, levels, text, word, resolution, view, gantt) {
  // Of many rows, those without an amount are left out.
  const holds = (row) => levels.amounts.subarray(levels.offset[row], levels.offset[row + 1]).some((amount) => amount > 0);
  const shown = all.map((_, row) => row).filter((row) => all.length <= 16 || holds(row));
  const devices = shown.map((row) => all[row]);
  const rowHeight = heightOfRows(devices.length, 52, 36, 22);
  const labelled = Math.ceil(14 / rowHeight);
  const height = devices.length * rowHeight + 26;
  // A row is scaled to the capacity if that is at most four times what is used, else to what is used.
  const tops = devices.map((device, place) => {
    let most = 1;
    for (let k = levels.offset[shown[place]]; k < levels.offset[shown[place] + 1]; k += 1) most = Math.max(most, levels.amounts[k]);
    const used = Math.max(most, device.counted ?? 0);
    return device.capacity !== null && device.capacity <= 4 * used ? Math.max(device.capacity, used) * 1.1 : used * 1.1;
  });
  const indexAt = (row, tick) => Math.max(firstAbove(levels.ticks, tick, levels.offset[row], levels.offset[row + 1]) - 1, levels.offset[row]);
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
      if (device.counted !== null) drawLevel(context, left, width, y(device.counted), colors.muted, [2, 3]);
      if (device.capacity !== null) drawLevel(context, left, width, y(device.capacity), colors.limit, [6, 3]);
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

  /** Draws one step per pixel: the largest amount within it. */
  function drawArea(context, row, y, floor, color) {
    const last = levels.offset[row + 1];
    const perPixel = (view.to - view.from) / (width - left);
    context.beginPath();
    context.moveTo(left, floor);
    let k = indexAt(row, view.from);
    let level = levels.ticks[k] <= view.from ? levels.amounts[k] : 0;
    if (levels.ticks[k] <= view.from) k += 1;
    context.lineTo(left, y(level));
    while (k < last && levels.ticks[k] <= view.to) {
      const x = Math.floor((levels.ticks[k] - view.from) / perPixel);
      const next = Math.max(firstFrom(levels.ticks, view.from + (x + 1) * perPixel, k + 1, last), k + 1);
      let most = level;
      for (; k < next; k += 1) most = Math.max(most, levels.amounts[k]);
      context.lineTo(left + x, y(level));
      context.lineTo(left + x, y(most));
      level = levels.amounts[next - 1];
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

  /** Draws what is used, and the capacity, below the name of a row. */
  function drawNote(context, colors, device, y) {
    const over = device.capacity !== null && device.used > device.capacity;
    const limit = device.capacity === null ? "" : ` of ${text(device.capacity, device)}`;
    context.font = `10.5px ${colors.font}`;
    context.textAlign = "left";
    context.fillStyle = over ? colors.limit : colors.muted;
    context.fillText(fitted(context, text(device.used, device) + limit, left - 12), 8, y);
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
    const pairs = [["at", secondsText(tick * resolution, 7)], [word, text(levels.ticks[k] <= tick ? levels.amounts[k] : 0, device)]];
    if (device.counted !== null) pairs.push(["counted", text(device.counted, device)]);
    pairs.push(["capacity", device.capacity === null ? "unlimited" : text(device.capacity, device)]);
    showTip(event.clientX, event.clientY, element("strong", { text: oneLine(device.name) }), termList(pairs));
  });
  canvas.addEventListener("pointerleave", () => {
    gantt.state.time = null;
    hideTip();
    view.redraw();
  });
  view.add(draw);
}
