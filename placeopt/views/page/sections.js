// The sections of the page, each built from its data. `charts` redraws what depends on the theme and the width.

const charts = [];
const reveal = (id) => (byId(id).hidden = false);

function showSummary({ subtitle, status, facts, message, violations }) {
  byId("subtitle").textContent = subtitle;
  if (status) {
    byId("status").textContent = status.text;
    byId("status").className = status.kind;
    reveal("status");
  }
  if (!facts.length && !message && !violations.length) return;
  reveal("summary");
  byId("facts").append(...facts.map(([term, said, small]) => {
    const value = element("dd", { text: said });
    if (small) value.append(element("small", { text: small }));
    return element("div", {}, element("dt", { text: term }), value);
  }));
  if (message) {
    byId("message").textContent = message;
    reveal("message");
  }
  if (violations.length) {
    reveal("violations");
    byId("violations").querySelector("summary").textContent = `${countText(violations.length)} violation${violations.length === 1 ? "" : "s"}`;
    byId("violations").querySelector("ol").append(...violations.slice(0, 1000).map(({ rule, message }) => element("li", { text: `${rule}: ${oneLine(message, 600)}` })));
  }
}

function showSchedule(schedule, arrays) {
  reveal("schedule");
  for (const name of ["start", "end", "offset", "resident", "output", "scratch", "sent", "received"]) schedule[name] = arrays[name];
  schedule.edge = { source: arrays.edge_source, target: arrays.edge_target };
  schedule.transfer = { from: arrays.transfer_from, to: arrays.transfer_to, start: arrays.transfer_start, end: arrays.transfer_end };
  schedule.critical = { kind: arrays.critical_kind, task: arrays.critical_task, start: arrays.critical_start, end: arrays.critical_end };
  schedule.color = arrays.color;
  schedule.run = arrays.run;
  if (schedule.note) {
    byId("schedule-note").textContent = schedule.note;
    reveal("schedule-note");
  }
  const view = makeView(Math.max(schedule.makespan, 1));
  const gantt = makeGantt(byId("gantt"), schedule, view);
  if (arrays.memory_bytes.some((amount) => amount > 0)) {
    reveal("memory-frame");
    const levels = { offset: arrays.memory_offset, ticks: arrays.memory_ticks, amounts: arrays.memory_bytes };
    const rows = schedule.devices.map((device) => ({ ...device, used: device.memory }));
    makeAmounts(byId("memory"), rows, levels, sizeText, "live", schedule.resolution, view, gantt);
  } else schedule.memory_note = schedule.stages ? schedule.memory_note : "no task states a memory requirement";
  if (arrays.box_task?.length) {
    reveal("address-part");
    const boxes = { offset: arrays.box_offset, task: arrays.box_task, kind: arrays.box_kind, from: arrays.box_from, to: arrays.box_to, low: arrays.box_low, high: arrays.box_high };
    fillLegend(byId("address-legend"), makeAddresses(byId("addresses"), schedule, boxes, view, gantt));
  }
  if (schedule.resources?.length) {
    reveal("resource-part");
    const levels = { offset: arrays.resource_offset, ticks: arrays.resource_ticks, amounts: arrays.resource_amounts };
    makeAmounts(byId("resources"), schedule.resources, levels, (amount, { unit }) => short(amount * unit, 8), "in use", schedule.resolution, view, gantt);
  }
  view.add(() => {
    const text = (tick) => secondsText(Math.max(tick, 0) * schedule.resolution, 4);
    byId("range").textContent = `${text(view.from)} – ${text(Math.min(view.to, schedule.makespan))} of ${text(schedule.makespan)}`;
  });
  charts.push(view.draw);
  fillLegend(byId("legend"), schedule.legend);
  byId("zoom-in").addEventListener("click", () => view.zoom(0.5));
  byId("zoom-out").addEventListener("click", () => view.zoom(2));
  byId("zoom-all").addEventListener("click", view.all);
  byId("show-critical").addEventListener("click", () => gantt.setCritical(!gantt.state.critical));
  byId("show-critical").hidden = !schedule.critical.task.length;
  byId("critical-hint").hidden = !schedule.critical.task.length;
  byId("port-hint").hidden = !schedule.ports;
  byId("memory-note").textContent = schedule.memory_note;

  let matches = [];
  let place = -1;
  byId("find").addEventListener("input", ({ target }) => {
    const wanted = target.value.toLowerCase();
    matches = wanted ? schedule.names.flatMap((name, task) => (name.toLowerCase().includes(wanted) ? [task] : [])) : [];
    matches.sort((a, b) => schedule.start[a] - schedule.start[b]);
    place = -1;
    byId("found").textContent = wanted ? `${countText(matches.length)} found; Enter selects the next` : "";
  });
  byId("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matches.length) return;
    place = (place + (event.shiftKey ? matches.length - 1 : 1)) % matches.length;
    byId("found").textContent = `${countText(place + 1)} of ${countText(matches.length)}`;
    gantt.select(matches[place]);
  });
  return { view, gantt, schedule };
}

