// Telegram's look: bubbles on a wall, keys under them, drafts that grow.
import { $, clock, el, hue, paint } from "./dom.js";
import { styled } from "./styled.js";
import { Window } from "./window.js";

export class Telegram extends Window {
  about() {
    return "id " + this.person.id + (this.person.note ? " · " + this.person.note : "");
  }

  label(chat) {
    return [el("span", "", chat.kind === "private" ? "Bot" : "Group")];
  }

  frame(chat) {
    const bot = chat.kind === "private";
    paint($(this.node, ".bar .avatar"), bot ? this.world.bot.id : chat.id, chat.title);
    $(this.node, ".bar-title").textContent = chat.title;
  }

  state(chat, typing) {
    if (chat.kind === "private") return typing.length ? "typing" : "bot";
    return typing.length ? typing[0].by + " is typing" : this.world.people.length + " people and a bot";
  }

  row(m, joined) {
    const own = m.from.id === this.person.id;
    const others = this.open.kind !== "private" && !own;
    const row = el("div", "row" + (own ? " own" : "") + (joined ? " joined" : ""));
    if (others) {
      const avatar = el("span");
      paint(avatar, m.from.id, m.from.name);
      avatar.setAttribute("aria-hidden", "true");
      row.append(avatar);
    }
    const column = el("div", "column");
    const bubble = el("div", "bubble");
    if (others && !joined) bubble.append(el("p", "name " + hue(m.from.id), m.from.name));
    if (m.forward) bubble.append(el("p", "forward", "Forwarded from " + m.forward));
    if (m.answers) bubble.append(this.quoted(m.answers));
    if (m.file) bubble.append(el("p", "file", m.file));
    const text = el("div", "text");
    text.append(styled(m.text ?? "", m.styles ?? [], (command) => this.insert(command)));
    bubble.append(text, this.meta(m, own));
    if (m.reactions?.length) bubble.append(el("p", "reactions", m.reactions.join(" ")));
    column.append(bubble);
    if (m.buttons?.length) column.append(this.keyboard(m));
    row.append(column, this.replyButton(m));
    return row;
  }

  quoted(answered) {
    const box = el("div", "quoted");
    box.append(el("b", "", answered.from), el("span", "", answered.text));
    return box;
  }

  meta(m, own) {
    const meta = el("p", "meta");
    if (m.edited) meta.append("edited ");
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

  draft(d) {
    const row = el("div", "row draft");
    const column = el("div", "column");
    const bubble = el("div", "bubble");
    const text = el("div", "text");
    text.append(styled(d.text || "Thinking…", d.styles ?? [], () => {}));
    bubble.append(text, el("p", "meta", "writing"));
    column.append(bubble);
    row.append(column);
    return row;
  }
}
