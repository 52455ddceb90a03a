// The keyboard: `?` shows what there is. Everything here is on the pages, too: a key
// presses a button or follows a link that stands there. Those of one letter or sign can be
// switched off beside the colours: the server then says so on the page.

const SHEET = [["?", "these keys"], ["Ctrl K", "go to a page, a setting, a person, a group or a chat (⌘K on a Mac)"], ["/", "search conversations and documents"], ["f", "filter or search this page"], ["j", "next entry"], ["k", "entry before"],
  ["a", "approve or allow the entry, or do what it offers first"], ["d", "deny the entry"], ["x", "select the entry"], ["o", "open the entry"], ["Esc", "close"]];

const make = (name, attributes, ...inside) => {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...inside);
  return e;
};

// open shows a dialog that is removed when it closes.
function open(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  dialog.showModal();
}

function sheet() {
  const list = make("dl", { class: "keys" });
  for (const [key, what] of SHEET) list.append(make("dt", {}, make("kbd", {}, key)), make("dd", {}, what));
  const close = make("button", { class: "quiet", autofocus: "" }, "Close");
  const hint = make("p", { class: "hint" }, "The menu behind your name switches keys of one letter off.");
  const dialog = make("dialog", { id: "keys", "aria-labelledby": "keys-h" }, make("h2", { id: "keys-h" }, "Keys"), list, hint, close);
  close.addEventListener("click", () => dialog.close());
  open(dialog);
}

// ---- the palette

// pages are those of the menus, and what is below them.
const pages = () => [...document.querySelectorAll('nav[aria-label="Pages"] li:not(.more) > a, #account .menu a')]
  .map((a) => ({ name: (a.querySelector("span") ?? a).textContent, url: a.href, kind: "Page" }));

const row = (a, kind, by) => ({ name: a.textContent, url: new URL(a.getAttribute("href"), location.href).href, kind, by });

const short = (variable) => variable.replace(/^GATEHOUSE_/, "");

// SOURCES are the pages that search, each with what its answer has found.
const SOURCES = {
  "/admin/settings": (found) => [...found.querySelectorAll(".hits .card")].map((e) => {
    const a = e.querySelector("h3 a"), by = e.querySelector(".hint .num")?.textContent;
    return row(a, ["Settings", by && by !== a.textContent ? short(by) : e.querySelector("h3 small")?.textContent].filter(Boolean).join(" · "), by);
  }),
  "/admin/people": (found) => [...found.querySelectorAll(".person h2 a")].map((a) => row(a, "Person")),
  "/admin/chats": (found) => [
    ...[...found.querySelectorAll(".hits li")].map((e) => row(e.querySelector("a"), e.querySelector("small").textContent)).filter((r) => r.kind !== "Person"),
    ...[...found.querySelectorAll('tr[id^="s-"] th a')].map((a) => row(a, "Chat"))],
};

const MOST = 8; // shown of each source

// rank sorts what is found by name, or by the name of a variable, before what only has the
// text in it.
function rank(r, text) {
  const names = [r.name, r.by ?? "", short(r.by ?? "")].map((n) => n.toLowerCase());
  return [(n) => n === text, (n) => n.startsWith(text), (n) => n.includes(text), () => true].findIndex((is) => names.some(is));
}

const best = (rows, text) => rows.sort((a, b) => rank(a, text) - rank(b, text));

// ask has the page at path search. A page that fails has found nothing.
const ask = (path, text) => new Promise((then) => {
  const x = new XMLHttpRequest();
  x.open("GET", `${path}?fragment=1&q=${encodeURIComponent(text)}`);
  x.responseType = "document";
  x.timeout = 20000;
  x.onload = () => then(x.status === 200 && x.response ? best(SOURCES[path](x.response), text).slice(0, MOST) : []);
  x.onerror = x.ontimeout = () => then([]);
  x.send();
});

// search asks the pages that this gateway has.
async function search(text) {
  const there = Object.keys(SOURCES).filter((path) => pages().some((p) => new URL(p.url).pathname === path));
  return best((await Promise.all(there.map((path) => ask(path, text)))).flat(), text);
}

