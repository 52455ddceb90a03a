// The panel, live. Every page works without this file: forms post and come
// back. With it a page refetches its own inside when the server says that
// something changed, swaps what differs, and leaves focus, open parts and half
// made choices alone.

const words = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
let fetching = null; // one refresh at a time
let again = false;
let posting = false; // a decision is under way: what it has to say is for its own answer
let last = Date.now(); // when the page was last fresh

const app = () => document.getElementById("app");
const say = (text) => { document.getElementById("say").textContent = text; };

// load asks for a document. XMLHttpRequest parses it without running anything
// and without the HTML-from-string sinks that the page's policy forbids.
function load(method, url, body) {
  return new Promise((done, fail) => {
    const x = new XMLHttpRequest();
    x.open(method, url);
    x.responseType = "document";
    x.timeout = 20000;
    x.onload = () => done(x);
    x.onerror = x.ontimeout = () => fail(new Error("no answer"));
    x.send(body);
  });
}

const isPage = (x) => x.status === 200 && Boolean(x.response?.getElementById("app"));

const withFragment = (url) => {
  const u = new URL(url, location.href);
  u.searchParams.set("fragment", "1");
  u.hash = "";
  return u.href;
};

// ---- times

function ago(seconds) {
  if (seconds < 45) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

// local rewrites the times below root in the reader's zone; UTC stays on hover.
function local(root) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = t.hasAttribute("data-ago") ? ago((Date.now() - at) / 1000) : (t.hasAttribute("data-clock") ? clock : words).format(at);
    if (t.textContent !== text) t.textContent = text;
  }
}

// ---- swapping

// Properties of a form give way to fields: the id of one with a field "id" is that field.
// What is read of a form is read from its attributes.
const key = (node) => (node.nodeType === 1 ? node.getAttribute("id") || "" : "");
const actionOf = (form) => form.getAttribute("action") ?? "";
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);

// Attributes that belong to the reader, not to the server.
const kept = (node, name) =>
  (node.nodeName === "DETAILS" && name === "open") || (name === "style" && node.dataset.tall !== undefined) || name === "data-tall";

function attributes(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !kept(from, name)) from.removeAttribute(name);
  for (const { name, value } of [...to.attributes]) if (from.getAttribute(name) !== value && !kept(from, name)) from.setAttribute(name, value);
}

// steps is how far behind node, keyed elements left out, one like want stands;
// Infinity when none does.
function steps(node, want) {
  for (let n = 0; node; node = node.nextSibling, n++) if (!key(node) && alike(node, want)) return n;
  return Infinity;
}

