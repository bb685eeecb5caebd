// A person's corrections of one video: kept by the server, with every step undoable and nothing lost on the way.

import { memory } from "./dom.js";

// how much of the shorter one of two segments the other covers
const covered = (a, b) =>
  Math.max(0, Math.min(a.end, b.end) - Math.max(a.start, b.start)) / Math.min(a.end - a.start, b.end - b.start);

const plain = (segments) => segments.map(({ start, end, label, origin }) => ({ start, end, label, origin }));
const inOrder = (segments) => plain(segments).sort((a, b) => a.start - b.start || a.end - b.end || (a.label < b.label ? -1 : 1));

export class Corrections {
  // put(name, body) -> {status, revision}; status 0: the server does not answer
  constructor(put, changed) {
    this.put = put;
    this.changed = changed;
    this.open(null, { revision: 0, segments: null, done: false });
  }

  open(name, { revision, segments, done }) {
    clearTimeout(this.timer);
    Object.assign(this, { name, revision, done, segments: (segments ?? []).map((one) => ({ ...one })), dismissed: [] });
    Object.assign(this, { past: [], future: [], state: segments ? "saved" : "clean", edits: 0 });
    const draft = name === null ? null : JSON.parse(memory.get(`draft.${name}`) ?? "null");
    const saved = JSON.stringify([inOrder(this.segments), done]);
    if (draft && JSON.stringify([inOrder(draft.segments), draft.done]) !== saved) {
      Object.assign(this, draft); // a save did not get through before the page was closed
      this.touch();
    } else if (draft) memory.set(`draft.${name}`, null);
  }

  get unsaved() { return this.state !== "saved" && this.state !== "clean"; }

  // remember how it was, change it, save it
  edit(change) {
    this.past.push(JSON.stringify([plain(this.segments), this.done]));
    this.future = [];
    change();
    this.touch();
  }

  back(from, to) {
    if (!from.length) return false;
    to.push(JSON.stringify([plain(this.segments), this.done]));
    [this.segments, this.done] = JSON.parse(from.pop());
    this.touch();
    return true;
  }

  undo() { return this.back(this.past, this.future); }
  redo() { return this.back(this.future, this.past); }

  touch() {
    this.state = "unsaved";
    this.edits += 1;
    memory.set(`draft.${this.name}`, JSON.stringify({ revision: this.revision, segments: plain(this.segments), done: this.done }));
    this.later(500);
    this.changed();
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), wait);
  }

  async save() {
    clearTimeout(this.timer);
    if (!this.unsaved || this.state === "conflict" || this.saving) return;
    const { name, edits } = this;
    this.saving = true;
    const answer = await this.put(name, { revision: this.revision, segments: inOrder(this.segments), done: this.done });
    this.saving = false;
    if (name !== this.name) return;
    if (answer.status === 200) {
      this.revision = answer.revision;
      if (edits === this.edits) {
        this.state = "saved";
        memory.set(`draft.${name}`, null);
      } else this.later(100);
    } else if (answer.status === 409) this.state = "conflict";
    else {
      this.state = "offline";
      this.why = answer.why;
      this.later(5000);
    }
    this.changed();
  }

  accept(found) { this.edit(() => this.add(found, "accepted")); return this.segments.at(-1); }

  add({ start, end, label }, origin) { this.segments.push({ start, end, label, origin }); }

  // what is found but not yet decided about; of a video that is done nothing is
  openAmong(found) {
    const decided = (one) => this.segments.some((mine) =>
      (mine.label === one.label || mine.origin === "relabelled") && covered(mine, one) > 0.5);
    return this.done ? [] : found.filter((one) => !decided(one) && !this.dismissed.includes(one));
  }
}
