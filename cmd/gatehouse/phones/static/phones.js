// The phones page: a window per person, one half per platform, all fed by one
// EventSource.
import { $, el, paint, post } from "./dom.js";
import { Discord } from "./discord.js";
import { Telegram } from "./telegram.js";

const looks = { telegram: Telegram, discord: Discord };
const link = document.getElementById("link");
const halves = new Map(); // platform → Half

// A Half is one platform with the windows of its people.
class Half {
  constructor(world) {
    this.world = world;
    this.node = document.getElementById(world.platform);
    this.button = $(document, `.switch [data-show="${world.platform}"]`);
    this.windows = new Map(); // person id → Window
    this.button.addEventListener("click", () => choose(world.platform));
    this.adding();
  }

  begin(world, claim, prepared) {
    Object.assign(this.world, world, { claim, prepared });
    for (const person of world.people) {
      const window = this.window(person, world.chats);
      window.load(world.chats);
      window.show(window.open);
    }
    this.badge();
  }

  window(person, chats) {
    let window = this.windows.get(person.id);
    if (window) return window;
    window = new looks[this.world.platform](this.world, person, chats);
    this.windows.set(person.id, window);
    $(this.node, ".windows").append(window.node);
    const jump = el("a", "jump");
    jump.href = "#" + window.node.id;
    const avatar = el("span");
    paint(avatar, person.id, person.name);
    avatar.setAttribute("aria-hidden", "true");
    jump.append(avatar, el("span", "", person.name), el("b", "badge"));
    window.jump = jump;
    $(this.node, ".people").append(jump);
    return window;
  }

  follow(change) {
    switch (change.kind) {
      case "person":
        this.join(change);
        break;
      case "chat":
        for (const w of this.windows.values()) {
          w.load(change.chats);
          w.render();
        }
        break;
      default:
        for (const w of this.windows.values()) w.take(change);
    }
    this.badge();
  }

  // join makes room for somebody new, or takes another name.
  join(change) {
    const known = this.windows.has(change.person.id);
    if (!known) this.world.people.push(change.person);
    const window = this.window(change.person, change.chats);
    if (known) window.name(change.person);
    for (const w of this.windows.values()) w.show(w.open);
  }

  // badge counts what is new and not in sight.
  badge() {
    let hidden = 0;
    for (const w of this.windows.values()) {
      hidden += w.unread();
      $(w.jump, ".badge").textContent = w.unread() ? String(Math.min(w.unread(), 99)) : "";
    }
    $(this.button, ".badge").textContent = hidden ? String(Math.min(hidden, 99)) : "";
  }

  adding() {
    const form = $(this.node, ".add");
    const field = $(form, "input");
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      field.setCustomValidity("");
      try {
        const person = await post("/people", { platform: this.world.platform, name: field.value });
        field.value = "";
        this.windows.get(person.id)?.node.scrollIntoView({ behavior: "smooth", inline: "center" });
      } catch (problem) {
        field.setCustomValidity(problem.message);
        field.reportValidity();
      }
    });
    field.addEventListener("input", () => field.setCustomValidity(""));
  }
}

// choose says which platform a narrow page shows; a wide one shows all.
function choose(platform) {
  for (const [name, half] of halves) {
    half.node.classList.toggle("chosen", name === platform);
    half.button.setAttribute("aria-pressed", String(name === platform));
    if (name === platform) for (const w of half.windows.values()) w.show(w.open);
  }
}

function begin(state) {
  for (const world of state.worlds) {
    if (!halves.has(world.platform)) halves.set(world.platform, new Half(world));
    halves.get(world.platform).begin(world, state.claim, state.prepared ?? []);
  }
  if (!$(document, ".platform.chosen")) choose(state.worlds[0].platform);
}

function claimed(code) {
  for (const half of halves.values()) {
    half.world.claim = code;
    for (const w of half.windows.values()) w.chips();
  }
}

// linked says at the top whether the page follows the platforms.
function linked(live, words) {
  link.classList.toggle("live", live);
  link.textContent = words;
}

const source = new EventSource("/events");
source.addEventListener("open", () => linked(true, "live"));
source.addEventListener("error", () => linked(false, source.readyState === EventSource.CLOSED ? "not connected: load the page again" : "connecting again…"));
source.addEventListener("state", (e) => begin(JSON.parse(e.data)));
source.addEventListener("claim", (e) => claimed(JSON.parse(e.data)));
source.addEventListener("change", (e) => {
  const change = JSON.parse(e.data);
  halves.get(change.platform)?.follow(change);
});

// What fades by itself: look again every second while something is shown.
setInterval(() => {
  for (const half of halves.values()) for (const w of half.windows.values()) if (w.fades()) w.render();
}, 1000);
