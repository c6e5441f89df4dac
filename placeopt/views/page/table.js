// Tables that sort by a click on a header: text alphabetically, numbers by value, missing values last.

/** columns: {title, value(row), text(row), word, long, mark(row), color(row)}; returns a function that filters rows. */
function makeTable(frame, columns, rows, label) {
  const body = element("tbody");
  const headers = columns.map((column) => {
    const button = element("button", { type: "button", text: column.title });
    const header = element("th", { scope: "col", "aria-sort": "none", class: column.word ? "word" : "" }, button);
    button.addEventListener("click", () => sort(column, header));
    return header;
  });
  const lines = rows.map((row, place) => {
    const line = element("tr");
    for (const column of columns) {
      const text = column.text(row);
      const kind = [column.word ? "word" : "", column.long ? "long" : "", column.mark?.(row) ?? ""].join(" ").trim();
      const cell = element("td", kind ? { class: kind } : {});
      if (column.color) {
        const swatch = element("span", { class: "swatch" });
        swatch.style.background = column.color(row);
        cell.append(swatch);
      }
      if (column.word && text.length > 24) cell.append(element("span", { class: column.long ? "clamp" : "clip", text: oneLine(text, 400), title: oneLine(text, 1000) }));
      else cell.append(oneLine(text, 400));
      line.append(cell);
    }
    return { row, line, place, words: columns.map((column) => column.text(row)).join("\n").toLowerCase() };
  });

  function sort(column, header) {
    const falling = header.getAttribute("aria-sort") === "ascending";
    for (const other of headers) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const missing = (value) => value === null || value === undefined || Number.isNaN(value);
    lines.sort((a, b) => {
      const [x, y] = [column.value(a.row), column.value(b.row)];
      if (missing(x) || missing(y)) return missing(x) - missing(y) || a.place - b.place;
      const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return (falling ? -order : order) || a.place - b.place;
    });
    body.append(...lines.map(({ line }) => line));
  }

  body.append(...lines.map(({ line }) => line));
  frame.replaceChildren(element("table", { "aria-label": label }, element("thead", {}, element("tr", {}, ...headers)), body));
  /** Shows only the rows that contain the text; returns their number. */
  const filter = (text) => {
    const wanted = text.trim().toLowerCase();
    let shown = 0;
    for (const { line, words } of lines) {
      line.hidden = !words.includes(wanted);
      shown += !line.hidden;
    }
    return shown;
  };
  return { filter };
}