function showDevices({ devices, makespan, resolution }) {
  reveal("devices");
  const share = (device) => (makespan ? device.busy / makespan : 0);
  const full = (device) => (device.capacity ? device.memory / device.capacity : null);
  makeTable(byId("device-table"), [
    { title: "device", word: true, value: (device) => device.name, text: (device) => device.name, color: (device) => device.color },
    { title: "type", word: true, value: (device) => device.type, text: (device) => device.type },
    { title: "tasks", value: (device) => device.tasks, text: (device) => countText(device.tasks) },
    { title: "busy", value: (device) => device.busy, text: (device) => secondsText(device.busy * resolution) },
    { title: "share", value: share, text: (device) => shareText(share(device)) },
    { title: "memory", value: (device) => device.memory, text: (device) => sizeText(device.memory) },
    { title: "capacity", value: (device) => device.capacity, text: (device) => (device.capacity === null ? "unlimited" : sizeText(device.capacity)) },
    { title: "of capacity", value: full, text: (device) => (full(device) === null ? "-" : shareText(full(device))), mark: (device) => (full(device) > 1 ? "bad" : "") },
  ], devices, "Devices");
}

/** Shows the stages of a pipeline: what one run takes of the devices of each. */
function showStages({ stages, resolution, period }) {
  reveal("devices");
  byId("devices-title").textContent = "Stages";
  const time = (ticks) => (ticks ? secondsText(ticks * resolution, 4) : "-");
  const full = (stage) => (stage.capacity ? stage.memory / stage.capacity : null);
  const used = (key) => stages.some((stage) => stage[key]);
  const ticks = (key, title) => (used(key) ? [{ title, value: (stage) => stage[key], text: (stage) => time(stage[key]) }] : []);
  makeTable(byId("device-table"), [
    { title: "stage", value: (stage) => stage.stages[0] ?? 0, text: (stage) => stage.stages.join(", ") || "-", color: (stage) => stage.color },
    { title: "device", word: true, value: (stage) => stage.device, text: (stage) => stage.device },
    { title: "tasks", value: (stage) => stage.tasks, text: (stage) => countText(stage.tasks) },
    ...ticks("computing", "computing"), ...ticks("launching", "launch"), ...ticks("recomputing", "recomputing"), ...ticks("sent", "sent"),
    ...ticks("received", "received"), ...ticks("synchronised", "synchronising"),
    { title: "idle", value: (stage) => stage.idle, text: (stage) => (stage.idle ? `${time(stage.idle * period)} (${shareText(stage.idle)})` : "-") },
    { title: "memory", value: (stage) => stage.memory, text: (stage) => sizeText(stage.memory) + (stage.capacity === null ? "" : ` of ${sizeText(stage.capacity)}`) },
    { title: "full", value: full, text: (stage) => (full(stage) === null ? "-" : shareText(full(stage))), mark: (stage) => (full(stage) > 1 ? "bad" : "") },
    { title: "runs kept", value: (stage) => stage.kept, text: (stage) => countText(stage.kept) },
  ], stages, "Stages");
}

