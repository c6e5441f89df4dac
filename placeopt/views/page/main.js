// Builds the page from its data.

const data = JSON.parse(byId("data").textContent);
showSummary(data.summary);
const arrays = data.schedule ? await unpacked(byId("arrays").textContent, data.arrays) : null;
// For tests of the page: the view of the charts, the Gantt chart and its data.
globalThis.report = data.schedule ? showSchedule(data.schedule, arrays) : {};
if (data.schedule) (data.schedule.stages ? showStages : showDevices)(data.schedule);
if (data.convergence.length) showConvergence(data.convergence);
if (data.comparison) showComparison(data.comparison);

const redraw = () => charts.forEach((draw) => draw());
redraw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(() => requestAnimationFrame(redraw)).observe(document.body);
// Printed pages always use the light theme.
addEventListener("beforeprint", () => {
  document.documentElement.dataset.print = "";
  redraw();
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  redraw();
});
document.documentElement.dataset.ready = "";
