// The page of the service: the editor, the form, and the runs of the last solve.

import {
  EditorState, EditorView, autocompletion, bracketMatching, classHighlighter, closeBrackets, closeBracketsKeymap,
  completionKeymap, defaultKeymap, drawSelection, forceLinting, highlightActiveLine, highlightActiveLineGutter,
  highlightSelectionMatches, highlightSpecialChars, history, historyKeymap, indentOnInput, indentUnit, keymap,
  lineNumbers, lintGutter, lintKeymap, linter, search, searchKeymap, syntaxHighlighting, yaml,
} from "./codemirror.js";
import { proposals } from "./completion.js";

const COLORS = ["#0072b2", "#d55e00"]; // of the first and the second run
const WAIT = 400; // milliseconds without a key until the spec is checked
const PAUSE = 700; // milliseconds between two drawings of the schedule while a solver runs

let token = sessionStorage.getItem("token") ?? "";

/** Asks the service; an answer that is an error is thrown, with the issues of the spec. */
async function ask(path, options = {}) {
  const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...options.headers };
  const answer = await fetch(`api/${path}`, { ...options, headers });
  if (answer.ok) return answer;
  const { error, issues = [] } = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  if (answer.status === 401) byId("login").hidden = false;
  throw Object.assign(new Error(error), { issues, status: answer.status });
}

const askJson = async (path, options) => (await ask(path, options)).json();

function say(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = !text;
}

/** Runs what a button asks for; an error becomes the message. */
async function attempt(work) {
  say("");
  try {
    return await work();
  } catch (error) {
    say(error.message);
  }
}

// The editor: errors at their lines, and completion.

let schema = null;
let usable = null; // the solvers that support the problem

/** Converts issues to diagnostics of the editor, each on the words at its place. */
function diagnostics(issues, doc) {
  return issues.map(({ line, column, message, path }) => {
    const place = doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines));
    const from = Math.min(place.from + Math.max((column ?? 1) - 1, 0), place.to);
    const length = /^[^\s,:{}[\]]+/.exec(place.text.slice(from - place.from))?.[0].length ?? 0;
    return { from, to: Math.max(from + length, Math.min(from + 1, doc.length)), severity: "error", message: path ? `${path}: ${message}` : message };
  });
}

async function checkSpec(view) {
  const doc = view.state.doc;
  const verdict = byId("verdict");
  try {
    const { issues, problem, solvers } = await askJson("check", { method: "POST", body: doc.toString() });
    usable = issues.length ? null : solvers;
    markSolvers();
    verdict.className = issues.length ? "bad" : "";
    verdict.textContent = issues.length ? `${issues.length} error${issues.length === 1 ? "" : "s"}: ` : problem.summary;
    if (issues.length) {
      const { line, path, message } = issues[0];
      const jump = element("button", { type: "button", text: line === null ? "start" : `line ${line}` });
      jump.addEventListener("click", () => {
        view.dispatch({ selection: { anchor: diagnostics(issues, view.state.doc)[0].from }, scrollIntoView: true });
        view.focus();
      });
      verdict.append(jump, ` ${path ? `${path}: ` : ""}${message}`);
    }
    return diagnostics(issues, doc);
  } catch (error) {
    verdict.className = "bad";
    verdict.textContent = error.message;
    return [];
  }
}

function complete(context) {
  if (!schema) return null;
  const whole = context.state.doc.toString();
  const { typed, value, options } = proposals(schema, whole.slice(0, context.pos), whole);
  if (!options.length || (!context.explicit && !typed)) return null;
  const quoted = /^["']/.test(typed);
  return {
    from: context.pos - typed.length + (quoted ? 1 : 0),
    options: options.map(([label, type, info]) => ({
      label, type, info: info || undefined, apply: value || quoted || type !== "property" ? label : `${label}: `,
    })),
  };
}

const editor = new EditorView({
  parent: byId("editor"),
  extensions: [
    EditorView.cspNonce.of(document.querySelector("meta[name=nonce]").content),
    keymap.of([{ key: "Mod-Enter", run: () => (byId("form").requestSubmit(), true) }]),
    lineNumbers(), highlightActiveLineGutter(), highlightSpecialChars(), history(), drawSelection(), indentUnit.of("  "),
    EditorState.tabSize.of(2), indentOnInput(), bracketMatching(), closeBrackets(),
    autocompletion({ override: [complete], icons: false, compareCompletions: () => 0 }), // in the order of the schema
    highlightActiveLine(), highlightSelectionMatches(), search({ top: true }), yaml(), syntaxHighlighting(classHighlighter),
    lintGutter(), linter(checkSpec, { delay: WAIT }),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ "aria-label": "The problem, in YAML" }),
  ],
});

