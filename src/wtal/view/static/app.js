// The page: a video, lanes and curves on one axis, and, where a server is behind it, its videos, settings and edits.

import { Axis } from "./axis.js";
import { Controls } from "./controls.js";
import { Curves } from "./curves.js";
import { clamp, clock, el, memory, span } from "./dom.js";
import { Corrections } from "./edit.js";
import { helpDialog } from "./help.js";
import { Lanes, about, said } from "./lanes.js";
import { VideoList } from "./list.js";
import { Player } from "./player.js";
import { Pointer } from "./pointer.js";
import { ask, findVideos, putCorrections } from "./server.js";

const page = JSON.parse(document.getElementById("data").textContent);
const live = page.mode === "live";
const editable = live && page.editable;
const many = live || page.payloads.length > 1;

let video = null; // the payload that is shown
let chosen = null; // an instance, a true one, or a corrected segment
let looping = true;
const limits = {}; // what is less sure is hidden: where a reader has put the slider, by what it measures
let asked = 0;

// ---- what is shown -------------------------------------------------------------------------------------------------

const sure = () => video.instances.some((one) => one.confidence !== null);
const best = () => Math.max(...video.instances.map((one) => one.score), 1e-9);
const measure = () => (sure() ? "confidence" : "share of the best score");
const least = () => limits[measure()] ?? video.least;
const value = (one) => one.confidence ?? one.score / best();
const shown = () => video.instances.filter((one) => (one.stands || lanesShown.all.checked) && value(one) >= least() - 1e-9);
const inTime = (some) => [...some].sort((a, b) => a.start - b.start || a.end - b.end);
// the classes that matter here with a colour each: tagged ones, true ones, then what was found, the surest first
const palette = () => {
  const all = [...(video.truth ?? []), ...(editable ? corrections.segments : []), ...shown()];
  return new Map([...new Set([...(video.tags ?? []), ...all.map((one) => one.label)])].map((name, n) => [name, `c${n % 6}`]));
};
const leastSaid = () => (sure() ? `${Math.round(100 * least())} %` : `a score of ${(least() * best()).toFixed(2)}`);

// ---- parts ---------------------------------------------------------------------------------------------------------

const player = new Player(() => moved());
const axis = new Axis(() => { lanes.place(); curves.place(); moved(); zoomOut.disabled = fit.disabled = axis.whole; });
const lanes = new Lanes(axis, { choose, edge: moveEdge });
const curves = new Curves(axis);
const corrections = new Corrections(putCorrections, () => drawEdits());
const controls = new Controls(() => recompute());
const list = new VideoList(live ? findVideos : findHere, openVideo, { sorts: live });

const title = el("h2", { class: "name" });
const facts = el("p", { class: "facts" });
const slider = el("input", { type: "range", min: "0", max: "100", step: "1", id: "least",
  oninput: () => { limits[measure()] = Number(slider.value) / 100; if (chosen && !everything().includes(chosen)) chosen = null; draw(); } });
const sliderSaid = el("output", { for: "least" });
const items = el("ol", { class: "items" });
const nothing = el("p", { class: "nothing" });
const editor = el("div", { class: "editor", hidden: !editable });
const head = el("div", { class: "head" });
const message = el("p", { class: "message", role: "alert", hidden: true });
const zoomIn = button("+", "Zoom in (+)", () => axis.zoom(1.6, at()));
const zoomOut = button("−", "Zoom out (−)", () => axis.zoom(1 / 1.6, at()));
const fit = button("All", "Show all (0)", () => axis.fit());
const position = el("output", { class: "time" });
const help = helpDialog({ many, editable });
const lanesShown = {
  truth: toggle("true", true), boxes: toggle("taught", true), members: toggle("candidates", true), models: toggle("each model", true), nms: toggle("NMS", false), all: toggle("all it considered", false),
  activation: toggle("activation", true), attention: toggle("attention", true), target: toggle("labels", true), delta: toggle("change of labels", true),
};

