// What pages do that HTML cannot: ask before a deletion, copy a text, draw a chart. Everything else works without it.
"use strict";

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const text = "value" in source ? source.value : source.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers lend the clipboard to pages of TLS or this machine alone: there the text is selected, to be copied by hand.
    if (source.select) source.select();
    else window.getSelection().selectAllChildren(source);
    return;
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
});

// Of several sorts of filter the fields of the one that is chosen are shown. Without scripts all are, and one sort counts.
function chooseKind() {
  const kind = document.getElementById("field-kind");
  for (const part of document.querySelectorAll("[data-kind]")) part.hidden = part.dataset.kind !== kind.value;
}
document.addEventListener("change", (event) => { if (event.target.id === "field-kind") chooseKind(); });
document.addEventListener("DOMContentLoaded", () => { if (document.querySelector("[data-kind]")) chooseKind(); });

// A page that nobody looks at asks for nothing; one that follows drops what is oldest.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.getAttribute("hx-trigger")?.startsWith("every")) event.preventDefault();
});
document.addEventListener("htmx:afterSwap", () => {
  const list = document.querySelector("[data-longest]");
  if (!list) return;
  const items = list.querySelectorAll(":scope > details");
  for (const item of [...items].slice(0, Math.max(0, items.length - Number(list.dataset.longest)))) item.remove();
});

// A chart is a table whose figures are drawn above it: <table data-chart> with times in data-ms and series in columns.
function draw(table) {
  if (!window.uPlot || table.dataset.drawn) return;
  table.dataset.drawn = "1";
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const colours = [colour("--accent"), colour("--good"), colour("--warn")];
  const data = [rows.map((row) => Number(row.dataset.ms) / 1000)];
  const series = [{}];
  heads.forEach((head, index) => {
    if (!("series" in head.dataset)) return;
    data.push(rows.map((row) => Number(row.cells[index + 1].dataset.value)));
    series.push({ label: head.textContent, stroke: colours[series.length - 1], width: 2, points: { size: 5 } });
  });
  const box = document.createElement("div");
  box.className = "chart";
  box.setAttribute("aria-hidden", "true");
  const place = table.closest(".table");
  place.before(box);
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const chart = new window.uPlot({
    width: box.clientWidth - 32,
    height: 220,
    series: [{ label: "Hour (UTC)", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series.slice(1)],
    axes: [{ ...axis, values: [[3600, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, null, null, null, null, 1]] }, { ...axis, size: 70 }],
    tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), "UTC"),
  }, data, box);
  window.addEventListener("resize", () => chart.setSize({ width: box.clientWidth - 32, height: 220 }));
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table[data-chart]").forEach(draw));