const setText = (text) => editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });

// The form.

const option = (value, text = value) => element("option", { value, text });

/** Disables solvers that do not support the problem. */
function markSolvers() {
  for (const each of document.querySelectorAll("#solver option, #second option")) each.disabled = !!(each.value && usable && !usable.includes(each.value));
}

async function fillForm() {
  const [solvers, examples, limits] = await Promise.all(["solvers", "examples", "limits"].map((path) => askJson(path)));
  schema = await askJson("schema");
  byId("login").hidden = true;
  byId("seconds").max = limits.seconds;
  byId("seconds").value = Math.min(10, limits.seconds);
  for (const [id, first] of [["solver", []], ["second", [option("", "nothing")]]]) {
    const families = Map.groupBy?.(solvers, ({ family }) => family) ?? new Map([["solvers", solvers]]);
    byId(id).replaceChildren(...first, ...[...families].map(([family, members]) => {
      const options = members.map(({ name, summary }) => Object.assign(option(name), { title: summary }));
      return element("optgroup", { label: family }, ...options);
    }));
  }
  byId("solver").value = "auto";
  byId("example").replaceChildren(option("", "choose …"), ...examples.map(({ name, description }) => Object.assign(option(name), { title: description })));
  if (!editor.state.doc.length) await showExample(examples[0].name);
  forceLinting(editor);
}

async function showExample(name) {
  setText(await (await ask(`examples/${name}`)).text());
  byId("example").value = name;
}

// Runs: a solve has one, or two that are compared.

let runs = [];
let shown = null; // the run whose schedule is shown
const convergence = { label: "", kind: "number", resolution: 1, series: [] };

async function solve() {
  await stop();
  const query = (solver) => `jobs?${new URLSearchParams({ solver, time_limit: byId("seconds").value, seed: byId("seed").value })}`;
  const names = [...new Set([byId("solver").value, byId("second").value].filter(Boolean))];
  const body = editor.state.doc.toString();
  runs = [];
  for (const [k, name] of names.entries()) {
    const card = await askJson(query(name), { method: "POST", body });
    runs.push({ card, color: COLORS[k], best: [], bounds: [], drawn: null, drawing: false });
  }
  shown = runs[0];
  Object.assign(convergence, { kind: shown.card.problem.kind, resolution: shown.card.problem.resolution });
  byId("report").replaceChildren();
  byId("head").hidden = true;
  showRuns();
  await Promise.all(runs.map(follow));
}

async function stop() {
  const left = runs.filter(({ card }) => card.state === "queued" || card.state === "running");
  await Promise.all(left.map(({ card }) => ask(`jobs/${card.id}`, { method: "DELETE" }).catch(() => {})));
}

/** Follows the events of a run until it ends; a stream that breaks is continued where it ended. */
async function follow(run) {
  let last = -1;
  for (let failures = 0; failures < 5;) {
    try {
      const answer = await ask(`jobs/${run.card.id}/events`, { headers: last < 0 ? {} : { "Last-Event-ID": String(last) } });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        for (const part of parts) {
          const [id, name, data] = ["id", "event", "data"].map((key) => new RegExp(`^${key}: (.*)$`, "m").exec(part)?.[1]);
          if (!name) continue;
          last = Number(id);
          failures = 0;
          if (heard(run, name, JSON.parse(data))) return;
        }
      }
    } catch (error) {
      if (error.status) throw error;
    }
    failures += 1;
    await new Promise((done) => setTimeout(done, 1000 * failures));
  }
  throw new Error("the service no longer answers");
}

/** Takes in an event; returns whether it was the last one. */
function heard(run, name, data) {
  const over = name === "finished";
  run.card = over ? data : { ...run.card, state: "running", elapsed: data.elapsed, objective: data.objective, bound: data.bound };
  const { elapsed, objective, bound } = run.card;
  if (objective !== null && (!over || data.feasible)) run.best.push([elapsed, objective]);
  if (bound !== null) run.bounds.push([elapsed, bound]);
  if (over && data.error) say(`${data.solver}: ${data.error}`);
  showRuns();
  if (run === shown && (over ? data.state === "ended" : name === "incumbent")) draw(run);
  return over;
}

const STATES = { queued: "waits", running: "runs", failed: "failed", cancelled: "cancelled" };

