// Curves on the same axis, drawn by uPlot: what the model sees, and what it was taught.

import { colour, el, faded } from "./dom.js";

const steps = (values) => [...values, values.at(-1) ?? null];

export class Curves {
  constructor(axis) {
    this.axis = axis;
    this.plots = [];
    this.element = el("div", { class: "curves" });
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  // charts: [{title, why, signed, series: [{name, colour, alpha, values, fill}]}]
  draw(charts, grid, gutter) {
    for (const { plot } of this.plots) plot.destroy();
    const x = Array.from({ length: grid.count + 1 }, (_, i) => grid.start + i * grid.step);
    this.grid = grid;
    this.plots = [];
    this.element.replaceChildren();
    for (const chart of charts) {
      const values = el("span", { class: "values" });
      const box = el("div", { class: "plot" });
      this.element.append(el("section", { class: "chart" }, el("h3", { title: chart.why }, chart.title, values), box));
      const plot = new uPlot(this.options(chart, gutter), [x, ...chart.series.map((one) => steps(one.values))], box);
      this.plots.push({ plot, chart, values });
    }
    this.at(0);
  }

  options(chart, gutter) {
    const text = colour("muted"), line = colour("line");
    return {
      width: this.width, height: 96, padding: [6, 0, 6, 0],
      legend: { show: false }, cursor: { show: false }, select: { show: false },
      scales: { x: { time: false, range: () => [this.axis.from, this.axis.to] },
        y: { range: (_, low, high) => [chart.signed ? Math.min(low ?? 0, 0) : 0, Math.max(high ?? 0, 1e-3) * 1.05] } },
      axes: [{ show: false }, { size: gutter, stroke: text, font: "11px system-ui, sans-serif", gap: 4,
        grid: { stroke: line, width: 1 }, ticks: { show: false }, space: 28 }],
      series: [{}, ...chart.series.map((one) => ({
        stroke: faded(colour(one.colour), one.alpha ?? 1), width: 1.4,
        fill: one.fill === false ? undefined : faded(colour(one.colour), 0.14 * (one.alpha ?? 1)),
        points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }))],
    };
  }

  get width() { return Math.max(this.element.clientWidth, 100); }

  place() { for (const { plot } of this.plots) plot.setScale("x", { min: this.axis.from, max: this.axis.to }); }

  resize() { for (const { plot } of this.plots) plot.setSize({ width: this.width, height: 96 }); }

  // the values at a second, beside the titles
  at(seconds) {
    if (!this.grid) return;
    const i = Math.floor((seconds - this.grid.start) / this.grid.step);
    for (const { chart, values } of this.plots) {
      values.replaceChildren(...chart.series.filter((one) => !one.quiet).map((one) => {
        const value = one.values[i];
        const shown = el("b", {}, el("i", { class: "dot" }), `${one.name}${value === undefined ? "" : ` ${(Math.round(100 * value) / 100 || 0).toFixed(2)}`}`);
        shown.style.setProperty("--own", `var(--${one.colour})`);
        return shown;
      }));
    }
  }
}
