// A conversation's page: lines between the reader's days, and the field to write in,
// with files that are chosen, dropped or pasted. Without this file days are those of
// UTC, and files are chosen.

const say = (text) => { document.getElementById("say").textContent = text; };

const make = (name, attributes, ...inside) => {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...inside);
  return e;
};

// ---- days

const dayOf = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });

// days puts a line before the first message of each of the reader's days; the server's
// lines are of UTC.
function days() {
  let before = "";
  for (const message of document.querySelectorAll(".talk > .said")) {
    const at = new Date(message.querySelector(".from time")?.dateTime ?? "");
    const day = Number.isNaN(at.getTime()) ? before : dayOf.format(at);
    let line = message.previousElementSibling;
    if (!line?.matches(".day")) line = null;
    if (day === before) line?.remove();
    else {
      if (!line) {
        line = make("li", { class: "day" });
        message.before(line);
      }
      if (message.id) line.id = `d-${message.id}`;
      if (line.textContent !== day) line.textContent = day;
    }
    before = day;
  }
}
document.addEventListener("swapped", days);
days();

// ---- sending

// Enter sends, Shift and Enter begins a line, as in any chat.
document.addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing || !e.target.matches?.("[data-send]") || !e.target.value.trim()) return;
  e.preventDefault();
  e.target.form.requestSubmit();
});
// A message is sent once.
document.addEventListener("submit", (e) => {
  if (e.target.getAttribute("id") !== "composer") return;
  if (e.target.ariaBusy === "true") e.preventDefault();
  e.target.ariaBusy = "true";
});

// ---- files with a message

const LARGEST = 20 << 20; // bytes of one
let chosen = [...(field()?.files ?? [])]; // a browser may bring them back

function field() { return document.querySelector("#composer [data-files]:not(:disabled)"); }

const sizeOf = (n) => (n === 1 ? "1 byte" : n < 1 << 10 ? `${n} bytes` : n < 1 << 20 ? `${Math.round(n / 1024)} KB` : `${(n / (1 << 20)).toFixed(1)} MB`);

// refusal returns why a file can't go with those that are chosen; "" where it can.
function refusal(input, file) {
  if (chosen.length >= Number(input.dataset.files)) return `at most ${input.dataset.files} files go with a message.`;
  if (file.size > LARGEST) return "it is larger than 20 MB.";
  if (chosen.reduce((n, f) => n + f.size, file.size) > Number(input.dataset.bytes)) return "the files would be larger than 32 MB together.";
  return "";
}

// take adds files to those that go with the message. What would be refused is left out,
// and the first reason is shown.
function take(input, more) {
  let left = "";
  let out = 0;
  for (const file of more) {
    const why = refusal(input, file);
    if (!why) chosen.push(file);
    else if (!out++) left = `${file.name} was left out: ${why}`;
  }
  if (out > 1) left += ` So were ${out - 1} more.`;
  show(input, left);
}

function show(input, left) {
  const all = new DataTransfer();
  for (const f of chosen) all.items.add(f);
  input.files = all.files;
  const list = make("ul", { "aria-label": "Files to send" });
  chosen.forEach((f, i) => {
    const off = make("button", { type: "button", class: "plain", "aria-label": `Take off ${f.name}` }, "×");
    off.addEventListener("click", () => {
      chosen.splice(i, 1);
      show(input, "");
      (document.querySelectorAll("#picked button")[Math.min(i, chosen.length - 1)] ?? input).focus();
    });
    list.append(make("li", {}, make("bdi", {}, f.name), make("small", {}, sizeOf(f.size)), off));
  });
  const place = document.getElementById("picked");
  place.replaceChildren();
  if (left) place.append(make("p", { class: "reason bad", role: "alert", dir: "auto" }, left));
  if (chosen.length) place.append(list);
  say(chosen.length === 1 ? "1 file goes with the message." : chosen.length ? `${chosen.length} files go with the message.` : "No file goes with the message.");
}

document.addEventListener("change", (e) => { if (e.target === field()) take(e.target, [...e.target.files]); });

document.addEventListener("paste", (e) => {
  const input = field();
  if (!input || !e.target.matches?.("[data-send]") || !e.clipboardData.files.length) return;
  e.preventDefault();
  take(input, e.clipboardData.files);
});

// A file may be dropped anywhere on the page.
const over = (on) => document.getElementById("composer")?.classList.toggle("over", on);
document.addEventListener("dragover", (e) => {
  if (!field() || !e.dataTransfer?.types.includes("Files")) return;
  e.preventDefault();
  e.dataTransfer.dropEffect = "copy";
  over(true);
});
document.addEventListener("dragleave", (e) => { if (!e.relatedTarget) over(false); });
document.addEventListener("drop", (e) => {
  const input = field();
  over(false);
  if (!input || !e.dataTransfer?.files.length) return;
  e.preventDefault();
  const folders = [...e.dataTransfer.items].filter((i) => i.kind === "file" && i.webkitGetAsEntry?.()?.isDirectory).length;
  if (folders) show(input, "A folder cannot go with a message: drop its files.");
  else take(input, e.dataTransfer.files);
});
if (chosen.length) show(field(), "");
document.documentElement.dataset.chat = "on";