// morph makes from like to, keeping every element that is in both: matched by
// id, else by order and name. news collects keyed elements that are new.
function morph(from, to, news) {
  if (from.dataset?.kept !== undefined) return; // a stream writes in it
  attributes(from, to);
  const byKey = new Map();
  const wanted = new Set([...to.childNodes].map(key));
  for (const c of [...from.childNodes]) {
    if (!wanted.has(key(c))) c.remove();
    else if (key(c)) byKey.set(key(c), c);
  }
  from.normalize(); // what went may leave two texts side by side
  let here = from.firstChild;
  for (const want of [...to.childNodes]) {
    let have = key(want) ? byKey.get(key(want)) : here;
    if (!key(want)) {
      while (have && key(have)) have = have.nextSibling;
      // What stands here and comes no more gives way to what comes behind it.
      if (have && steps(have, want) < steps(want, have)) {
        while (!alike(have, want)) {
          const next = have.nextSibling;
          if (!key(have)) { if (have === here) here = next; have.remove(); }
          have = next;
        }
      }
    }
    if (have && alike(have, want)) {
      // A node that is moved loses the focus: what stands in its way goes instead.
      while (key(have) && here && here !== have && !key(here)) { const next = here.nextSibling; here.remove(); here = next; }
      if (have === here) here = here.nextSibling;
      else from.insertBefore(have, here);
      if (have.nodeType === 1) morph(have, want, news);
      else if (have.data !== want.data) have.data = want.data;
    } else {
      const added = document.importNode(want, true);
      from.insertBefore(added, here);
      if (key(added)) news.push(added);
    }
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

// whose is the id of the element that has something to say, or is around it.
const whose = (e) => e.closest("[id]")?.getAttribute("id");

// swap shows the inside of doc. Cards that shrink keep their height as long as
// they stand there, so that nothing moves under a finger.
function swap(doc) {
  const to = doc.getElementById("app");
  local(to);
  // What the page came with to say is said once: it stays long enough to be read.
  const flash = app().querySelector("#flash");
  if (flash && performance.now() < 20000 && !to.querySelector("#flash")) to.querySelector("main").prepend(flash.cloneNode(true));
  const tall = new Map([...document.querySelectorAll(".request")].map((c) => [c.id, c.getBoundingClientRect().height]));
  const news = [];
  const before = new Map([...document.querySelectorAll("[data-say]")].map((e) => [whose(e), e.dataset.say]));
  document.dispatchEvent(new Event("swap"));
  morph(app(), to, news);
  document.dispatchEvent(new Event("swapped"));
  if (doc.title) document.title = doc.title;
  for (const c of document.querySelectorAll(".settled")) {
    if (tall.has(c.id)) {
      c.dataset.tall = "";
      c.style.minHeight = `${tall.get(c.id)}px`;
    }
  }
  for (const c of document.querySelectorAll(".request[data-tall]")) {
    delete c.dataset.tall;
    c.style.minHeight = "";
  }
  for (const n of news) if (n.matches(".request, .stuck")) n.classList.add("new");
  const told = [...document.querySelectorAll("[data-say]")]
    .filter((e) => before.get(whose(e)) !== e.dataset.say).map((e) => e.dataset.say);
  dress();
  stream();
  return told;
}

// ---- an answer while it is made

let following = null; // the open stream: its address and EventSource

// stream shows the words of the answer that is being made as they come. What is
// kept of it stands in the list above, once the server says so.
function stream() {
  const place = document.getElementById("stream");
  if (following?.url === place?.dataset.stream) return;
  following?.source.close();
  following = null;
  if (!place) return;
  const source = new EventSource(place.dataset.stream);
  following = { url: place.dataset.stream, source };
  const words = place.querySelector(".words"), doing = place.querySelector(".doing");
  source.onerror = () => { // a refusal, as of a gateway that takes over, ends it; it tries again by itself otherwise
    if (source.readyState !== EventSource.CLOSED || following?.source !== source) return;
    following = null;
    setTimeout(stream, 2000);
  };
  source.onopen = () => { words.textContent = ""; };
  source.onmessage = (e) => {
    const event = JSON.parse(e.data);
    if (event.type === "text") words.textContent += event.content;
    else if (event.type === "session" || event.type === "gap") { words.textContent = ""; doing.textContent = ""; } // the turn begins, perhaps again
    else if (event.type === "tool_use_start") doing.textContent = "uses a tool";
    else if (event.type === "tool_result") { words.textContent = ""; soon(0); }
    else if (event.type === "permission_request" || event.type === "user_question") { doing.textContent = "waits for your answer below"; say("The reply waits for your answer"); soon(0); }
    else if (event.type === "message_stop") { place.removeAttribute("data-kept"); say("The answer is there"); soon(50); }
  };
}

// refresh fetches this page's inside and announces what is new.
async function refresh() {
  if (app().dataset.still !== undefined) return; // somebody writes in it
  if (fetching || posting) { again = true; return; }
  fetching = (async () => {
    try {
      const x = await load("GET", withFragment(location.href));
      if (x.status === 401) return location.reload(); // to the sign-in
      if (!isPage(x)) throw new Error("no page");
      const told = swap(x.response);
      if (told.length) say(told.join(". "));
      alive(true);
    } catch {
      alive(false);
    }
  })();
  await fetching;
  fetching = null;
  last = Date.now();
  if (again) { again = false; soon(300); }
}

let timer = 0;
function soon(wait) {
  if (timer) return;
  timer = setTimeout(() => { timer = 0; refresh(); }, wait);
}

// ---- decisions

// follow has a page renew itself while a form of it is still being sent: a file of gigabytes
// takes minutes, in which the page stays.
const follow = () => setInterval(() => { delete app().dataset.still; soon(0); }, 1000);

document.addEventListener("submit", async (e) => {
  const form = e.target, by = e.submitter;
  if (form.dataset.follow !== undefined) follow();
  if (form.getAttribute("method")?.toLowerCase() !== "post" || form.dataset.plain !== undefined || !app().dataset.events || actionOf(form).endsWith("/logout") || actionOf(form).endsWith("/password")) return;
  e.preventDefault();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  posting = true;
  const data = new URLSearchParams(new FormData(form, by));
  const url = by && by.hasAttribute("formaction") ? by.formAction : actionOf(form);
  const card = form.closest("[id].card, tr[id]")?.getAttribute("id");
  try {
    const x = await load("POST", withFragment(url), data);
    if (x.status === 401 || x.status === 403) return location.reload(); // signed out, or the form is of another session
    if (!isPage(x)) throw new Error("no page");
    for (const d of document.querySelectorAll(".confirm[open]")) d.open = false;
    const flash = x.response.getElementById("flash");
    flash?.remove(); // it would push the page down
    swap(x.response);
    const stays = card && document.getElementById(card);
    const undo = stays?.querySelector("form[data-left]");
    say((flash ? flash.textContent.trim() : "") + (undo ? " Undo is offered for 10 seconds." : ""));
    if (!undo) toast(flash);
    for (const all of form.querySelectorAll('input[name="all"]')) all.checked = false; // it meant those of then
    if (by?.name === "reset") { // the field goes back, whatever was written in it
      const field = document.getElementById(by.value);
      for (const o of field?.options || []) o.selected = o.defaultSelected;
      if (field && !field.options) field.value = field.defaultValue;
    }
    const bad = document.querySelector("main [aria-invalid]");
    bad?.closest("details")?.setAttribute("open", ""); // it was closed above
    bad?.focus();
    // The button that was pressed may be gone: the focus stays near it.
    if (!document.activeElement || document.activeElement === document.body) {
      (stays || document.getElementById("main")).focus({ preventScroll: true });
    }
  } catch {
    const note = document.createElement("p");
    note.className = "flash bad";
    note.textContent = "The gateway returned no valid answer. Check whether the change was made, then try again.";
    toast(note);
    say(note.textContent);
    alive(false);
  } finally {
    form.removeAttribute("aria-busy");
    posting = false;
    if (again && !fetching) { again = false; soon(300); }
  }
});

// One box marks all rows of the page.
document.addEventListener("change", (e) => {
  if (e.target.dataset?.markAll !== undefined) for (const box of document.querySelectorAll(".mark-it")) box.checked = e.target.checked;
});

// toast shows what a decision had to say beside the page for a while.
let leaving = 0;
function toast(flash) {
  const place = document.getElementById("toast");
  clearTimeout(leaving);
  place.replaceChildren();
  if (!flash) return;
  flash.removeAttribute("role"); // it is said apart
  place.append(flash);
  leaving = setTimeout(() => place.replaceChildren(), flash.matches(".good") ? 8000 : 20000);
}

// ---- small manners

// dress gives fresh elements what the server can't know.
function dress() {
  for (const f of document.querySelectorAll("[data-left]:not([data-until])")) {
    f.dataset.until = String(Date.now() + Number(f.dataset.left) * 1000);
  }
  const badges = [...document.querySelectorAll("nav .badge:not(.urgent)")]; // what waits for a decision
  const waiting = badges.reduce((n, b) => n + Number(b.firstChild.data), 0);
  const plain = document.title.replace(/^\(\d+\) /, "");
  document.title = waiting ? `(${waiting}) ${plain}` : plain;
  if (heardOnce) alive(connected);
}

let touched = 0;
for (const type of ["pointermove", "pointerdown", "keydown"]) addEventListener(type, () => { touched = Date.now(); }, { passive: true });

setInterval(() => {
  let over = false;
  for (const f of document.querySelectorAll("[data-until]")) {
    const left = Math.max(0, Math.ceil((Number(f.dataset.until) - Date.now()) / 1000));
    const undo = f.nodeName === "FORM";
    const text = undo ? ` (${left} s)` : `${left} s`;
    const span = undo ? f.querySelector(".left") : f.matches(".left") && f;
    if (span && span.textContent !== text) span.textContent = text;
    if (left === 0) { over = true; if (undo) f.hidden = true; }
  }
  // What is over leaves the list when no hand is on the page.
  if (over && Date.now() - touched > 2000) soon(0);
}, 500);
setInterval(() => local(document), 20000);
// Some things change without a ring (how much waits, when a bot last
// succeeded): a page that is looked at asks now and then.
setInterval(() => {
  const wait = Number(app().dataset.every) * 1000;
  if (app().dataset.events && document.visibilityState === "visible" && Date.now() - last >= wait) soon(0);
}, 1000);

document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape") return;
  toast(null);
  const open = document.activeElement?.closest("details.confirm[open], details.account[open]");
  if (open) { open.open = false; open.querySelector("summary").focus(); }
});
document.addEventListener("click", (e) => {
  if (e.target.closest("#toast")) toast(null);
  for (const d of document.querySelectorAll("details.confirm[open], details.account[open]")) if (!d.contains(e.target)) d.open = false;
});

