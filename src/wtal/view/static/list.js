// The videos to choose from: those in the page, or those that the server has.

import { clock, count, el } from "./dom.js";

const SORTS = { doubt: "most doubtful first", errors: "most errors first", name: "by name" };
const PAGE = 50;

export class VideoList {
  // find({q, sort, offset, limit}) -> {total, videos}; open(video) is called with the chosen one
  constructor(find, open, { sorts }) {
    this.find = find;
    this.open = open;
    this.videos = [];
    this.total = 0;
    this.asked = 0;
    this.search = el("input", { type: "search", placeholder: "Search videos and tags", "aria-label": "Search videos and tags",
      oninput: () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.refresh(), 150); } });
    this.sort = el("select", { "aria-label": "Order", onchange: () => this.refresh() },
      Object.entries(SORTS).map(([value, text]) => el("option", { value }, text)));
    this.items = el("ul", { class: "videos" });
    this.note = el("p", { class: "note" });
    this.more = el("button", { type: "button", class: "quiet", onclick: () => this.fetch(true) }, "Show more");
    this.element = el("aside", { class: "list", "aria-label": "Videos" }, this.search, sorts ? this.sort : null, this.note, this.items, this.more);
  }

  refresh() { return this.fetch(false); }

  async fetch(further) {
    const number = ++this.asked;
    const offset = further ? this.videos.length : 0;
    let got;
    try {
      got = await this.find({ q: this.search.value.trim(), sort: this.sort.value, offset, limit: PAGE });
    } catch (error) {
      if (number === this.asked) this.note.textContent = error.message;
      return;
    }
    if (number !== this.asked) return; // a newer question is on its way
    this.videos = further ? [...this.videos, ...got.videos] : got.videos;
    this.total = got.total;
    this.draw();
  }

  draw() {
    this.note.textContent = this.total ? count(this.total, "video") : "No video has that in its name or tags.";
    this.more.hidden = this.videos.length >= this.total;
    const runs = new Set(this.videos.map((one) => one.run)).size;
    this.items.replaceChildren(...this.videos.map((one) => {
      const facts = [runs > 1 ? one.run : null, one.split, clock(one.duration, false), count(one.found, "instance")];
      if (one.ap !== null && one.ap !== undefined) facts.push(`AP ${one.ap.toFixed(0)} %`);
      if (one.errors) facts.push(count(one.errors, "error"));
      if (one.doubt !== null && one.doubt !== undefined) facts.push(`doubt ${Math.round(100 * one.doubt)} %`);
      const button = el("button", { type: "button", class: "entry", onclick: () => this.open(one) },
        el("strong", {}, one.name, one.corrected ? el("span", { class: "ok", title: "corrected" }, " ✓") : null),
        one.tags?.length ? el("span", { class: "tags" }, one.tags.join(" · ")) : null,
        el("span", { class: "facts" }, facts.filter(Boolean).join(" · ")));
      button.classList.toggle("chosen", this.same(one, this.current));
      return el("li", {}, button);
    }));
  }

  same(a, b) { return Boolean(a && b) && a.name === b.name && (a.run ?? "") === (b.run ?? ""); }

  mark(video) {
    this.current = video;
    this.draw();
    this.items.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  // the video so many places further down
  beside(step) {
    const now = this.videos.findIndex((one) => this.same(one, this.current));
    return this.videos[now + step];
  }
}
