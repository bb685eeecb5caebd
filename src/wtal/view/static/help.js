// What every key does, and what there is to see.

import { el } from "./dom.js";

const KEYS = [
  ["Space", "play or pause"],
  ["← →", "one second back or on; with Shift a tenth"],
  ["n p", "next, previous instance"],
  ["l", "loop the chosen instance, or stop"],
  ["+ −", "zoom in, out; 0 shows all"],
  ["Esc", "let go of the chosen instance"],
];
const MANY = [["j k", "next, previous video"], ["/", "search"]];
const EDIT = [
  ["a", "accept the chosen instance"],
  ["Shift A", "accept all that are shown"],
  ["x", "delete it"],
  ["[ ]", "it starts, ends at the mark"],
  ["i", "add one at the mark"],
  ["c", "change its class"],
  ["u r", "undo, redo"],
  ["d", "this video is done: next one"],
];
const SEEN = [
  ["found", "What the model found. The stronger the bar, the surer it is."],
  ["true", "Where it really happens, for videos where that is known."],
  ["taught", "The boxes that a detector was taught, for videos that it was trained on. The stronger the bar, the more it weighs."],
  ["from", "Under the chosen instance: the candidates that were fused into it."],
  ["rskp, detector …", "Under the chosen instance, where several models decide together: what each finds by itself, as many as are found."],
  ["NMS", "For comparison: the usual way, which keeps the best candidate and drops the others."],
];

const table = (rows, kind) => el("dl", { class: kind }, rows.map(([key, text]) => [el("dt", {}, key), el("dd", {}, text)]));

export function helpDialog({ many, editable }) {
  const dialog = el("dialog", { class: "help", "aria-label": "Help" },
    el("form", { method: "dialog" }, el("button", { class: "quiet close", "aria-label": "Close" }, "✕")),
    el("h2", {}, "What you see"), table(SEEN, "seen"),
    el("p", {}, "Click a bar to watch it in a loop; click anywhere else to go there. Drag to move along, turn the wheel over the times, pinch or use the buttons to zoom."),
    el("h2", {}, "Keys"), table([...KEYS, ...(many ? MANY : []), ...(editable ? EDIT : []), ["?", "this help"]], "keys"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}