// ---- news

let connected = false, heardOnce = false;
function alive(on) {
  connected = on;
  heardOnce = true;
  const p = document.getElementById("live");
  if (!p) return;
  p.hidden = false;
  p.classList.toggle("lost", !on);
  const text = on ? "Live" : "Connecting";
  if (p.lastElementChild.textContent !== text) p.lastElementChild.textContent = text;
}

// heard: something changed. What this page shows is fetched at once, what only
// the menu counts at most every five seconds.
function heard(topic) {
  const mine = app().dataset.topics.split(" ").includes(topic);
  soon(Math.max(mine ? 60 : 500, (mine ? 500 : 5000) - (Date.now() - last)));
}

// One tab listens and tells the others: browsers allow six connections to one
// host, and the seventh tab must still be able to load.
function listen() {
  const url = app().dataset.events;
  const channel = "BroadcastChannel" in window && navigator.locks ? new BroadcastChannel("gatehouse") : null;
  let source = null; // in the tab that listens
  // Between a page's making and the stream's opening, and while the line was
  // down, nobody heard: each "on" is a reason to look.
  const told = (text) => {
    if (text === "on") { alive(true); soon(0); }
    else if (text === "off") alive(false);
    else heard(text);
  };
  const tell = (text) => { channel?.postMessage(text); told(text); };
  const open = () => {
    source = new EventSource(url);
    source.onopen = () => tell("on");
    source.onmessage = (e) => tell(e.data);
    source.onerror = () => {
      tell("off");
      if (source.readyState === EventSource.CLOSED) { setTimeout(open, 5000); soon(0); }
    };
  };
  addEventListener("pagehide", () => source?.close());
  if (!channel) return open();
  channel.onmessage = (e) => {
    if (e.data !== "who") told(e.data);
    else if (source?.readyState === EventSource.OPEN) channel.postMessage("on");
  };
  channel.postMessage("who");
  navigator.locks.request("gatehouse-events", () => new Promise(() => open()));
}

addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
local(document);
dress();
stream();
if (app().dataset.events) listen();