function button(text, what, act, kind = "quiet") {
  return el("button", { type: "button", class: kind, title: what, "aria-label": what, onclick: act }, text);
}

function toggle(text, on) {
  const box = el("input", { type: "checkbox", checked: on, onchange: () => draw() });
  box.field = el("label", { class: "chip" }, box, text);
  return box;
}

const timeline = el("section", { class: "timeline", "aria-label": "Timeline" },
  el("div", { class: "toolbar" }, position, el("span", { class: "zoom" }, zoomOut, zoomIn, fit),
    el("span", { class: "chips" }, el("span", { class: "muted" }, "Show"), Object.values(lanesShown).map((box) => box.field))),
  el("div", { class: "area" }, lanes.element, curves.element, head));
const area = timeline.querySelector(".area");
const pointer = new Pointer(area, lanes.ruler, axis, {
  seek: (seconds) => { player.setLoop(null); player.seek(seconds); },
  looked: (seconds) => curves.at(seconds ?? player.time),
});
// what is zoomed at: the mouse, or the mark if it is in view
const at = () => pointer.seconds ?? (axis.share(player.time) >= 0 && axis.share(player.time) <= 1 ? player.time : undefined);

const found = el("section", { class: "results", "aria-label": "Found" },
  title, facts,
  el("label", { class: "least", for: "least" }, el("span", {}, "Show what is at least this sure"), sliderSaid), slider,
  editor, nothing, items);

const menu = many ? button("☰", "Videos", () => document.body.classList.toggle("listing")) : null;
document.body.replaceChildren(
  el("header", { class: "top" }, menu, el("h1", {}, page.title),
    button("◐", "Light or dark", switchTheme), button("?", "Help (?)", () => help.showModal())),
  message,
  el("div", { class: `columns${many ? " with-list" : ""}` }, many ? list.element : null,
    el("main", {}, el("section", { class: "stage" }, player.element, found), timeline, live ? controls.element : null)),
  help);

// ---- drawing -------------------------------------------------------------------------------------------------------

function draw() {
  if (!video) return;
  const colours = palette(), visible = shown();
  title.textContent = video.name;
  facts.textContent = [video.tags?.length ? `tagged ${video.tags.join(", ")}` : null, clock(video.duration, false),
    many && video.run ? video.run : null].filter(Boolean).join(" · ");
  slider.value = String(Math.round(100 * least()));
  sliderSaid.textContent = !least() ? "all" : sure() ? `${Math.round(100 * least())} %` : `score ${(least() * best()).toFixed(2)}`;
  nothing.textContent = visible.length ? "" : video.instances.length ? `Nothing found above ${leastSaid()}.` : "Nothing found in this video.";
  drawItems(visible, colours);
  drawLanes(visible, colours);
  drawCurves(colours);
  drawEdits(false);
  moved();
}

