// The phones page: one column per person, fed by one EventSource.
// Everything that people or bots wrote is placed by textContent, never as markup.
import { styled } from "./styled.js";

const $ = (root, selector) => root.querySelector(selector);
const main = document.getElementById("phones");
const link = document.getElementById("link");
const phones = new Map(); // person id → Phone
let world = null; // bot, group, claim, menu

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long" });
const hue = (id) => "hue-" + Math.abs(Number(id)) % 7;

function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function initials(name) {
  const words = [...new Intl.Segmenter("en", { granularity: "word" }).segment(name)].filter((w) => w.isWordLike);
  const first = (w) => [...w.segment][0].toUpperCase();
  if (!words.length) return "?";
  return first(words[0]) + (words.length > 1 ? first(words[words.length - 1]) : "");
}

function paint(avatar, id, name) {
  avatar.className = "avatar " + hue(id);
  avatar.textContent = initials(name);
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const result = await response.json();
  if (!response.ok) throw new Error(result.error);
  return result;
}

// A Chat is what one phone knows of one conversation.
class Chat {
  constructor(id, title, kind) {
    Object.assign(this, { id, title, kind, messages: new Map(), drafts: [], typing: [], unread: 0 });
  }

  load(screen) {
    this.messages = new Map((screen.messages ?? []).map((m) => [m.id, m]));
    this.drafts = screen.drafts ?? [];
    this.typing = screen.typing ?? [];
  }

  // live drops what has faded: drafts after half a minute, typing after five seconds.
  live() {
    const now = Date.now();
    this.drafts = this.drafts.filter((d) => Date.parse(d.until) > now);
    this.typing = this.typing.filter((t) => Date.parse(t.until) > now);
  }
}

class Phone {
  constructor(person) {
    this.person = person;
    this.node = document.getElementById("phone").content.firstElementChild.cloneNode(true);
    this.node.id = "phone-" + person.id;
    this.dm = new Chat(0, world.bot.first_name, "private");
    this.group = new Chat(world.group.id, world.group.title, "group");
    this.open = this.dm;
    this.answering = null;
    this.log = $(this.node, ".log");
    this.input = $(this.node, "textarea");
    this.name();
    this.tabs();
    this.wire();
    main.append(this.node);
  }

  name() {
    const { person } = this;
    const label = "Phone of " + person.name;
    this.node.setAttribute("aria-label", label);
    paint($(this.node, ".who .avatar"), person.id, person.name);
    $(this.node, ".who-name").textContent = person.name;
    $(this.node, ".who-id").textContent = "id " + person.id + (person.note ? " · " + person.note : "");
    const field = $(this.node, ".line label");
    this.input.id = "text-" + person.id;
    field.htmlFor = this.input.id;
    field.textContent = "Message from " + person.name;
  }

  tabs() {
    const bar = $(this.node, ".tabs");
    this.tab = new Map();
    for (const chat of [this.dm, this.group]) {
      const button = el("button", "tab");
      button.type = "button";
      button.role = "tab";
      button.append(el("span", "", chat.kind === "group" ? "Group" : "Bot"), el("b", "badge"));
      button.addEventListener("click", () => this.show(chat));
      button.addEventListener("keydown", (e) => {
        if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
        const other = chat === this.dm ? this.group : this.dm;
        this.show(other);
        this.tab.get(other).focus();
      });
      this.tab.set(chat, button);
      bar.append(button);
    }
  }

