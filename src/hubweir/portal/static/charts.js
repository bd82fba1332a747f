// Draws rates and latencies from totals: #measures renews itself, and the difference of two of its states is a point.
"use strict";
(() => {
  const LONGEST = 360; // half an hour of points
  const charts = [];
  let before = null;

  function state() {
    const measures = document.getElementById("measures");
    if (!measures) return null;
    const totals = {}, latencies = {}, labels = {};
    for (const row of measures.querySelectorAll("[data-total]")) {
      totals[row.dataset.total] = Number(row.dataset.value);
      labels[row.dataset.total] = row.cells[0].textContent;
    }
    for (const row of measures.querySelectorAll("[data-latency]")) {
      latencies[row.dataset.latency] = row.dataset.buckets.split(" ").map(Number);
      labels[row.dataset.latency] = row.cells[0].textContent;
    }
    return { ms: Number(measures.dataset.ms), at: Date.now() / 1000, totals, latencies, labels };
  }

  // Below how many ms 99 of 100 of those in between were; null: there was none.
  function p99(now, then) {
    const counts = now.map((count, bits) => Math.max(0, count - (then[bits] || 0)));
    const wanted = counts.reduce((sum, count) => sum + count, 0) * 0.99;
    let seen = 0;
    for (let bits = 0; bits < counts.length; bits++) {
      seen += counts[bits];
      if (counts[bits] && seen >= wanted) return 2 ** bits / 1000;
    }
    return null;
  }

  function begin(figure, labels) {
    const keys = (figure.dataset.rates || figure.dataset.latencies).split(" ");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const colours = ["--accent", "--good", "--warn", "--bad"].map(colour);
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const width = () => Math.max(100, figure.clientWidth - 32);
    const data = [[], ...keys.map(() => [])];
    const plot = new window.uPlot({
      width: width(),
      height: 200,
      series: [{}, ...keys.map((key, index) => ({ label: labels[key], stroke: colours[index], width: 2, spanGaps: false }))],
      axes: [axis, { ...axis, size: 70 }],
      scales: { y: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.1)] } },
    }, data, figure);
    window.addEventListener("resize", () => plot.setSize({ width: width(), height: 200 }));
    return { figure, keys, data, plot };
  }

  function point() {
    const now = state();
    if (!now || !window.uPlot) return;
    if (!charts.length) for (const figure of document.querySelectorAll("figure.chart")) charts.push(begin(figure, now.labels));
    const then = before;
    before = now;
    if (!then || now.ms <= then.ms) return;
    const seconds = (now.ms - then.ms) / 1000;
    for (const chart of charts) {
      chart.data[0].push(now.at);
      chart.keys.forEach((key, index) => {
        const value = chart.figure.dataset.rates
          ? Math.max(0, now.totals[key] - then.totals[key]) / seconds
          : p99(now.latencies[key] || [], then.latencies[key] || []);
        chart.data[index + 1].push(value);
      });
      if (chart.data[0].length > LONGEST) for (const column of chart.data) column.shift();
      chart.plot.setData(chart.data);
    }
  }

  document.addEventListener("DOMContentLoaded", point);
  document.addEventListener("htmx:afterSwap", point);
})();