function drawLanes(visible, colours) {
  const top = Math.max(...video.nms.map((one) => one.score), 1e-9);
  const compared = new Set(video.nms.slice(0, visible.length)); // as many as there are others
  lanesShown.truth.field.hidden = !video.truth;
  lanesShown.boxes.field.hidden = !video.boxes.length;
  lanesShown.models.field.hidden = !video.models.length;
  const tops = new Map(video.models.flatMap(({ instances }) => instances.map((one) => [one, instances[0].score])));
  for (const one of video.boxes) tops.set(one, 1); // their scores are weights
  lanesShown.all.field.hidden = video.instances.every((one) => one.stands);
  const groups = [...colours].map(([label, colour]) => {
    const of = (some) => some.filter((one) => one.label === label);
    const parts = [];
    if (video.truth && lanesShown.truth.checked) parts.push({ kind: "true", name: "true", bars: of(video.truth), empty: "never" });
    if (lanesShown.boxes.checked && of(video.boxes).length) parts.push({ kind: "taught", name: "taught", bars: of(video.boxes) });
    if (editable) parts.push({ kind: "yours", name: "yours", bars: of(corrections.segments) });
    parts.push({ kind: "found", name: "found", bars: of(visible), empty: least() ? `nothing above ${leastSaid()}` : "nothing" });
    if (lanesShown.members.checked && chosen?.label === label && chosen.members?.length) {
      const bars = chosen.members.map(([start, end, score]) => ({ start, end, score }));
      parts.push({ kind: "member", name: `from ${bars.length}`, bars });
    }
    if (lanesShown.models.checked && chosen?.label === label) {
      for (const { name, instances } of video.models) parts.push({ kind: "model", name, bars: of(instances.slice(0, visible.length)), empty: "nothing" });
    }
    if (lanesShown.nms.checked) parts.push({ kind: "nms", name: "NMS", bars: of([...compared]) });
    return { label, colour, lanes: parts, note: video.tags?.includes(label) ? "tagged" : null };
  });
  const strong = Math.max(...(chosen?.members ?? []).map((one) => one[2]), 1e-9);
  const strength = (one) => {
    const share = one.found_by !== undefined ? value(one) : compared.has(one) ? one.score / top : one.score / (tops.get(one) || strong);
    return (0.25 + 0.75 * clamp(share, 0, 1)).toFixed(3);
  };
  lanes.draw(groups, { chosen, strength, editable });
}

function drawItems(visible, colours) {
  const rest = editable ? corrections.openAmong(visible) : visible;
  const all = inTime(editable ? [...rest, ...corrections.segments] : rest);
  items.replaceChildren(...all.map((one) => {
    const mine = one.origin !== undefined;
    const notes = one === chosen ? [...about(one), mine ? one.origin : null].filter(Boolean) : [];
    const entry = el("li", {}, el("button", { type: "button", class: "entry", onclick: () => choose(one) },
      el("i", { class: "dot" }), el("span", { class: "when" }, span(one)), el("span", { class: "label" }, one.label),
      el("span", { class: "sure" }, mine ? "✓" : said(one)), notes.length ? el("small", {}, notes.join(" · ")) : null));
    entry.style.setProperty("--own", `var(--${colours.get(one.label) ?? "muted"})`);
    entry.classList.toggle("chosen", one === chosen);
    if (editable && one === chosen) entry.append(editTools(one, mine));
    return entry;
  }));
}

function drawCurves(colours) {
  const of = (kind) => video.curves.filter((one) => one.kind === kind && (kind === "attention" || colours.has(one.label)));
  const label = chosen?.label ?? video.tags?.[0] ?? [...colours.keys()][0];
  const mine = (kind) => of(kind).filter((one) => one.label === label);
  const targets = mine("target"), deltas = mine("delta");
  const charts = [];
  for (const kind of ["activation", "attention", "target", "delta"]) {
    lanesShown[kind].field.hidden = !video.curves.some((one) => one.kind === kind);
  }
  if (lanesShown.activation.checked && of("activation").length) charts.push({ title: "How strongly each class is seen",
    why: "The model's activation, snippet by snippet: what instances are cut from.",
    series: of("activation").map((one) => ({ name: one.label, colour: colours.get(one.label), values: one.values })) });
  if (lanesShown.attention.checked && of("attention").length) charts.push({ title: "Attention: is anything going on?",
    why: "How much each snippet matters to the model, whatever the class.",
    series: of("attention").map((one) => ({ name: "", colour: "muted", values: one.values })) });
  if (lanesShown.target.checked && targets.length) charts.push({ title: `What it was taught: ${label}`,
    why: "Pseudo labels, one curve for each time they were made; the newest is the strongest.",
    series: targets.map((one, n) => ({ name: one.name, colour: colours.get(label), values: one.values,
      alpha: 0.25 + 0.75 * ((n + 1) / targets.length), fill: n === targets.length - 1 })) });
  if (lanesShown.delta.checked && deltas.length) {
    const { name, values } = deltas.at(-1);
    charts.push({ title: "What the last labels changed", signed: true, why: "Δ: labels now minus those before.",
      series: [{ name: `more (${name})`, colour: "more", values: values.map((x) => Math.max(x, 0)) },
        { name: "less", colour: "less", values: values.map((x) => Math.min(x, 0)) }] });
  }
  curves.draw(charts, video.grid, gutter());
}

