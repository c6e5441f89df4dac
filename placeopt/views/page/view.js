// The time interval that all charts show.

/** Makes a view of [0, length]; a change redraws all charts once, in the next animation frame. */
function makeView(length) {
  const margin = length * 0.01;
  const [first, last] = [-margin, length + margin];
  const least = Math.max((last - first) * 1e-7, Math.min(4, last - first));
  const charts = [];
  let waiting = false;
  const view = {
    from: first, to: last, first, last, frame: 0, frames: 0,
    /** Registers the function that draws a chart. */
    add: (draw) => charts.push(draw),
    draw() {
      const begun = performance.now();
      for (const draw of charts) draw();
      view.frame = performance.now() - begun; // milliseconds that the last frame took
      view.frames += 1;
    },
    redraw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        view.draw();
      });
    },
    show(from, to) {
      const span = Math.min(Math.max(to - from, least), last - first);
      view.from = Math.min(Math.max(from, first), last - span);
      view.to = view.from + span;
      view.redraw();
    },
    /** Zooms by a factor around the time `at`. */
    zoom(factor, at = (view.from + view.to) / 2) {
      const span = Math.min(Math.max((view.to - view.from) * factor, least), last - first);
      const share = (at - view.from) / (view.to - view.from);
      view.show(at - share * span, at + (1 - share) * span);
    },
    /** Pans by a share of the visible interval. */
    pan(share) {
      const by = share * (view.to - view.from);
      view.show(view.from + by, view.to + by);
    },
    all: () => view.show(first, last),
    /** Pans to [from, to] if it is not visible, or zooms to it if it is too small or too large to see. */
    reveal(from, to) {
      const span = view.to - view.from;
      if (to - from > span || to - from < span * 1e-3) {
        const wide = to - from > span ? (to - from) * 1.2 : Math.max((to - from) * 12, span / 20);
        view.show((from + to) / 2 - wide / 2, (from + to) / 2 + wide / 2);
      } else if (from < view.from || to > view.to) view.show((from + to - span) / 2, (from + to + span) / 2);
      else view.redraw();
    },
  };
  return view;
}

/** Returns the height of a row: smaller for more rows, so that a browser can draw the whole canvas. */
function heightOfRows(count, few, some, many) {
  if (count <= 16) return count <= 6 ? few : some;
  return Math.max(2, Math.min(many, Math.floor(9000 / count)));
}

/** Returns the width of the column of device names in a chart. */
const labelWidth = (width) => Math.round(Math.min(150, Math.max(64, width * 0.14)));

/** Draws a dashed line across a row at a height. */
function drawLevel(context, left, width, y, color, dashes) {
  context.strokeStyle = color;
  context.lineWidth = 1.25;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(left, Math.round(y) + 0.5);
  context.lineTo(width, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
}

/** Draws the time axis: labels along the top of a chart, and grid lines down to `bottom`. */
function drawTimeAxis(context, colors, view, left, width, bottom, resolution) {
  const span = view.to - view.from;
  const pixels = width - left;
  const step = niceStep((span * resolution * (pixels < 500 ? 90 : 120)) / pixels) / resolution;
  const digits = Math.max(3, Math.ceil(Math.log10(Math.max(Math.abs(view.from), Math.abs(view.to)) / step)) + 1);
  context.font = `11px ${colors.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k += 1) {
    const x = Math.round(left + ((k * step - view.from) / span) * pixels) + 0.5;
    context.strokeStyle = colors.grid;
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, bottom);
    context.stroke();
    context.fillStyle = colors.muted;
    const text = secondsText(k * step * resolution, digits);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x, left + half), width - half - 2), 10);
  }
}

/** Draws the name of a row, shortened to `room` pixels. */
function drawLabel(context, colors, name, room, y) {
  context.font = `12px ${colors.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = colors.ink;
  context.fillText(fitted(context, name, room - 14), 8, y);
}

const widths = new Map(); // of characters by font; measuring each text would take most of a frame

/** Shortens a text to `room` pixels. */
function fitted(context, text, room) {
  let known = widths.get(context.font);
  if (!known) widths.set(context.font, (known = new Map()));
  const widthOf = (character) => {
    let width = known.get(character);
    if (width === undefined) known.set(character, (width = context.measureText(character).width));
    return width;
  };
  const shown = Array.from(oneLine(text, Math.ceil(room / 2) + 1));
  const dots = widthOf("…");
  let used = 0;
  let keep = 0; // characters that leave room for dots
  for (const [place, character] of shown.entries()) {
    used += widthOf(character);
    if (used > room) return keep ? `${shown.slice(0, keep).join("")}…` : "";
    if (used + dots <= room) keep = place + 1;
  }
  return shown.join("");
}