  wire() {
    const form = $(this.node, "form");
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      this.send();
    });
    this.input.addEventListener("keydown", (e) => {
      this.shift = e.shiftKey;
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
        e.preventDefault();
        this.send();
      } else if (e.key === "Escape") {
        this.answer(null);
      }
    });
    // Keyboards on glass may announce Enter only here.
    this.input.addEventListener("beforeinput", (e) => {
      if (e.inputType !== "insertLineBreak" || this.shift) return;
      e.preventDefault();
      this.send();
    });
    this.input.addEventListener("input", () => this.grow());
    $(this.node, ".answering button").addEventListener("click", () => this.answer(null));
    const screen = $(this.node, ".screen");
    const down = $(this.node, ".down");
    screen.addEventListener("scroll", () => (down.hidden = this.atEnd(120)));
    down.addEventListener("click", () => screen.scrollTo({ top: screen.scrollHeight, behavior: "smooth" }));
  }

  atEnd(slack) {
    const s = $(this.node, ".screen");
    return s.scrollHeight - s.scrollTop - s.clientHeight < slack;
  }

  grow() {
    this.input.rows = Math.min(6, this.input.value.split("\n").length);
    $(this.node, ".write").classList.toggle("ready", this.input.value.trim() !== "");
  }

  show(chat) {
    this.open = chat;
    chat.unread = 0;
    this.answer(null);
    this.chips();
    this.render();
    const screen = $(this.node, ".screen");
    screen.scrollTop = screen.scrollHeight;
  }

  // chips are texts to insert; none is sent by itself.
  chips() {
    const bar = $(this.node, ".chips");
    bar.replaceChildren();
    const claim = world.claim === "" ? [] : ["/claim " + (world.claim ?? "CODE")];
    const common = ["/start", "/help", ...claim];
    const more = world.menu.filter((c) => !["/start", "/help", "/claim"].includes(c));
    const texts = this.open.kind === "group" ? ["@" + world.bot.username + " ", ...common.slice(1, 2)] : [...common, ...more];
    for (const text of texts) {
      const chip = el("button", "chip", text.trim());
      chip.type = "button";
      chip.addEventListener("click", () => this.insert(text));
      bar.append(chip);
    }
  }

  insert(text) {
    this.input.value = text;
    this.grow();
    this.input.focus();
    const at = text.indexOf("CODE");
    if (at >= 0) this.input.setSelectionRange(at, at + 4);
  }

  answer(message) {
    this.answering = message;
    const box = $(this.node, ".answering");
    box.hidden = !message;
    if (!message) return;
    $(box, "b").textContent = this.nameOf(message.from);
    $(box, "span").textContent = message.text ?? message.file ?? "";
    this.input.focus();
  }

  nameOf(from) {
    return [from.first_name, from.last_name].filter(Boolean).join(" ");
  }

  async send() {
    const text = this.input.value;
    if (!text.trim()) return;
    const reply = this.answering?.id ?? 0;
    this.input.value = "";
    this.answer(null);
    this.grow();
    await this.attempt(async () => {
      await post("/send", { from: this.person.id, chat: this.open.id, text, reply_to: reply });
    }, () => (this.input.value = text));
  }

  async attempt(work, undo) {
    const problem = $(this.node, ".problem");
    problem.hidden = true;
    try {
      await work();
    } catch (e) {
      undo?.();
      problem.textContent = e.message;
      problem.hidden = false;
    }
  }

  // take follows one change in this phone's chats.
  take(chat, change) {
    const now = change.message;
    switch (change.kind) {
      case "message":
        chat.messages.set(now.id, now);
        if (chat !== this.open) chat.unread++;
        break;
      case "edit":
      case "reaction":
        if (chat.messages.has(now.id)) chat.messages.set(now.id, now);
        break;
      case "delete":
        chat.messages.delete(change.message_id);
        break;
      case "draft":
        chat.drafts = chat.drafts.filter((d) => change.draft && d.id !== change.draft.id);
        if (change.draft) chat.drafts.push(change.draft);
        break;
      case "typing":
        chat.typing = change.typing.action ? [change.typing] : [];
        break;
      case "answer":
        if (change.answer.user === this.person.id && change.answer.text) this.toast(change.answer.text);
        return;
    }
    this.render();
  }

  toast(text) {
    const box = $(this.node, ".toast");
    box.textContent = text;
    box.hidden = false;
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => (box.hidden = true), 4000);
  }

  render() {
    const screen = $(this.node, ".screen");
    const stay = this.atEnd(80);
    this.open.live();
    this.header();
    this.messages();
    const drafts = $(this.node, ".drafts");
    drafts.replaceChildren(...this.open.drafts.map((d) => this.draft(d)));
    $(this.node, ".empty").hidden = this.open.messages.size > 0;
    if (stay) screen.scrollTop = screen.scrollHeight;
  }

  header() {
    const chat = this.open;
    const bot = chat.kind === "private";
    paint($(this.node, ".bar .avatar"), bot ? world.bot.id : chat.id, chat.title);
    $(this.node, ".bar-title").textContent = chat.title;
    const state = $(this.node, ".bar-state");
    const typing = chat.typing.length > 0;
    const words = typing ? (bot ? "typing" : world.bot.first_name + " is typing") : bot ? "bot" : phones.size + " people and a bot";
    state.classList.toggle("busy", typing);
    if (state.textContent !== words) state.textContent = words;
    this.log.setAttribute("aria-label", "Messages with " + chat.title);
    $(this.node, ".screen").setAttribute("aria-label", chat.title);
    for (const [c, button] of this.tab) {
      button.setAttribute("aria-selected", String(c === chat));
      button.tabIndex = c === chat ? 0 : -1;
      const badge = $(button, ".badge");
      badge.textContent = c.unread ? String(Math.min(c.unread, 99)) : "";
      button.setAttribute("aria-label", (c.kind === "group" ? c.title : "Private chat with " + c.title) + (c.unread ? ", " + c.unread + " new" : ""));
    }
  }

  // messages brings the list in line, touching only rows that changed, so
  // that a screen reader hears news and nothing twice.
  messages() {
    const rows = new Map([...this.log.children].map((r) => [r.dataset.key, r]));
    let before = null;
    let lastDay = "";
    let previous = null;
    const want = [];
    for (const m of this.open.messages.values()) {
      const today = day.format(new Date(m.at));
      if (today !== lastDay) want.push(["day " + today, today, () => this.pill(today)]);
      lastDay = today;
      const joined = previous && previous.from.id === m.from.id && !previous.service && Date.parse(m.at) - Date.parse(previous.at) < 300000;
      const key = this.open.id + "/" + m.id;
      want.push([key, JSON.stringify([m, joined]), () => (m.service ? this.pill(m.service) : this.row(m, joined))]);
      previous = m;
    }
    const keep = new Set(want.map(([key]) => key));
    for (const [key, row] of rows) if (!keep.has(key)) row.remove();
    for (const [key, print, build] of want) {
      let row = rows.get(key);
      if (!row || row.print !== print) {
        const fresh = build();
        fresh.dataset.key = key;
        fresh.print = print;
        if (row) row.replaceWith(fresh);
        row = fresh;
      }
      if (row.previousElementSibling !== before || !row.isConnected) {
        if (before) before.after(row);
        else this.log.prepend(row);
      }
      before = row;
    }
  }

  pill(text) {
    const row = el("li", "pill");
    row.append(el("span", "", text));
    return row;
  }

  row(m, joined) {
    const own = m.from.id === this.person.id;
    const row = el("li", "row" + (own ? " own" : "") + (joined ? " joined" : ""));
    if (this.open.kind === "group" && !own) {
      const avatar = el("span", "avatar");
      paint(avatar, m.from.id, this.nameOf(m.from));
      avatar.setAttribute("aria-hidden", "true");
      row.append(avatar);
    }
    const column = el("div", "column");
    const bubble = el("div", "bubble");
    if (this.open.kind === "group" && !own && !joined) bubble.append(el("p", "name " + hue(m.from.id), this.nameOf(m.from)));
    if (m.forward) bubble.append(el("p", "forward", "Forwarded from " + m.forward));
    if (m.reply_to) bubble.append(this.quoted(m));
    if (m.file) bubble.append(el("p", "file", m.file));
    const text = el("div", "text");
    text.append(styled(m.text ?? "", m.entities ?? [], (command) => this.insert(command)));
    bubble.append(text, this.meta(m, own));
    if (m.reactions?.length) bubble.append(el("p", "reactions", m.reactions.map((r) => r.emoji.join(" ")).join(" ")));
    column.append(bubble);
    if (m.buttons?.length) column.append(this.keyboard(m));
    row.append(column, this.replyButton(m));
    return row;
  }

  quoted(m) {
    const box = el("div", "quoted");
    box.append(el("b", "", m.reply_name ?? ""), el("span", "", m.quote ?? m.reply_text ?? ""));
    return box;
  }

  meta(m, own) {
    const meta = el("p", "meta");
    if (m.edits) meta.append("edited ");
    const time = el("time", "", clock.format(new Date(m.at)));
    time.dateTime = m.at;
    meta.append(time);
    if (own) {
      const ticks = el("span", "ticks");
      ticks.setAttribute("aria-hidden", "true");
      meta.append(ticks);
    }
    return meta;
  }

  replyButton(m) {
    const button = el("button", "reply");
    button.type = "button";
    button.setAttribute("aria-label", "Answer this message");
    button.addEventListener("click", () => this.answer(m));
    return button;
  }

  keyboard(m) {
    const board = el("div", "keyboard");
    for (const row of m.buttons) {
      const line = el("div", "keys");
      for (const b of row) {
        const key = el("button", "key" + (b.url ? " link" : ""), b.text);
        key.type = "button";
        key.addEventListener("click", () => this.press(m, b, key));
        line.append(key);
      }
      board.append(line);
    }
    return board;
  }

  async press(m, b, key) {
    if (b.url) {
      if (/^https?:/i.test(b.url)) window.open(b.url, "_blank", "noopener,noreferrer");
      return;
    }
    key.classList.add("busy");
    await this.attempt(() => post("/press", { from: this.person.id, chat: this.open.id, message: m.id, data: b.callback_data }));
    setTimeout(() => key.classList.remove("busy"), 600);
  }

  draft(d) {
    const row = el("li", "row draft");
    const column = el("div", "column");
    const bubble = el("div", "bubble");
    const text = el("div", "text");
    text.append(styled(d.text || "Thinking…", d.entities ?? [], () => {}));
    bubble.append(text, el("p", "meta", "writing"));
    column.append(bubble);
    row.append(column);
    return row;
  }
}