/** Shows the table of the runs and their convergence. */
function showRuns() {
  byId("runs").hidden = !runs.length;
  byId("stop").disabled = !runs.some(({ card }) => card.state === "queued" || card.state === "running");
  const focused = document.activeElement?.dataset?.name;
  const headers = ["solver", "objective", "bound", "gap", "time", "state"];
  const head = element("tr", {}, ...headers.map((text) => element("th", { text, scope: "col", ...(text === "solver" && { class: "word" }) })));
  byId("runs").replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...runs.map(runRow))));
  if (focused) byId("runs").querySelector(`[data-name="${focused}"]`)?.focus();
  convergence.series = runs.flatMap(({ card, color, best, bounds }) => [
    { label: `${card.solver}: best schedule`, color, dashes: [], points: best },
    { label: `${card.solver}: bound`, color, dashes: [6, 3], points: bounds },
  ]).filter(({ points }) => points.length);
  byId("convergence").hidden = !convergence.series.length;
  lasting.forEach((redraw) => redraw());
}

function runRow(run) {
  const { card } = run;
  const { kind, resolution } = card.problem;
  const value = (known) => valueText(known, kind, resolution);
  const gap = card.gap ?? (card.objective && card.bound !== null ? (card.objective - card.bound) / card.objective : null);
  const state = card.state === "ended" ? card.termination.replace("_", " ") : STATES[card.state];
  const swatch = element("span", { class: "swatch" });
  swatch.style.background = run.color;
  const choice = element("button", { type: "button", text: card.solver, "data-name": card.id, "aria-pressed": String(run === shown), title: "Show this schedule" });
  choice.addEventListener("click", () => {
    shown = run;
    showRuns();
    draw(run);
  });
  return element("tr", {},
    element("td", { class: "word" }, swatch, runs.length > 1 ? choice : card.solver),
    ...[value(card.objective), value(card.bound), gap === null ? "-" : shareText(gap, 2), card.elapsed === null ? "-" : secondsText(card.elapsed, 3), state]
      .map((text) => element("td", { text })));
}

/** Saves the plan, the report or the result of a run. */
async function save({ id, problem, solver }, what) {
  const address = URL.createObjectURL(await (await ask(`jobs/${id}/${what}`)).blob());
  element("a", { href: address, download: `${problem.name || "problem"}-${solver}-${what}.${what === "report" ? "html" : "json"}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// The sections of the report, drawn again for every better schedule.

const template = byId("sections").content;
template.querySelector("#comparison").remove();
byId("live").append(template.querySelector("#convergence"));
showConvergence([convergence]);
byId("convergence").hidden = true;
const lasting = charts.slice();

/** Draws the schedule of a run: now, and once more afterwards if a better one came in the meantime. */
async function draw(run) {
  if (run.drawing) {
    run.again = true;
    return;
  }
  run.drawing = true;
  try {
    const data = await askJson(`jobs/${run.card.id}/charts`);
    const arrays = data.schedule ? await unpacked(data.packed, data.arrays) : null;
    if (run === shown) showReport(data, arrays, run);
    if (run.card.state === "running") await new Promise((done) => setTimeout(done, PAUSE));
  } catch (error) {
    if (error.status !== 409) say(error.message); // 409: a heuristic has no schedule before its end
  }
  run.drawing = false;
  if (run.again) {
    run.again = false;
    await draw(run);
  }
}

/** Shows the sections in the place of those before; zoom and focus stay. */
function showReport(data, arrays, run) {
  const place = byId("report");
  const before = globalThis.report?.run === run ? globalThis.report.view : null;
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.style.minHeight = `${place.offsetHeight}px`; // the page does not jump
  place.replaceChildren(template.cloneNode(true));
  charts.length = lasting.length;
  byId("head").hidden = false;
  byId("files").hidden = run.card.state !== "ended";
  byId("status").hidden = true;
  showSummary(data.summary);
  byId("subtitle").textContent = `${run.card.solver}: ${data.summary.subtitle}`;
  globalThis.report = data.schedule ? { ...showSchedule(data.schedule, arrays), run } : {};
  if (data.schedule) (data.schedule.stages ? showStages : showDevices)(data.schedule);
  if (before && report.view && before.to - before.from < 0.99 * (before.last - before.first)) report.view.show(before.from, before.to);
  charts.forEach((redraw) => redraw());
  place.style.minHeight = "";
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

const redraw = () => charts.forEach((each) => each());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(() => requestAnimationFrame(redraw)).observe(byId("answer"));

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(solve);
});
for (const button of byId("files").querySelectorAll("button")) button.addEventListener("click", () => attempt(() => save(shown.card, button.textContent)));
byId("stop").addEventListener("click", () => attempt(stop));
byId("example").addEventListener("change", ({ target }) => target.value && attempt(() => showExample(target.value)));
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  sessionStorage.setItem("token", token);
  attempt(fillForm);
});
globalThis.page = { editor, setText, runs: () => runs }; // for tests
await attempt(fillForm);
document.documentElement.dataset.ready = "";