const gutter = () => parseFloat(getComputedStyle(area).getPropertyValue("--gutter"));

function moved() {
  if (!video) return;
  const share = axis.share(player.time);
  head.hidden = share < -0.001 || share > 1.001;
  head.style.left = `calc(var(--gutter) + (100% - var(--gutter)) * ${share})`;
  position.textContent = `${clock(player.time)} / ${clock(video.duration)}`;
  curves.at(pointer.seconds ?? player.time);
  link();
}

// ---- choosing ------------------------------------------------------------------------------------------------------

const everything = () => (editable ? [...corrections.openAmong(shown()), ...corrections.segments] : shown());

function choose(one) {
  chosen = one;
  if (one) {
    axis.reveal(one.start, one.end);
    player.seek(one.start);
  }
  player.setLoop(one && looping ? one : null);
  draw();
  items.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = inTime(everything());
  if (!all.length) return;
  const now = all.indexOf(chosen);
  if (now >= 0) return choose(all[clamp(now + by, 0, all.length - 1)]);
  const next = by > 0 ? all.find((one) => one.start > player.time) : all.findLast((one) => one.start < player.time);
  return choose(next ?? (by > 0 ? all[0] : all.at(-1)));
}

// ---- keys ----------------------------------------------------------------------------------------------------------

const keys = {
  " ": () => player.toggle(),
  ArrowLeft: (event) => player.seek(player.time - (event.shiftKey ? 0.1 : 1)),
  ArrowRight: (event) => player.seek(player.time + (event.shiftKey ? 0.1 : 1)),
  n: () => step(1),
  p: () => step(-1),
  l: () => { looping = !looping; player.setLoop(looping ? chosen : null); },
  "+": () => axis.zoom(1.6, at()),
  "=": () => axis.zoom(1.6, at()),
  "-": () => axis.zoom(1 / 1.6, at()),
  0: () => axis.fit(),
  Escape: () => choose(null),
  "?": () => help.showModal(),
  ...(many ? { j: () => another(1), k: () => another(-1), "/": () => { document.body.classList.add("listing"); list.search.focus(); } } : {}),
  ...(editable ? {
    a: () => accept(chosen), A: () => acceptAll(), x: () => remove(chosen), Delete: () => remove(chosen), Backspace: () => remove(chosen),
    "[": () => chosen && moveEdge(chosen, "start", player.time, true), "]": () => chosen && moveEdge(chosen, "end", player.time, true),
    i: () => add(), c: () => items.querySelector(".chosen select")?.focus(), u: () => undo("undo"), r: () => undo("redo"), d: () => done(),
  } : {}),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=range]):not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (editable && (event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase()) && !typing) {
    event.preventDefault();
    return undo(event.key.toLowerCase() === "y" || event.shiftKey ? "redo" : "undo");
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing || help.open) return undefined;
  const act = keys[event.key];
  if (!act || !video) return undefined;
  if (event.target.closest?.("[type=range]") && event.key.startsWith("Arrow")) return undefined; // the slider's own
  if (event.target.closest?.("button, summary") && event.key === " ") event.target.blur();
  event.preventDefault();
  return act(event);
});

function switchTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  setTheme(dark ? "light" : "dark");
  memory.set("theme", dark ? "light" : "dark");
  draw();
}

function setTheme(name) { if (name) document.documentElement.dataset.theme = name; }

// ---- videos, from the page or from the server ----------------------------------------------------------------------

function findHere({ q, offset, limit }) {
  const words = q.toLowerCase();
  const all = page.payloads.filter((one) => [one.name, ...(one.tags ?? [])].some((text) => text.toLowerCase().includes(words)));
  const videos = all.slice(offset, offset + limit).map((one) => ({ name: one.name, run: one.run, duration: one.duration,
    tags: one.tags, found: one.instances.filter((made) => made.stands).length }));
  return { total: all.length, videos };
}

