// One person's chat window: what all platforms' windows have in common. A
// platform's class says how its rows and its frame look.
import { $, day, el, paint, post } from "./dom.js";

// A Chat is what one window knows of one conversation.
class Chat {
  constructor(chat) {
    Object.assign(this, { id: chat.id, kind: chat.kind, unread: 0 });
    this.load(chat);
  }

  load(chat) {
    this.title = chat.title;
    this.messages = new Map((chat.messages ?? []).map((m) => [m.id, m]));
    this.drafts = chat.drafts ?? [];
    this.typing = chat.typing ?? [];
  }

  // live drops what has faded by itself.
  live() {
    const now = Date.now();
    this.drafts = this.drafts.filter((d) => Date.parse(d.until) > now);
    this.typing = this.typing.filter((t) => Date.parse(t.until) > now);
  }
}

export class Window {
  // world is the platform, with the owner's claim code in world.claim.
  constructor(world, person, chats) {
    this.world = world;
    this.person = person;
    this.chats = new Map();
    this.tab = new Map();
    this.answering = null;
    this.node = document.getElementById(world.platform + "-window").content.firstElementChild.cloneNode(true);
    this.node.id = "phone-" + world.platform + "-" + person.id;
    this.log = $(this.node, ".log");
    this.input = $(this.node, "textarea");
    this.input.maxLength = world.limit;
    this.load(chats);
    this.open = this.dm;
    this.name(person);
    this.wire();
  }

  // load takes the chats that this person sees, new ones and known ones.
  load(chats) {
    const before = this.chats.size;
    for (const c of chats) {
      if (c.person && c.person !== this.person.id) continue;
      if (this.chats.has(c.id)) this.chats.get(c.id).load(c);
      else this.chats.set(c.id, new Chat(c));
    }
    this.dm = [...this.chats.values()].find((c) => c.kind === "private");
    if (this.chats.size !== before) this.tabs();
  }

  name(person) {
    this.person = person;
    this.node.setAttribute("aria-label", person.name + " on " + this.world.name);
    paint($(this.node, ".who .avatar"), person.id, person.name);
    $(this.node, ".who-name").textContent = person.name;
    $(this.node, ".who-id").textContent = this.about();
    const field = $(this.node, ".line label");
    this.input.id = "text-" + this.world.platform + "-" + person.id;
    field.htmlFor = this.input.id;
    field.textContent = "Message from " + person.name;
  }

  // tabs makes one for each chat; arrow keys go from one to the next.
  tabs() {
    this.tab.clear();
    const bar = $(this.node, ".tabs");
    const list = this.order();
    bar.replaceChildren(
      ...list.flatMap((chat, i) => {
        const button = el("button", "tab " + chat.kind);
        button.type = "button";
        button.role = "tab";
        button.append(...this.label(chat), el("span", "hidden kind"), el("b", "badge"), el("span", "hidden news"));
        button.addEventListener("click", () => this.show(chat));
        button.addEventListener("keydown", (e) => {
          const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[e.key];
          if (!step) return;
          e.preventDefault();
          const other = list[(i + step + list.length) % list.length];
          this.show(other);
          this.tab.get(other).focus();
        });
        this.tab.set(chat, button);
        return [...this.above(chat), button];
      }),
    );
  }

  // order is the one in which chats are listed: the private one first.
  order() {
    return [this.dm, ...[...this.chats.values()].filter((c) => c !== this.dm)];
  }

  // above are nodes over a chat's tab.
  above() {
    return [];
  }

