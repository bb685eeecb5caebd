// The pointer over the timeline: a click goes there, a drag moves along, wheel and pinch zoom, and a line follows the mouse.

import { clamp, clock, el } from "./dom.js";

export class Pointer {
  // ruler: the element that spans the axis; seek(seconds) on a click, looked(seconds or undefined) as the mouse moves
  constructor(area, ruler, axis, { seek, looked }) {
    Object.assign(this, { ruler, axis, looked });
    this.down = new Map(); // where each finger is
    this.dragged = 0;
    this.line = area.appendChild(el("div", { class: "hover" }));
    area.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.down.set(event.pointerId, event.clientX);
      this.dragged = 0;
    });
    area.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) area.addEventListener(end, (event) => {
      this.down.delete(event.pointerId);
      if (end !== "pointerup") this.look(undefined);
    });
    area.addEventListener("click", (event) => {
      if (this.dragged <= 4 && event.clientX >= this.span.left) seek(this.at(event.clientX));
    });
    area.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  get span() { return this.ruler.getBoundingClientRect(); }

  at(x) {
    const { left, width } = this.span;
    return this.axis.from + clamp((x - left) / width, 0, 1) * this.axis.length;
  }

  look(x) {
    if (x === undefined && this.seconds === undefined) return;
    this.seconds = x === undefined ? undefined : this.at(x);
    this.line.classList.toggle("on", x !== undefined);
    if (x !== undefined) {
      this.line.style.left = `${x - this.line.parentElement.getBoundingClientRect().left}px`;
      this.line.textContent = clock(this.seconds);
    }
    this.looked(this.seconds);
  }

  move(event) {
    const { left, width } = this.span;
    this.look(event.pointerType === "mouse" && event.clientX >= left ? event.clientX : undefined);
    const before = this.down.get(event.pointerId);
    if (before === undefined) return;
    const [one, other] = this.down.values();
    this.down.set(event.pointerId, event.clientX);
    if (other !== undefined) { // two fingers
      const [a, b] = this.down.values();
      if (Math.abs(one - other) > 10) this.axis.zoom(Math.abs(a - b) / Math.abs(one - other), this.at((a + b) / 2));
      this.dragged = 10;
      return;
    }
    this.dragged += Math.abs(event.clientX - before);
    if (this.dragged > 4 && !this.axis.whole) this.axis.pan(-((event.clientX - before) / width) * this.axis.length);
  }

  // elsewhere than over the times the wheel scrolls the page, as everywhere
  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey || this.ruler.contains(event.target)) {
      this.axis.zoom(Math.exp(-event.deltaY * 0.003), this.at(event.clientX));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY) && !this.axis.whole) {
      this.axis.pan((sideways / 600) * this.axis.length);
    } else return;
    event.preventDefault();
  }
}
