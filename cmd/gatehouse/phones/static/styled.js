// styled turns a text and its styles into nodes. Offsets count UTF-16 code
// units, which is how JavaScript counts too. Text only ever becomes text nodes.

const tags = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
};

const blocks = ["pre", "blockquote", "p"];

function wrapper(style, text, insert) {
  const tag = tags[style.kind];
  if (tag) return document.createElement(tag);
  switch (style.kind) {
    case "pre":
      return block(style.language);
    case "text_link":
      return anchor(style.url);
    case "url":
      return anchor(text);
    case "email":
      return anchor("mailto:" + text);
    case "bot_command":
      return command(text, insert);
    case "spoiler":
      return spoiler();
    case "heading":
    case "subtext":
      return line(style.kind);
  }
  const span = document.createElement("span");
  if (["mention", "text_mention", "hashtag"].includes(style.kind)) span.className = "mention";
  return span;
}

function line(kind) {
  const p = document.createElement("p");
  p.className = kind;
  return p;
}

function block(language) {
  const pre = document.createElement("pre");
  if (language) pre.dataset.language = language;
  pre.tabIndex = 0;
  return pre;
}

// anchor links only where a link can do no harm; else the text stays text.
function anchor(url) {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) {
    const span = document.createElement("span");
    span.className = "linked";
    return span;
  }
  const a = document.createElement("a");
  a.href = url;
  a.target = "_blank";
  a.rel = "noopener noreferrer";
  return a;
}

function command(text, insert) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "linked";
  button.addEventListener("click", () => insert(text));
  return button;
}

function spoiler() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "spoiler";
  button.setAttribute("aria-label", "Hidden text, press to show");
  button.addEventListener("click", () => {
    button.classList.add("shown");
    button.removeAttribute("aria-label");
  });
  return button;
}

export function styled(text, styles, insert) {
  const sorted = [...styles].sort((a, b) => a.offset - b.offset || b.length - a.length);
  const root = document.createDocumentFragment();
  let at = 0;
  // fill puts text up to end into node, opening the styles that begin there.
  const fill = (node, end) => {
    while (at < end) {
      const next = sorted[0];
      if (!next || next.offset >= end) {
        node.append(text.slice(at, end));
        at = end;
        return;
      }
      if (next.offset > at) {
        node.append(text.slice(at, next.offset));
        at = next.offset;
      }
      sorted.shift();
      const stop = Math.min(next.offset + next.length, end);
      if (stop <= at) continue;
      const inner = wrapper(next, text.slice(at, stop), insert);
      fill(inner, stop);
      if (!blocks.includes(inner.localName)) {
        node.append(inner);
        continue;
      }
      // A block has a line of its own: the breaks around it would show as empty lines.
      const last = node.lastChild;
      if (last?.nodeType === Node.TEXT_NODE && last.data.endsWith("\n")) last.data = last.data.slice(0, -1);
      node.append(inner);
      if (text[at] === "\n" && at < end) at++;
    }
  };
  fill(root, text.length);
  return root;
}
