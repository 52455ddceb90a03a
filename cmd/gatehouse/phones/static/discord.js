// Discord's look: a list of channels, rows with an avatar, buttons in a line.
import { $, clock, day, el, paint } from "./dom.js";
import { styled } from "./styled.js";
import { Window } from "./window.js";

const sign = { private: "@", group: "#", thread: "↳" };

export class Discord extends Window {
  about() {
    return this.person.note || this.person.username;
  }

  // A thread stands below its channel, as the platform lists them.
  label(chat) {
    const mark = el("span", "sign", sign[chat.kind]);
    if (chat.kind === "private") {
      paint(mark, this.world.bot.id, chat.title);
      mark.classList.add("sign");
    }
    mark.setAttribute("aria-hidden", "true");
    return [mark, el("span", "tab-name", chat.title)];
  }

  above(chat) {
    const first = this.order().find((c) => c.kind !== "private");
    if (chat !== this.dm && chat !== first) return [];
    const title = el("p", "tab-head", chat === this.dm ? "Direct messages" : this.world.place);
    title.role = "presentation";
    return [title];
  }

  frame(chat) {
    $(this.node, ".side-title").textContent = this.world.name;
    $(this.node, ".bar-sign").textContent = sign[chat.kind];
    $(this.node, ".bar-title").textContent = chat.title;
    this.input.placeholder = "Message " + (chat.kind === "private" ? "@" : chat.kind === "group" ? "#" : "") + chat.title;
  }

  // A bot that types may still edit what stands there: it is read out once it is done.
  state(_, typing) {
    this.log.setAttribute("aria-busy", String(typing.length > 0));
    if (!typing.length) return "";
    return typing.map((t) => t.by).join(", ") + (typing.length > 1 ? " are typing" : " is typing");
  }

  command(text) {
    return "@" + this.world.bot.username + " " + text;
  }

  joins(previous, m) {
    return super.joins(previous, m) && !m.answers;
  }

  row(m, joined) {
    const own = m.from.id === this.person.id;
    const row = el("div", "row" + (own ? " own" : "") + (joined ? " joined" : ""));
    if (m.answers) row.append(this.answered(m.answers));
    const side = el("span");
    if (joined) {
      side.className = "beside";
      side.append(this.time(m));
    } else {
      paint(side, m.from.id, m.from.name);
    }
    side.setAttribute("aria-hidden", "true");
    const column = el("div", "column");
    if (!joined) column.append(this.head(m));
    else column.append(el("p", "hidden", m.from.name));
    const text = el("div", "text");
    text.append(styled(m.text ?? "", m.styles ?? [], (command) => this.insert(command)));
    if (m.edited) text.append(el("span", "edited", " (edited)"));
    column.append(text);
    if (m.file) column.append(el("p", "file", m.file));
    if (m.only_for) column.append(el("p", "only", "Only you can see this"));
    if (m.reactions?.length) column.append(el("p", "reactions", m.reactions.join(" ")));
    if (m.buttons?.length) column.append(this.keyboard(m));
    row.append(side, column, this.replyButton(m));
    return row;
  }

  head(m) {
    const head = el("p", "head");
    head.append(el("b", "name", m.from.name));
    if (m.from.bot) head.append(el("span", "app", "APP"));
    head.append(this.time(m));
    return head;
  }

  time(m) {
    const at = new Date(m.at);
    const time = el("time", "", clock.format(at));
    time.dateTime = m.at;
    time.title = day.format(at);
    return time;
  }

  answered(a) {
    const box = el("div", "quoted");
    box.append(el("b", "", a.from), el("span", "", a.text));
    return box;
  }

  // Discord has no drafts: a bot edits its message.
  draft() {
    return el("div");
  }
}
