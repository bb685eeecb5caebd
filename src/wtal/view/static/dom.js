// Elements, words and times. Texts from files only ever become text nodes: nothing here parses HTML.

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// 3723.41 -> 1:02:03.4, as a player shows it
export function clock(seconds, tenths = true) {
  const units = Math.round(Math.max(0, seconds) * (tenths ? 10 : 1));
  const perMinute = tenths ? 600 : 60;
  const minutes = Math.floor(units / perMinute);
  const rest = tenths ? ((units % perMinute) / 10).toFixed(1).padStart(4, "0") : String(units % 60).padStart(2, "0");
  const hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export const span = (one) => `${clock(one.start)} – ${clock(one.end)}`;

export const count = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

// the colour that a variable of the style sheet has now, for canvases
export function colour(name) {
  const probe = document.body.appendChild(el("i"));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function faded(rgb, alpha) {
  const [r, g, b] = rgb.match(/[\d.]+/g);
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

// what a browser remembers of this reader; one that forbids it forgets
export const memory = {
  get(key) {
    try { return localStorage.getItem(`wtal.${key}`); } catch { return null; }
  },
  set(key, value) {
    try {
      if (value === null) localStorage.removeItem(`wtal.${key}`);
      else localStorage.setItem(`wtal.${key}`, value);
    } catch { /* then not */ }
  },
};
