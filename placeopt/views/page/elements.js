// Elements of the page. Texts only ever become text nodes, so no name can become markup.

const byId = (id) => document.getElementById(id);

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A list of terms and what they say. */
function termList(pairs) {
  const list = element("dl");
  for (const [term, said] of pairs)
    list.append(element("div", {}, element("dt", { text: term }), element("dd", { text: said })));
  return list;
}

/** Colours of the page as it is shown now: light, dark, or on paper. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: color("ink"), muted: color("muted"), grid: color("grid"), idle: color("idle"), paper: color("paper"),
    surface: color("surface"), limit: color("limit"), accent: color("accent"), line: color("line"),
    font: getComputedStyle(document.body).fontFamily };
}

/** A drawing context in CSS pixels on a canvas that is as wide as its frame and `height` high. */
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

/** Shows the tooltip beside a point of the window. */
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

/** Entries of a legend: a line or a box of colour, and its label. */
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
