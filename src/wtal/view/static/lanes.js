// Lanes of bars on the axis, a group for each class: what is true or was taught, what was found, what that was made from.

import { clock, el, span } from "./dom.js";

const MARKS = { whole_video: "fills the whole video", empty_flanks: "nothing around it to compare with" };
const FOUND_BY = {
  teacher: "not found by the detector, but by a teacher of it",
  detector: "found by the detector alone",
  both: "found by the detector and a teacher of it",
};

export const said = (one) => (one.confidence !== null && one.confidence !== undefined
  ? `${Math.round(100 * one.confidence)} %` : one.score.toFixed(2));

export function about(one) {
  const notes = [FOUND_BY[one.found_by], ...(one.marks ?? []).map((mark) => MARKS[mark])];
  const made = one.members?.length;
  if (made) notes.push(`made from ${made} candidate${made === 1 ? "" : "s"}`);
  return notes.filter(Boolean);
}

// the row of each bar, so that none covers another: the first that is free at its start
function rows(bars) {
  const free = [];
  const places = new Map();
  for (const one of [...bars].sort((a, b) => a.start - b.start || a.end - b.end)) {
    let row = free.findIndex((end) => end <= one.start + 1e-6);
    if (row < 0) row = free.length;
    free[row] = one.end;
    places.set(one, row);
  }
  return [places, free.length];
}

export class Lanes {
  constructor(axis, { choose, edge }) {
    this.axis = axis;
    this.choose = choose;
    this.edge = edge;
    this.bars = [];
    this.ruler = el("div", { class: "track ruler" });
    this.groups = el("div", { class: "groups" });
    this.element = el("div", { class: "lanes" }, el("div", { class: "lane" }, el("span", { class: "what" }), this.ruler), this.groups);
  }

  // groups: [{label, colour, note, lanes: [{kind, name, bars, empty}]}]
  draw(groups, { chosen, strength, editable }) {
    this.bars = [];
    this.groups.replaceChildren(...groups.map((group) => {
      const made = el("section", { class: "group" },
        el("h3", {}, el("i", { class: "dot" }), group.label, group.note ? el("small", {}, group.note) : null),
        group.lanes.map((lane) => this.lane(group, lane, { chosen, strength, editable })));
      made.style.setProperty("--own", `var(--${group.colour})`);
      made.dataset.label = group.label;
      return made;
    }));
    this.place();
  }

  lane(group, lane, { chosen, strength, editable }) {
    const [places, n] = rows(lane.bars);
    const height = lane.kind === "member" ? (n > 8 ? 3 : 5) : n > 6 ? 6 : n > 2 ? 11 : lane.kind === "found" || lane.kind === "yours" ? 22 : 12;
    const track = el("div", { class: "track" });
    track.style.height = `${Math.max(n, 1) * (height + 2) + 4}px`;
    for (const one of lane.bars) {
      const percent = lane.kind === "found" ? said(one) : "";
      const title = lane.kind === "member" ? `candidate ${span(one)}`
        : [`${group.label}, ${span(one)}`, lane.kind === "true" ? "true" : lane.kind === "taught" ? `weight ${one.score.toFixed(2)}` : lane.kind === "yours" ? one.origin : percent, ...about(one)].filter(Boolean).join(" · ");
      const bar = el("button", { class: `bar ${lane.kind}`, type: "button", tabindex: "-1", title, "aria-label": title,
        onclick: (event) => { event.stopPropagation(); if (lane.kind !== "member") this.choose(one); } },
        height > 20 ? el("span", {}, lane.kind === "yours" ? "" : percent) : null);
      bar.classList.toggle("chosen", one === chosen);
      bar.style.top = `${places.get(one) * (height + 2) + 2}px`;
      bar.style.height = bar.style.lineHeight = `${height}px`;
      if (["found", "nms", "member", "model", "taught"].includes(lane.kind)) {
        bar.style.setProperty("--strength", strength(one));
        bar.classList.toggle("weak", strength(one) < 0.65);
      }
      if (editable && one === chosen && (lane.kind === "yours" || lane.kind === "found")) {
        for (const side of ["start", "end"]) bar.append(this.handle(one, side));
      }
      track.append(bar);
      this.bars.push({ one, bar });
    }
    if (!lane.bars.length && lane.empty) track.append(el("span", { class: "empty" }, lane.empty));
    return el("div", { class: `lane of-${lane.kind}` }, el("span", { class: "what" }, lane.name), track);
  }

  handle(one, side) {
    const handle = el("i", { class: `edge ${side}`, title: `drag to move the ${side}` });
    handle.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      const { left, width } = this.ruler.getBoundingClientRect();
      const at = (move) => this.axis.from + ((move.clientX - left) / width) * this.axis.length;
      const drag = (move) => this.edge(one, side, at(move), false);
      handle.addEventListener("pointermove", drag);
      handle.addEventListener("pointerup", (up) => {
        handle.removeEventListener("pointermove", drag);
        this.edge(one, side, at(up), true);
      }, { once: true });
    });
    handle.addEventListener("click", (event) => event.stopPropagation());
    return handle;
  }

  // where everything is now that the axis shows another stretch, or a bar has other ends
  place() {
    const { axis } = this;
    const width = this.ruler.clientWidth || 600;
    for (const { one, bar } of this.bars) {
      const left = axis.share(one.start), right = axis.share(one.end);
      bar.hidden = right < 0 || left > 1;
      bar.style.left = `${100 * left}%`;
      bar.classList.toggle("narrow", (right - left) * width < 36);
      bar.style.width = `max(3px, ${100 * (right - left)}%)`;
    }
    const { step, ticks } = axis.ticks(width);
    this.ruler.replaceChildren(...ticks.map((tick) => {
      const mark = el("span", { class: "tick" }, clock(tick, step < 1));
      mark.style.left = `${100 * axis.share(tick)}%`;
      return mark;
    }));
  }
}