/** Shows one group of [{label, kind, resolution, series}] at a time. */
function showConvergence(groups) {
  reveal("convergence");
  let shown = groups[0];
  const entries = () => fillLegend(byId("convergence-legend"), shown.series.map(({ label, color, dashes }) => ({ label, colors: [inked(color)], dashes })));
  const draw = makeLines(byId("convergence-chart"), (chart) => charts.push(chart), () => ({
    series: shown.series.map((line) => ({ ...line, color: inked(line.color) })),
    xText: (seconds) => secondsText(seconds, 3),
    yText: (value) => valueText(Number(value.toPrecision(6)), shown.kind, shown.resolution),
    xTitle: "run time of the solver",
  }));
  charts.push(entries);
  if (groups.length < 2) return;
  reveal("convergence-choice");
  const choice = byId("convergence-choice").querySelector("select");
  choice.append(...groups.map(({ label }, k) => element("option", { value: k, text: oneLine(label, 80) })));
  choice.addEventListener("change", () => {
    shown = groups[Number(choice.value)];
    entries();
    draw();
  });
}

/** The colour of a line; without one, the text colour of the page. */
const inked = (color) => color ?? theme().ink;

function showComparison({ note, problems, solvers, runs, profile }) {
  reveal("comparison");
  byId("comparison-note").textContent = note;
  const number = (value) => (value === null ? "-" : value.toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 }));
  const share = (value) => (value === null ? "-" : shareText(value, 2));
  const seconds = (value) => (value === null ? "-" : secondsText(value, 3));
  const size = (value) => (value === null ? "-" : sizeText(value));
  const word = (key, title, more = {}) => ({ title, word: true, value: (row) => row[key], text: (row) => row[key] ?? "-", ...more });
  const amount = (key, title, text, more = {}) => ({ title, value: (row) => row[key], text: (row) => text(row[key], row), ...more });
  const least = Math.min(...solvers.map((row) => row.ratio ?? Infinity));
  makeTable(byId("solver-table"), [
    word("solver", "solver"), amount("solved", "solved", countText),
    amount("ratio", "mean ratio to best", number, { mark: (row) => (row.ratio === least ? "best" : "") }),
    amount("gap", "mean gap", share), amount("wins", "wins", countText), amount("infeasible", "infeasible", countText),
    amount("failed", "failed", countText), amount("refused", "refused", countText), amount("seconds", "median time", seconds),
  ], solvers, "Solvers"); // best first
  const value = (known, row) => valueText(known, row.kind, row.resolution);
  makeTable(byId("problem-table"), [
    word("problem", "problem"), amount("best", "best found", value), word("best_solver", "found by"), amount("bound", "best bound", value),
    word("bound_source", "proved by"), amount("gap", "gap", share), word("known", "known"),
  ], problems, "Problems");
  const several = new Set(runs.map((row) => row.seed)).size > 1;
  const runTable = makeTable(byId("run-table"), [
    word("problem", "problem"), word("solver", "solver"),
    ...(several ? [amount("seed", "seed", String)] : []),
    amount("objective", "objective", value, { mark: (row) => (row.ratio === 1 ? "best" : "") }),
    amount("gap", "gap", share), amount("ratio", "ratio to best", number),
    ...(runs.some((row) => row.latency !== null) ? [amount("latency", "latency", value)] : [amount("slr", "SLR", number)]),
    amount("seconds", "time", seconds), amount("process_memory", "RAM", size),
    ...(runs.some((row) => row.peak_memory) ? [amount("peak_memory", "device memory", size)] : []),
    ...(runs.some((row) => row.certificate && row.certificate !== "none") ? [word("certificate", "proof")] : []),
    word("verdict", "verdict", { long: true, mark: (row) => (row.good ? "" : "bad") }),
  ], runs, "Runs");
  byId("filter").addEventListener("input", ({ target }) => {
    const shown = runTable.filter(target.value);
    byId("filtered").textContent = target.value.trim() ? `${countText(shown)} of ${countText(runs.length)} runs` : "";
  });
  if (!profile) return;
  reveal("profile");
  makeLines(byId("profile-chart"), (chart) => charts.push(chart), () => ({
    series: profile, xFrom: 1, xLog: true, xText: (ratio) => short(ratio, 4), yText: (value) => shareText(value, 0), xTitle: "ratio to the best value found",
  }));
  fillLegend(byId("profile-legend"), profile.map(({ label, color, dashes }) => ({ label, colors: [color], dashes })));
}
