// The audio of a microphone as 16-bit samples, 16,000 a second, in tenths of a second.
const RATE = 16000;

class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.pcm = new Int16Array(RATE / 10);
    this.length = 0;
    this.sum = 0;
    this.count = 0;
    this.phase = 0;
    this.port.onmessage = () => {
      this.port.postMessage(this.pcm.slice(0, this.length));
      this.port.postMessage("end");
      this.over = true;
    };
  }

  // process takes the mean of the samples that fall into one of the result.
  process([[samples]]) {
    if (this.over) return false;
    for (const s of samples ?? []) {
      this.sum += s;
      this.count++;
      this.phase += RATE;
      if (this.phase < sampleRate) continue;
      this.phase -= sampleRate;
      this.pcm[this.length++] = Math.max(-1, Math.min(1, this.sum / this.count)) * 32767;
      this.sum = this.count = 0;
      if (this.length < this.pcm.length) continue;
      this.port.postMessage(this.pcm.slice());
      this.length = 0;
    }
    return true;
  }
}

registerProcessor("tap", Tap);