  wire() {
    $(this.node, "form").addEventListener("submit", (e) => {
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
    const claim = this.world.claim === "" || !this.person.owner ? [] : ["/claim " + (this.world.claim ?? "CODE")];
    const prepared = this.world.claim === "" && this.person.owner ? this.world.prepared : [];
    const common = ["/start", "/help", ...claim, ...prepared];
    const more = this.world.menu.filter((c) => !["/claim", ...common].includes(c));
    const texts = this.open.kind === "private" ? [...common, ...more] : ["@" + this.world.bot.username + " ", this.command("/help")];
    $(this.node, ".chips").replaceChildren(
      ...texts.map((text) => {
        const chip = el("button", "chip", text.trim());
        chip.type = "button";
        chip.addEventListener("click", () => this.insert(text));
        return chip;
      }),
    );
  }

  // command is how a command is written where others read along.
  command(text) {
    return text;
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
    $(box, "b").textContent = message.from.name;
    $(box, "span").textContent = message.text || message.file || "";
    this.input.focus();
  }

  async send() {
    const text = this.input.value;
    if (!text.trim()) return;
    const reply = this.answering?.id ?? "";
    this.input.value = "";
    this.answer(null);
    this.grow();
    await this.attempt(() => this.act("/send", { text, reply_to: reply }), () => (this.input.value = text));
  }

  act(path, body) {
    return post(path, { platform: this.world.platform, from: this.person.id, chat: this.open.id, ...body });
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

  // choose is a menu: choosing an entry uses it, and it stands as before.
  choose(m, b) {
    const menu = el("select", "menu");
    menu.setAttribute("aria-label", b.text || "Choose");
    menu.disabled = Boolean(b.disabled);
    const none = el("option", "", b.text || "Choose…");
    none.value = "";
    menu.append(none);
    for (const item of b.menu) {
      const option = el("option", "", item.text);
      option.value = item.value;
      menu.append(option);
    }
    menu.addEventListener("change", async () => {
      if (menu.value === "") return;
      await this.attempt(() => this.act("/press", { message: m.id, data: b.data, value: menu.value }));
      menu.value = "";
    });
    return menu;
  }

  // ask opens a form over the page, for this window's person.
  ask(form) {
    const dialog = el("dialog", "form " + this.world.platform);
    const body = el("form");
    body.append(el("p", "form-who", this.person.name), el("h2", "", form.title));
    form.fields.forEach((f, i) => {
      const id = "field-" + form.id + "-" + i;
      const label = el("label", "", f.label + (f.required ? " *" : ""));
      label.htmlFor = id;
      const input = el(f.lines ? "textarea" : "input");
      Object.assign(input, { id, name: f.id, maxLength: f.most, required: Boolean(f.required), placeholder: f.hint ?? "", value: f.value ?? "" });
      body.append(label);
      if (f.about) {
        const about = el("p", "form-about", f.about);
        about.id = id + "-about";
        input.setAttribute("aria-describedby", about.id);
        body.append(about);
      }
      body.append(input);
    });
    const row = el("p", "form-keys");
    const cancel = el("button", "", "Cancel");
    cancel.type = "button";
    cancel.addEventListener("click", () => dialog.close());
    row.append(cancel, el("button", "send", "Submit"));
    body.append(row);
    body.addEventListener("submit", (e) => {
      e.preventDefault();
      const fields = Object.fromEntries(new FormData(body));
      dialog.close();
      this.attempt(() => this.act("/fill", { form: form.id, fields }));
    });
    dialog.addEventListener("close", () => dialog.remove());
    dialog.setAttribute("aria-label", form.title + ", for " + this.person.name);
    dialog.append(body);
    document.body.append(dialog);
    dialog.showModal();
  }

  async press(m, b, key) {
    if (b.url) {
      if (/^https?:/i.test(b.url)) window.open(b.url, "_blank", "noopener,noreferrer");
      return;
    }
    key.classList.add("busy");
    await this.attempt(() => this.act("/press", { message: m.id, data: b.data }));
    setTimeout(() => key.classList.remove("busy"), 600);
  }

  // take follows one change of the platform.
  take(change) {
    if (change.kind === "form") {
      if (change.person.id === this.person.id) this.ask(change.form);
      return;
    }
    if (change.kind === "note") {
      if (change.person.id === this.person.id) this.toast(change.text);
      return;
    }
    const chat = this.chats.get(change.chat);
    if (!chat || (change.message && !this.sees(change.message))) return;
    const now = change.message;
    switch (change.kind) {
      case "message":
        chat.messages.set(now.id, now);
        chat.typing = chat.typing.filter((t) => t.id !== now.from.id);
        if (chat !== this.open) chat.unread++;
        break;
      case "edit":
        if (chat.messages.has(now.id)) chat.messages.set(now.id, now);
        break;
      case "delete":
        chat.messages.delete(change.id);
        break;
      case "draft":
        chat.drafts = chat.drafts.filter((d) => change.draft && d.id !== change.draft.id);
        if (change.draft) chat.drafts.push(change.draft);
        break;
      case "typing":
        chat.typing = chat.typing.filter((t) => t.id !== change.typing.id);
        if (change.typing.until) chat.typing.push(change.typing);
        break;
    }
    this.render();
  }

  sees(m) {
    return !m.only_for || m.only_for === this.person.id;
  }

  // fades reports whether something is shown that goes by itself.
  fades() {
    return this.open.drafts.length + this.open.typing.length > 0;
  }

  unread() {
    return [...this.chats.values()].reduce((n, c) => n + c.unread, 0);
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
    $(this.node, ".drafts").replaceChildren(...this.open.drafts.map((d) => this.draft(d)));
    $(this.node, ".empty").hidden = this.open.messages.size > 0;
    if (stay) screen.scrollTop = screen.scrollHeight;
  }

  header() {
    const chat = this.open;
    this.frame(chat);
    const typing = chat.typing.filter((t) => t.id !== this.person.id);
    const state = $(this.node, ".bar-state");
    const words = this.state(chat, typing);
    state.classList.toggle("busy", typing.length > 0);
    if (state.textContent !== words) state.textContent = words;
    this.log.setAttribute("aria-label", "Messages, " + this.spoken(chat));
    $(this.node, ".screen").setAttribute("aria-label", this.spoken(chat));
    for (const [c, button] of this.tab) {
      button.setAttribute("aria-selected", String(c === chat));
      button.tabIndex = c === chat ? 0 : -1;
      $(button, ".badge").textContent = c.unread ? String(Math.min(c.unread, 99)) : "";
      $(button, ".kind").textContent = c.kind === "private" ? " private chat" : "";
      $(button, ".news").textContent = c.unread ? " new" : "";
    }
  }

  spoken(chat) {
    return chat.kind === "private" ? "private chat with " + chat.title : chat.title;
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
      if (!this.sees(m)) continue;
      const today = day.format(new Date(m.at));
      if (today !== lastDay) {
        want.push(["day " + today, today, () => this.pill(today, "day")]);
        previous = null;
      }
      lastDay = today;
      const joined = this.joins(previous, m);
      want.push([this.open.id + "/" + m.id, JSON.stringify([m, joined]), () => (m.service ? this.pill(m.service, "service") : this.row(m, joined))]);
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

  // joins reports whether a message goes on with the one before it.
  joins(previous, m) {
    return Boolean(previous && previous.from.id === m.from.id && !previous.service && !m.service && Date.parse(m.at) - Date.parse(previous.at) < 300000);
  }

  pill(text, kind) {
    const row = el("div", "pill " + kind);
    row.append(el("span", "", text));
    return row;
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
        if (b.menu) {
          line.append(this.choose(m, b));
          continue;
        }
        const key = el("button", "key " + (b.look ?? "") + (b.url ? " link" : ""), b.text);
        key.type = "button";
        key.disabled = Boolean(b.disabled);
        key.addEventListener("click", () => this.press(m, b, key));
        line.append(key);
      }
      board.append(line);
    }
    return board;
  }
}
