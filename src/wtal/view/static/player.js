// The video, or, where there is none that plays, a mark in time that can be moved.

import { clamp, el } from "./dom.js";

export class Player {
  constructor(moved) {
    this.moved = moved;
    this.loop = null;
    this.time = 0;
    this.duration = 0;
    this.video = el("video", { controls: true, playsinline: true, preload: "metadata", tabindex: "-1" });
    this.note = el("p", { class: "note", role: "status" });
    this.element = el("div", { class: "screen" }, this.video, this.note);
    for (const event of ["timeupdate", "seeked", "pause"]) this.video.addEventListener(event, () => this.follow());
    this.video.addEventListener("play", () => this.run());
    this.video.addEventListener("loadedmetadata", () => {
      if (this.time) this.video.currentTime = this.time;
    });
    this.video.addEventListener("error", () => this.fail());
  }

  load({ url, type }, name, duration) {
    this.video.pause();
    this.loop = null;
    this.time = 0;
    this.duration = duration;
    this.type = type;
    this.usable = Boolean(url);
    this.element.classList.toggle("without", !url);
    this.video.setAttribute("aria-label", `video ${name}`);
    if (url) {
      this.note.textContent = "";
      this.video.src = url;
    } else {
      this.video.removeAttribute("src");
      this.video.load();
      this.note.textContent = "No video file here, only its features. Click anywhere in the timeline to move the mark.";
    }
  }

  fail() {
    if (!this.video.getAttribute("src")) return;
    this.usable = false;
    this.element.classList.add("without");
    const address = this.video.getAttribute("src");
    this.note.textContent = `${address.startsWith("/media") ? "The server's copy of this video does not play here."
      : address.startsWith("data:") ? "Your browser cannot play the video in this page."
        : `Your browser cannot play ${decodeURIComponent(address.split("/").pop())}: it is not where the page expects it, or in a form that browsers do not play, such as AVI. `
          + "wtal view … --embed makes a page with a copy inside that plays."} Everything below works without it.`;
  }

  get playing() { return this.usable && !this.video.paused; }

  toggle() {
    if (!this.usable) return;
    if (this.video.paused) this.video.play().catch(() => {});
    else this.video.pause();
  }

  seek(seconds) {
    this.time = clamp(seconds, 0, this.duration);
    if (this.usable) this.video.currentTime = this.time;
    this.moved();
  }

  setLoop(segment) {
    this.loop = segment;
    if (segment && (this.time < segment.start || this.time >= segment.end)) this.seek(segment.start);
  }

  follow() {
    if (!this.usable || this.video.readyState === 0) return;
    this.time = this.video.currentTime;
    if (this.loop && this.playing && (this.time >= this.loop.end || this.time < this.loop.start - 0.5)) {
      this.video.currentTime = this.time = this.loop.start;
    }
    this.moved();
  }

  run() {
    const step = () => {
      if (!this.playing) return;
      this.follow();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}
