// What pages with rendered Markdown do: copy code, and keep the reader's place when
// a rendered answer replaces its stream.

const say = (text) => { document.getElementById("say").textContent = text; };

// ---- code

let copying = 0;
// The button says what happened as well as the live region does.
async function copy(button) {
  const code = button.closest(".code").querySelector("pre");
  let done = true;
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch { // not over plain HTTP, or not allowed
    getSelection().selectAllChildren(code);
    done = document.execCommand("copy");
    if (done) getSelection().removeAllRanges();
  }
  const text = button.firstChild;
  text.data = done ? "Copied" : "Copy";
  say(done ? "The code is copied" : "The browser does not allow copying. The code is selected.");
  clearTimeout(copying);
  copying = setTimeout(() => { for (const b of document.querySelectorAll("[data-copy]")) b.firstChild.data = "Copy"; }, 2000);
}
document.addEventListener("click", (e) => { const b = e.target.closest("[data-copy]"); if (b) copy(b); });

// ---- the reader's place

let place = null;
document.addEventListener("swap", () => { place = reading(); });
document.addEventListener("swapped", () => { if (place && !document.getElementById("stream")) readOn(place); });

// What replaces the stream is rendered, and so of another height: reading returns
// the text in the middle of the window and where it is, readOn scrolls to it.
function reading() {
  const words = document.querySelector("#stream .words"), text = words?.firstChild;
  if (!text) return null;
  const box = words.getBoundingClientRect(), y = Math.min(innerHeight / 2, box.bottom - 4);
  if (box.top > y || box.bottom < 0) return null; // its beginning stays where it is
  const caret = document.caretPositionFromPoint?.(box.left + 2, y), range = caret ? null : document.caretRangeFromPoint?.(box.left + 2, y);
  if ((caret?.offsetNode ?? range?.startContainer) !== text) return null;
  let at = caret?.offset ?? range.startOffset;
  const plain = text.data.slice(at).match(/[\p{L}\p{N}][\p{L}\p{N} ,]{15,}/u);
  at += plain?.index ?? 0;
  return { plain: plain?.[0].slice(0, 60), share: at / text.length, top: topOf(text, at) };
}

function topOf(text, at) {
  const r = document.createRange();
  r.setStart(text, at);
  r.setEnd(text, Math.min(at + 1, text.length));
  return r.getBoundingClientRect().top;
}

function readOn({ plain, share, top }) {
  const place = [...document.querySelectorAll(".talk > .answer:last-child > .md")].pop();
  if (!place) return;
  const all = place.textContent, about = Math.floor(share * all.length);
  let left = -1; // where the same text is, nearest to where it should be
  for (let i = plain ? all.indexOf(plain) : -1; i >= 0 && (left < 0 || Math.abs(i - about) < Math.abs(left - about)); i = all.indexOf(plain, i + 1)) left = i;
  if (left < 0) left = about;
  const walk = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode;
    if (left < text.length) return scrollBy({ top: topOf(text, left) - top, behavior: "instant" });
    left -= text.length;
  }
}
