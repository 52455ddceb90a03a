// Speaking instead of typing: the microphone goes to the gateway as it is, and the text
// that comes back into the field, where it is read before it is sent. The button is
// pressed once to begin and once to end, or held.

const HELD = 600; // milliseconds: a press that is longer ends with the release
const BEHIND = 300; // frames of a tenth of a second that wait for the connection

let speech = null; // what is being said

const place = () => document.querySelector("#speak[data-kept]");
const note = (text) => {
  const p = place()?.querySelector("p");
  if (p) p.textContent = text;
};

const reasons = {
  NotAllowedError: "The browser does not let this page use the microphone: allow it beside the address.",
  NotFoundError: "No microphone was found.",
  NotReadableError: "The microphone is in use by another program.",
};

// offer shows the button where the browser can record; pages without TLS cannot.
function offer() {
  const at = place();
  if (!at || at.firstElementChild || !navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.setAttribute("aria-pressed", "false");
  button.append(at.parentElement.querySelector("template#mic").content.cloneNode(true));
  const why = document.createElement("p");
  why.className = "hint";
  why.setAttribute("role", "status");
  at.append(button, why);
  let pressed = 0; // when a press has begun something
  button.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    pressed = speech ? 0 : performance.now();
    if (pressed) begin(button);
    else end();
  });
  button.addEventListener("pointerup", () => { if (pressed && performance.now() - pressed > HELD) end(); });
  button.addEventListener("click", (e) => { if (e.detail === 0) { if (speech) end(); else begin(button); } }); // by keyboard
}

// A talk is one recording: its parts are there as far as it has come.
class Talk {
  constructor(button, field) {
    this.button = button;
    this.field = field;
    this.before = field.value.trimEnd();
    this.segments = [];
    this.waiting = [];
  }

  async open() {
    this.media = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false } });
    if (this.over) return this.quiet();
    this.audio = new AudioContext();
    await this.audio.audioWorklet.addModule(place().dataset.tap);
    if (this.over) return this.quiet();
    this.tap = new AudioWorkletNode(this.audio, "tap");
    this.tap.port.onmessage = (e) => this.frame(e.data);
    this.audio.createMediaStreamSource(this.media).connect(this.tap);
    this.socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/voice`);
    this.socket.onopen = () => this.drain();
    this.socket.onmessage = (e) => this.heard(JSON.parse(e.data));
    this.socket.onclose = () => this.finish(this.done ? "" : "The connection to the gateway ended.");
    note("Listening");
  }

  frame(data) {
    if (data === "end") {
      this.ended = true;
      this.quiet();
    } else if (this.waiting.length < BEHIND) {
      this.waiting.push(data);
    }
    this.drain();
  }

  drain() {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    for (const data of this.waiting.splice(0)) this.socket.send(data);
    if (this.ended && !this.stopped) {
      this.stopped = true;
      this.socket.send(JSON.stringify({ type: "stop" }));
    }
  }

  heard(event) {
    if (event.type === "done") this.done = true;
    else if (event.type === "error") this.fault = event.message;
    else if (event.type === "text") {
      this.segments[event.segment] = [event.confirmed, event.tentative].filter(Boolean).join(" ");
      this.field.value = [this.before, ...this.segments].filter(Boolean).join(" ");
    }
  }

  // stop ends the recording; what was said is still transcribed.
  stop() {
    this.over = true;
    if (!this.tap) return this.finish("");
    note("Transcribing");
    this.tap.port.postMessage("end");
  }

  quiet() {
    for (const track of this.media?.getTracks() ?? []) track.stop();
    if (this.audio?.state !== "closed") this.audio?.close();
  }

  finish(why) {
    this.over = true;
    this.quiet();
    if (speech !== this) return;
    speech = null;
    this.button.setAttribute("aria-pressed", "false");
    note(this.fault ? `It ended: ${this.fault}.` : why || (this.done && !this.segments.some(Boolean) ? "Nothing was heard." : ""));
    this.field.focus();
  }
}

async function begin(button) {
  const field = button.form?.querySelector("textarea[data-send]");
  if (!field) return;
  const talk = new Talk(button, field);
  speech = talk;
  button.setAttribute("aria-pressed", "true");
  note("Waiting for the microphone");
  try {
    await talk.open();
  } catch (e) {
    talk.finish(reasons[e.name] ?? "The microphone cannot be used.");
  }
}

function end() { speech?.stop(); }

document.addEventListener("swapped", offer);
offer();