function phoneFor(person) {
  let phone = phones.get(person.id);
  if (!phone) {
    phone = new Phone(person);
    phones.set(person.id, phone);
    const jump = el("a", "jump");
    jump.href = "#phone-" + person.id;
    const avatar = el("span", "avatar");
    paint(avatar, person.id, person.name);
    avatar.setAttribute("aria-hidden", "true");
    jump.append(avatar, el("span", "", person.name));
    document.getElementById("people").append(jump);
  }
  return phone;
}

function begin(state) {
  world = state;
  for (const person of state.people) {
    const phone = phoneFor(person);
    phone.dm.load(state.private[person.id]);
    phone.group.load(state.group);
    phone.show(phone.open);
  }
}

function follow(change) {
  if (change.kind === "user") {
    const a = change.user;
    const phone = phoneFor({ id: a.id, name: [a.first_name, a.last_name].filter(Boolean).join(" "), username: a.username });
    phone.group.load({ messages: [...(phones.values().next().value?.group.messages.values() ?? [])] });
    for (const p of phones.values()) p.show(p.open);
    return;
  }
  if (change.chat === world.group.id) {
    for (const phone of phones.values()) phone.take(phone.group, change);
  } else if (change.bot === world.bot.id) {
    const phone = phones.get(change.chat);
    phone?.take(phone.dm, change);
  }
}

const source = new EventSource("/events");
source.addEventListener("open", () => (link.textContent = "live"));
source.addEventListener("error", () => (link.textContent = "connecting again…"));
source.addEventListener("state", (e) => begin(JSON.parse(e.data)));
source.addEventListener("claim", (e) => {
  world.claim = JSON.parse(e.data);
  for (const phone of phones.values()) phone.chips();
});
source.addEventListener("change", (e) => follow(JSON.parse(e.data)));

// What fades by itself: look again every second while something is shown.
setInterval(() => {
  for (const phone of phones.values()) {
    if (phone.open.drafts.length || phone.open.typing.length) phone.render();
  }
}, 1000);

document.getElementById("add").addEventListener("submit", async (e) => {
  e.preventDefault();
  const field = document.getElementById("add-name");
  field.setCustomValidity("");
  try {
    const person = await post("/people", { name: field.value });
    field.value = "";
    document.getElementById("phone-" + person.id)?.scrollIntoView({ behavior: "smooth", inline: "center" });
  } catch (problem) {
    field.setCustomValidity(problem.message);
    field.reportValidity();
  }
});
document.getElementById("add-name").addEventListener("input", (e) => e.target.setCustomValidity(""));
