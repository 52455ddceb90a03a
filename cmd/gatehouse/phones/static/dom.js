// What every window needs of the page: nodes, colours, times, requests.
// Text that people or bots wrote is placed by textContent, never as markup.

export const $ = (root, selector) => root.querySelector(selector);
export const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
export const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long" });

export function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// hue is a colour that an id always has. Only its last digits count: a longer
// one is more than a number holds.
export const hue = (id) => "hue-" + Number(String(id).slice(-6).replace("-", "")) % 7;

function initials(name) {
  const words = [...new Intl.Segmenter("en", { granularity: "word" }).segment(name)].filter((w) => w.isWordLike);
  const first = (w) => [...w.segment][0].toUpperCase();
  if (!words.length) return "?";
  return first(words[0]) + (words.length > 1 ? first(words[words.length - 1]) : "");
}

export function paint(avatar, id, name) {
  avatar.className = "avatar " + hue(id);
  avatar.textContent = initials(name);
}

export async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const result = await response.json();
  if (!response.ok) throw new Error(result.error);
  return result;
}