async function openVideo(wanted, start = 0) {
  const number = ++asked;
  if (editable && corrections.unsaved) await corrections.save();
  let got, known;
  try {
    got = live ? await ask("/api/video", { run: wanted.run, name: wanted.name })
      : page.payloads.find((one) => one.name === wanted.name && (one.run ?? "") === (wanted.run ?? one.run ?? ""));
    known = editable ? await ask("/api/corrections", { name: wanted.name }) : null;
  } catch (error) {
    if (number === asked) tell(error.message);
    return;
  }
  if (number !== asked) return;
  if (!got) return void tell(`There is no video called ${wanted.name} here.`);
  tell(null);
  video = got;
  chosen = null;
  controls.reset();
  controls.draw(video.settings);
  if (known) corrections.open(video.name, known);
  axis.reset(video.duration);
  player.load(video.video, video.name, video.duration);
  document.body.classList.remove("listing");
  list.mark(video);
  draw();
  axis.fit();
  player.seek(start);
}

function another(by) {
  const next = list.beside(by);
  if (next) openVideo(next);
}

let waiting = null;
function recompute() {
  clearTimeout(waiting);
  controls.state.textContent = "…";
  waiting = setTimeout(async () => {
    const number = ++asked, { name, run } = video;
    try {
      const got = await ask("/api/video", { run, name, ...controls.query });
      if (number !== asked) return; // the latest answer counts
      video = got;
      controls.state.textContent = Object.keys(controls.query).length ? "changed" : "";
      tell(null);
    } catch (error) {
      if (number !== asked) return;
      controls.state.textContent = "";
      tell(error.message);
    }
    chosen = null;
    player.setLoop(null);
    controls.draw(video.settings);
    draw();
  }, 180);
}

function tell(text) {
  message.hidden = !text;
  message.textContent = text ?? "";
}

// ---- links to a video and a time -----------------------------------------------------------------------------------

let linked = "";
let linkTimer = null;
function link() {
  if (!video || player.playing) return;
  clearTimeout(linkTimer);
  linkTimer = setTimeout(() => {
    const place = new URLSearchParams({ ...(video.run ? { run: video.run } : {}), video: video.name, t: player.time.toFixed(1) });
    linked = `#${place}`;
    history.replaceState(null, "", linked);
  }, 200);
}

function follow() {
  const place = new URLSearchParams(location.hash.slice(1));
  const name = place.get("video"), start = Number(place.get("t")) || 0;
  if (!name || location.hash === linked) return false;
  openVideo({ name, run: place.get("run") ?? undefined }, start);
  return true;
}

// ---- editing -------------------------------------------------------------------------------------------------------

function accept(one) {
  if (!one || one.origin !== undefined) return;
  chosen = corrections.accept(one);
  draw();
}

function acceptAll() {
  const rest = corrections.openAmong(shown());
  if (!rest.length) return;
  corrections.edit(() => rest.forEach((one) => corrections.add(one, "accepted")));
  draw();
}

function remove(one) {
  if (!one) return;
  const after = inTime(everything());
  const next = after[after.indexOf(one) + 1] ?? null;
  if (one.origin === undefined) corrections.dismissed.push(one);
  else corrections.edit(() => { corrections.segments = corrections.segments.filter((other) => other !== one); });
  choose(next);
}

// a found instance that is changed becomes a corrected one
function own(one, origin) {
  if (one.origin === undefined) corrections.add(one, origin);
  else if (one.origin !== "added") one.origin = origin;
  return one.origin === undefined ? corrections.segments.at(-1) : one;
}