function palette() {
  const what = "Page, setting, person, group or chat";
  const input = make("input", { type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-label": what, placeholder: what, autocomplete: "off", autofocus: "" });
  const list = make("div", { id: "found", class: "found", role: "listbox", "aria-label": "Found" });
  const none = make("p", { class: "hint", role: "status" });
  const dialog = make("dialog", { id: "palette", "aria-label": "Go to" }, input, list, none);
  let at = 0, asked = 0, timer = 0, found = [], pressed = false;
  const mark = () => {
    [...list.children].forEach((o, i) => o.setAttribute("aria-selected", String(i === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    if (list.children[at]) input.setAttribute("aria-activedescendant", list.children[at].id);
    else input.removeAttribute("aria-activedescendant");
  };
  // A place on this page gets the focus, which an open dialog would keep.
  const go = (r) => { dialog.close(); location.assign(r.url); };
  const show = (rows) => {
    found = rows;
    list.replaceChildren(...rows.map((r, i) => {
      const o = make("div", { role: "option", id: `found-${i}` }, make("bdi", {}, r.name), make("small", {}, ` ${r.kind}`));
      o.addEventListener("click", () => go(r));
      return o;
    }));
    mark();
  };
  const look = () => {
    const text = input.value.trim().toLowerCase(), mine = ++asked;
    const near = pages().filter((p) => p.name.toLowerCase().includes(text));
    at = 0;
    pressed = false;
    none.textContent = "";
    show(near);
    clearTimeout(timer);
    if (text) timer = setTimeout(async () => {
      const rows = await search(text);
      if (mine !== asked) return;
      show([...near, ...rows]);
      if (!found.length) none.textContent = "Nothing found.";
      else if (pressed) go(found[0]);
    }, 120);
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      at = Math.max(0, Math.min(found.length - 1, at + (e.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (e.key === "Enter" && !e.isComposing) {
      e.preventDefault();
      if (found[at]) go(found[at]);
      else pressed = true; // what is searched for is on its way
    }
  });
  dialog.addEventListener("close", () => { asked++; clearTimeout(timer); });
  open(dialog);
  look();
}

// A phone has no Ctrl: there a button opens it.
document.addEventListener("click", (e) => { if (e.target.closest("#goto")) palette(); });

// ---- entries

const entries = () => [...document.querySelectorAll("main :is(.request, .stuck, .person, .bot), main tbody tr[id]")].filter((e) => e.checkVisibility());
const current = () => document.activeElement?.closest("main :is(.request, .settled, .stuck, .person, .bot), main tbody tr[id]");

function step(by) {
  const all = entries(), here = current();
  let to = all[by > 0 ? 0 : all.length - 1];
  if (here) {
    const after = (e) => here.compareDocumentPosition(e) & (by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING);
    const rest = all.filter((e) => e !== here && after(e) && !here.contains(e));
    to = by > 0 ? rest[0] : rest.at(-1);
  }
  if (!to) return;
  if (!to.hasAttribute("tabindex")) to.tabIndex = -1;
  to.focus();
  to.scrollIntoView({ block: "nearest" });
}

const press = (...wanted) => {
  const here = current();
  for (const sel of wanted) {
    const e = here && [...here.querySelectorAll(sel)].find((b) => !b.closest(".pop") && !b.disabled);
    if (e) return e.click();
  }
};

// The field of the bar searches everything, the first one of a page that page.
const filter = () => document.querySelector("main input[type=search]");
const seek = () => document.getElementById("seek");
function focus(box) {
  if (!box) return palette();
  box.focus();
  box.select();
}

const typing = (e) => e.closest?.("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=button], [type=submit])");

document.addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === "k") {
    e.preventDefault();
    if (!document.querySelector("dialog[open]")) palette();
    return;
  }
  if (e.key === "Escape" && e.target === seek() && !e.isComposing) return e.target.blur();
  if (document.documentElement.dataset.letters === "off") return;
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.repeat && "adxo".includes(e.key) || document.querySelector("dialog[open]") || typing(e.target)) return;
  const does = {
    "?": sheet,
    "/": () => focus(seek() ?? filter()),
    f: () => filter() && focus(filter()),
    j: () => step(1),
    k: () => step(-1),
    a: () => press("button.primary"),
    d: () => press('button[formaction$="/deny"]', 'form[action$="/dismiss"] button'),
    x: () => press("input[type=checkbox]"),
    o: () => press("h2 a", "summary:not(.button)", "a"),
  }[e.key];
  if (!does) return;
  e.preventDefault();
  does();
});

// ---- copying

// offer puts a button behind what is there to be copied.
function offer() {
  for (const from of document.querySelectorAll("main .tip pre.exact, main .log pre.exact, main .sum")) {
    if (from.nextElementSibling?.matches(".copy-it")) continue;
    const button = make("button", { type: "button", class: "quiet copy-it" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(from.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(from);
        button.textContent = "Selected";
      }
      document.getElementById("say").textContent = button.textContent;
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    from.after(button);
  }
}
document.addEventListener("swap", () => { for (const b of document.querySelectorAll("main .copy-it")) b.remove(); });
document.addEventListener("swapped", offer);
offer();
document.documentElement.dataset.keys = "on";
