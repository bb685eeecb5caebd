// How instances are made, to be changed while one looks: the server computes them anew by the library.

import { el } from "./dom.js";

const TEMPLATES = { gaussian: "Gaussian", student_t: "Student's t", exponential: "exponential", uniform: "uniform" };

export class Controls {
  constructor(changed) {
    this.changed = changed;
    this.own = null; // the run's own settings
    this.given = {};
    this.body = el("div", { class: "knobs" });
    this.state = el("span", { class: "state", role: "status" });
    this.element = el("details", { class: "controls" },
      el("summary", {}, "How instances are made", this.state),
      el("p", { class: "note" }, "The model gives a curve for each class. Cutting it at many heights gives candidates; those that overlap become one instance."),
      this.body);
  }

  // what was changed, to be sent
  get query() { return this.given; }

  reset() {
    this.given = {};
    this.own = null;
  }

  draw(settings) {
    this.own ??= settings;
    const { levels } = this.own;
    const fusing = settings.combine === "fusion";
    const knobs = [
      el("fieldset", { class: "knob" }, el("legend", {}, "Overlapping candidates"), el("div", { class: "choice" },
        this.way("fusion", "are fused", settings), this.way("nms", "give way to the best (NMS)", settings))),
      levels && levels.length > 1 ? this.slider("levels", "Heights that the curve is cut at", settings.levels.length,
        { min: 1, max: levels.length, step: 1, text: String, value: (n) => thinned(levels, n).join(",") }) : null,
      settings.threshold !== null ? this.slider("threshold", "Overlap that makes one of two", settings.threshold,
        { min: 0, max: 0.95, step: 0.05, text: (x) => x.toFixed(2), value: (x) => x.toFixed(2) }) : null,
      fusing ? this.slider("temperature", "Temperature: how much weaker candidates count", Math.log10(settings.temperature),
        { min: -3, max: 0.5, step: 0.05, text: (x) => (10 ** x).toPrecision(2), value: (x) => (10 ** x).toPrecision(3) }) : null,
      fusing ? this.slider("evidence", "Evidence: how much it counts that many agree", settings.evidence,
        { min: 0, max: 2, step: 0.05, text: (x) => x.toFixed(2), value: (x) => x.toFixed(2) }) : null,
      fusing ? el("label", { class: "knob" }, "Shape that is fitted to them",
        el("select", { name: "template", onchange: (event) => this.set("template", event.target.value) },
          Object.entries(TEMPLATES).map(([value, text]) => el("option", { value, selected: value === settings.template }, text)))) : null,
      el("button", { type: "button", class: "quiet", disabled: !Object.keys(this.given).length,
        onclick: () => { this.given = {}; this.changed(); } }, "As the run has it"),
    ];
    const focused = document.activeElement?.getAttribute("name"); // a slider under a finger keeps it
    this.body.replaceChildren(...knobs.filter(Boolean));
    if (focused) this.body.querySelector(`[name="${focused}"]`)?.focus();
  }

  way(value, text, settings) {
    return el("label", {}, el("input", { type: "radio", name: "combine", value, checked: settings.combine === value,
      onchange: () => this.set("combine", value) }), text);
  }

  slider(name, text, now, { min, max, step, text: shown, value }) {
    const output = el("output", {}, shown(now));
    return el("label", { class: "knob" }, el("span", {}, text, output),
      el("input", { type: "range", name, min: String(min), max: String(max), step: String(step), value: String(now),
        oninput: (event) => {
          output.textContent = shown(Number(event.target.value));
          this.set(name, value(Number(event.target.value)));
        } }));
  }

  set(name, value) {
    this.given = { ...this.given, [name]: value };
    this.changed();
  }
}

// n of the values, evenly spread
export function thinned(values, n) {
  if (n >= values.length) return values;
  if (n === 1) return [values[Math.floor(values.length / 2)]];
  return Array.from({ length: n }, (_, i) => values[Math.round((i * (values.length - 1)) / (n - 1))]);
}
