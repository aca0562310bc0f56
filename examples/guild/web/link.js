// The websocket: it comes back by itself, and carries requests with their answers.
//
// Events: "open", "down" (detail: milliseconds to the next attempt), "over" (detail: the reason why it does not come
// back), "frame" (detail: what is not an answer).

const first = 400, most = 15000; // milliseconds between attempts

// With these codes a program asks its client not to come back.
const final = (code) => (code >= 3500 && code < 4000) || (code >= 4500 && code < 5000);

export class Link extends EventTarget {
  #url; #socket; #timer; #failures = 0; #ended = false; #next = 1; #waiting = new Map();

  // url gives the address, for each attempt anew.
  constructor(url) {
    super();
    this.#url = url;
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => document.hidden || this.retry());
  }

  get up() { return this.#socket?.readyState === WebSocket.OPEN; }

  // Opens it, again if it is open.
  open() {
    clearTimeout(this.#timer);
    this.#ended = false;
    this.#drop();
    const socket = new WebSocket(this.#url());
    this.#socket = socket;
    socket.onopen = () => this.dispatchEvent(new Event("open"));
    socket.onmessage = (message) => this.#frame(JSON.parse(message.data));
    socket.onclose = ({ code, reason }) => final(code) ? this.#over(socket, reason) : this.#down(socket);
  }

  // Tries now instead of later.
  retry() {
    if (this.#ended) return;
    if (!this.#socket || this.#socket.readyState === WebSocket.CLOSED) this.open();
  }

  // Sends a request and gives its answer. Without one it fails, and whether it was carried out is not known.
  ask(op, fields = {}) {
    if (!this.up) return Promise.reject(new Error("Not connected at the moment."));
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#down(this.#socket), 12000); // half-open: begin again
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ ...fields, op, id }));
    });
  }

  #frame(frame) {
    this.#failures = 0;
    if (frame.type !== "answer") {
      this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
      return;
    }
    const call = this.#waiting.get(frame.re);
    if (!call) return;
    this.#waiting.delete(frame.re);
    clearTimeout(call.timer);
    if (frame.ok) call.resolve(frame.data);
    else call.reject(new Error(frame.error));
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const call of this.#waiting.values()) {
      clearTimeout(call.timer);
      call.reject(new Error("The connection was lost before the answer came."));
    }
    this.#waiting.clear();
  }

  #over(socket, reason) {
    if (socket !== this.#socket) return;
    this.#drop();
    this.#ended = true;
    this.dispatchEvent(new CustomEvent("over", { detail: reason }));
  }

  // Waits twice as long after each failure, and never as long as the others: many people whose server restarts do
  // not come back in the same instant.
  #down(socket) {
    if (socket !== this.#socket) return;
    this.#drop();
    const bound = Math.min(most, first * 2 ** this.#failures++);
    const wait = bound / 2 + Math.random() * bound / 2;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.open(), wait);
    this.dispatchEvent(new CustomEvent("down", { detail: wait }));
  }
}
