// The stretch of time that is in view: one for all lanes and curves.

import { clamp } from "./dom.js";

export class Axis {
  constructor(changed) {
    this.changed = changed;
    this.reset(1);
  }

  reset(duration) {
    this.duration = Math.max(duration, 0.1);
    this.from = 0;
    this.to = this.duration;
  }

  get length() { return this.to - this.from; }
  get whole() { return this.length >= this.duration - 1e-9; }

  show(from, length) {
    this.to = 0;
    const kept = clamp(length, Math.min(1, this.duration), this.duration);
    this.from = clamp(from, 0, this.duration - kept);
    this.to = this.from + kept;
    this.changed();
  }

  zoom(factor, at = this.from + this.length / 2) {
    const length = clamp(this.length / factor, Math.min(1, this.duration), this.duration);
    this.show(at - (at - this.from) * (length / this.length), length);
  }

  pan(seconds) { this.show(this.from + seconds, this.length); }

  fit() { this.show(0, this.duration); }

  // the segment with some room on either side, unless it can be seen well already
  reveal(start, end) {
    const room = Math.max(end - start, 0.5);
    if (start >= this.from && end <= this.to) return;
    this.show((start + end) / 2 - this.length / 2, Math.max(this.length, room * 1.5));
  }

  share(seconds) { return (seconds - this.from) / this.length; }

  ticks(width) {
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
    const step = steps.find((one) => (one / this.length) * width >= 64) ?? 7200;
    const ticks = [];
    for (let n = Math.ceil(this.from / step - 1e-9); n * step <= this.to + 1e-9; n++) ticks.push(n * step);
    return { step, ticks };
  }
}
