// Line charts: convergence and performance profiles.

/** Returns about `count` evenly spaced marks from `least` to `most`. */
function evenMarks(least, most, count) {
  const step = niceStep((most - least) / Math.max(2, Math.floor(count)));
  const first = Math.ceil(least / step);
  return Array.from({ length: Math.max(0, Math.floor((most * 1.0001) / step) - first + 1) }, (_, k) => (first + k) * step);
}

/** Returns round ratios from `least` to `most`. */
function ratioMarks(least, most) {
  const close = most / least < 1.2 ? [1, 1.01, 1.02, 1.05, 1.1, 1.15] : [1, 1.1, 1.2, 1.5];
  const powers = Array.from({ length: 12 }, (_, power) => [2, 3, 5, 10].map((digit) => digit * 10 ** power)).flat();
  return [...close, ...powers].filter((ratio) => ratio >= least && ratio <= most);
}

/** Draws series of [x, y] points as steps; registers and returns the function that draws them. */
function makeLines(canvas, add, chart) {
  const height = 260;
  const pad = { left: 78, right: 14, top: 12, bottom: 34 };
  let places = null;

  function draw() {
    const { series, xText, yText, xTitle } = chart();
    const [context, width] = prepared(canvas, height);
    const colors = theme();
    const all = series.flatMap((line) => line.points);
    places = null;
    if (!all.length) return;
    const ys = all.map(([, y]) => y);
    let [low, high] = [Math.min(...ys), Math.max(...ys)];
    const spread = high - low || Math.abs(high) || 1;
    [low, high] = [low - spread * 0.06, high + spread * 0.06];
    const least = chart().xFrom ?? 0;
    const most = Math.max(...all.map(([x]) => x), least + 1e-9);
    const scaled = chart().xLog ? Math.log : Number;
    const x = (value) => pad.left + ((scaled(value) - scaled(least)) / (scaled(most) - scaled(least))) * (width - pad.left - pad.right);
    const y = (value) => height - pad.bottom - ((value - low) / (high - low)) * (height - pad.top - pad.bottom);
    context.font = `11px ${colors.font}`;
    context.lineWidth = 1;
    const step = niceStep((high - low) / 7);
    for (let k = Math.ceil(low / step); k * step <= high; k += 1) {
      const at = Math.round(y(k * step)) + 0.5;
      context.strokeStyle = colors.grid;
      context.beginPath();
      context.moveTo(pad.left, at);
      context.lineTo(width - pad.right, at);
      context.stroke();
      context.fillStyle = colors.muted;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(yText(k * step), pad.left - 8, at);
    }
    context.textAlign = "center";
    context.fillStyle = colors.muted;
    let free = 0;
    for (const value of chart().xLog ? ratioMarks(least, most) : evenMarks(least, most, (width - pad.left) / 110)) {
      const at = Math.min(x(value), width - 24);
      const half = context.measureText(xText(value)).width / 2 + 6;
      if (at - half < free) continue;
      context.fillText(xText(value), at, height - pad.bottom + 12);
      free = at + half;
    }
    context.fillText(xTitle, (pad.left + width - pad.right) / 2, height - 8);
    for (const { points, color, dashes } of [...series].reverse()) { // the first one on top
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.setLineDash(dashes);
      context.beginPath();
      points.forEach(([px, py], k) => {
        if (k) context.lineTo(x(px), y(points[k - 1][1]));
        context[k ? "lineTo" : "moveTo"](x(px), y(py));
      });
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = color;
      const few = points.length <= 60 ? points : points.slice(-1);
      for (const [px, py] of few) {
        context.beginPath();
        context.arc(x(px), y(py), 2.5, 0, 7);
        context.fill();
      }
    }
    places = { width, at: (share) => (chart().xLog ? least * (most / least) ** share : least + share * (most - least)) };
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!places) return;
    const { series, xText, yText } = chart();
    const inside = event.clientX - canvas.getBoundingClientRect().left - pad.left;
    const share = inside / (places.width - pad.left - pad.right);
    if (share < 0 || share > 1) return hideTip();
    const at = places.at(share);
    const pairs = series.map(({ label, points }) => [oneLine(label, 60), points.findLast(([x]) => x <= at)]);
    showTip(event.clientX, event.clientY, element("strong", { text: xText(at) }), termList(pairs.filter(([, point]) => point).map(([label, [, y]]) => [label, yText(y)])));
  });
  canvas.addEventListener("pointerleave", hideTip);
  add(draw);
  return draw;
}
