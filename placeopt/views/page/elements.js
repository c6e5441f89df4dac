// Elements of the page. Texts always become text nodes, so no name can become markup.

const byId = (id) => document.getElementById(id);

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Makes a list of [label, text] pairs. */
function termList(pairs) {
  const rows = pairs.map(([term, text]) => element("div", {}, element("dt", { text: term }), element("dd", { text })));
  return element("dl", {}, ...rows);
}

/** Returns the colours of the current theme: light, dark, or print. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: color("ink"), muted: color("muted"), grid: color("grid"), idle: color("idle"), paper: color("paper"),
    surface: color("surface"), limit: color("limit"), accent: color("accent"), line: color("line"),
    font: getComputedStyle(document.body).fontFamily };
}

/** Returns a drawing context in CSS pixels, on a canvas as wide as its frame and `height` high, and the width. */
function prepared(canvas, height) {
  const width = Math.max(1, canvas.clientWidth || canvas.parentElement.clientWidth);
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(w / width, 0, 0, h / height, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

/** Shows the tooltip next to a point of the window. */
function showTip(x, y, ...children) {
  const tip = byId("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
  const top = y + 16 + height > innerHeight ? y - 12 - height : y + 16;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

/** Fills a legend: each entry is a line or a box of colour, and a label. */
function fillLegend(list, entries) {
  list.replaceChildren(...entries.map(({ label, colors, dashes }) => {
    const mark = element("canvas", { width: 48, height: 24, "aria-hidden": "true" });
    mark.style.width = "24px";
    mark.style.height = "12px";
    const context = mark.getContext("2d");
    context.scale(2, 2);
    if (dashes === undefined)
      colors.forEach((color, k) => {
        context.fillStyle = color;
        context.fillRect((24 * k) / colors.length, 0, 24 / colors.length + 0.5, 12);
      });
    else {
      context.strokeStyle = colors[0];
      context.lineWidth = 2;
      context.setLineDash(dashes);
      context.beginPath();
      context.moveTo(0, 6);
      context.lineTo(24, 6);
      context.stroke();
    }
    return element("li", {}, mark, element("span", { text: oneLine(label, 80) }));
  }));
}
