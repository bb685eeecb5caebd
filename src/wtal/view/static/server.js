// What the page asks of the server.

export async function ask(path, parameters, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, one]) => one !== undefined && one !== ""));
  let answer;
  try {
    answer = await fetch(`${path}?${query}`, { ...options, headers: { Accept: "application/json", ...options.headers } });
  } catch {
    throw new Error("The server does not answer. Is wtal serve still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(content.error ?? `The server answers ${answer.status}.`), { status: answer.status });
  return content;
}

export function findVideos(wanted) { return ask("/api/videos", wanted); }

export async function putCorrections(name, body) {
  try {
    const text = JSON.stringify(body); // which gets through even while the page is being closed, if it is small
    const options = { method: "PUT", body: text, keepalive: text.length < 60000, headers: { "Content-Type": "application/json" } };
    return { status: 200, ...await ask("/api/corrections", { name }, options) };
  } catch (error) {
    return { status: error.status ?? 0, why: error.message };
  }
}