let before = null; // a drag is one step to undo
function moveEdge(one, side, seconds, final) {
  if (!editable) return;
  const time = Math.round(clamp(seconds, side === "start" ? 0 : one.start + 0.1, side === "start" ? one.end - 0.1 : video.duration) * 100) / 100;
  if (!final) {
    before ??= one[side];
    one[side] = time;
    lanes.place();
    player.seek(time);
    return;
  }
  if (before !== null) one[side] = before;
  const was = { start: one.start, end: one.end };
  corrections.edit(() => {
    chosen = own(one, "moved");
    chosen[side] = time;
  });
  if (one !== chosen) Object.assign(one, was); // the model's own stays as it was
  before = null;
  player.setLoop(looping ? chosen : null);
  draw();
}

function add() {
  const label = chosen?.label ?? video.tags?.[0] ?? video.classes[0];
  const start = clamp(player.time, 0, video.duration - 0.1);
  const made = { start: Math.round(start * 100) / 100, end: Math.round(Math.min(start + 2, video.duration) * 100) / 100, label };
  corrections.edit(() => corrections.add(made, "added"));
  choose(corrections.segments.at(-1));
}

function relabel(one, label) {
  corrections.edit(() => {
    chosen = own(one, "relabelled");
    chosen.label = label;
  });
  if (one !== chosen) corrections.dismissed.push(one);
  draw();
}

function undo(which) {
  if (corrections[which]()) choose(null);
}

async function done() {
  corrections.edit(() => { corrections.done = true; });
  await corrections.save();
  const next = list.beside(1);
  list.refresh();
  if (next && !corrections.unsaved) openVideo(next);
}

function editTools(one, mine) {
  return el("div", { class: "tools" },
    mine ? null : button("Accept", "Accept (a)", () => accept(one), "solid"),
    button("Delete", "Delete (x)", () => remove(one)),
    el("select", { "aria-label": "Class", title: "Class (c)", onchange: (event) => relabel(one, event.target.value) },
      video.classes.map((name) => el("option", { value: name, selected: name === one.label }, name))));
}

const STATES = { clean: "Nothing corrected yet", saved: "Saved", unsaved: "Saving …" };

function drawEdits(rest = true) {
  if (!editable || !video) return;
  const { state } = corrections;
  const trouble = state === "conflict" ? "Somebody else has changed this video since you opened it. Your edits are not saved."
    : state === "offline" ? `Not saved. ${corrections.why} Trying again …` : null;
  editor.replaceChildren(...[
    el("p", { class: trouble ? "trouble" : "state", role: "status" }, trouble ?? STATES[state] + (corrections.done ? " · done" : "")),
    state === "conflict" ? el("div", { class: "tools" }, button("Take theirs", "Forget my edits", takeTheirs), button("Keep mine", "Save mine over theirs", keepMine, "solid")) : null,
    el("div", { class: "tools" },
      button("Accept all shown", "Accept all shown (Shift A)", acceptAll, "solid"), button("Add", "Add one at the mark (i)", add),
      button("Undo", "Undo (u)", () => undo("undo")), button("Redo", "Redo (r)", () => undo("redo")),
      button("Done, next", "This video is done: next one (d)", done)),
  ].filter(Boolean));
  if (rest) {
    if (chosen?.origin !== undefined && !corrections.segments.includes(chosen)) chosen = null;
    const colours = palette();
    drawItems(shown(), colours);
    drawLanes(shown(), colours);
  }
}

async function takeTheirs() {
  memory.set(`draft.${video.name}`, null);
  corrections.open(video.name, await ask("/api/corrections", { name: video.name }));
  draw();
}

async function keepMine() {
  corrections.revision = (await ask("/api/corrections", { name: video.name })).revision;
  corrections.state = "unsaved";
  await corrections.save();
}

window.addEventListener("beforeunload", (event) => {
  if (!editable || !corrections.unsaved) return;
  corrections.save();
  event.preventDefault();
});

// ---- begin ---------------------------------------------------------------------------------------------------------

setTheme(memory.get("theme"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.addEventListener("resize", () => { lanes.place(); if (video) drawCurves(palette()); });
window.addEventListener("hashchange", follow);
list.refresh().then(() => {
  if (follow()) return;
  if (list.videos.length) openVideo(list.videos[0]);
  else tell("There is no video to show.");
});
