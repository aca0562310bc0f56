// Who this tab is, and its connection.
//
// Events: "me", "link" (detail: "up" or the milliseconds until the next attempt), "frame" (detail: what came).

import { Link } from "./link.js";

const stored = "weir-chat";

class Session extends EventTarget {
  me = JSON.parse(localStorage.getItem(stored) ?? "null"); // { name, token }

  constructor() {
    super();
    this.link = new Link(() => {
      const url = new URL("live", location.href.split(/[?#]/)[0]);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      url.searchParams.set("token", this.me.token);
      return url.href;
    });
    this.link.addEventListener("open", () => this.#emit("link", "up"));
    this.link.addEventListener("frame", (event) => this.#emit("frame", event.detail));
    this.link.addEventListener("over", (event) => this.#emit("link", "The connection was closed: " + event.detail));
    this.link.addEventListener("down", (event) => {
      this.#emit("link", event.detail);
      this.#stillKnown();
    });
  }

  start() { if (this.me) this.link.open(); }

  ask(op, fields) { return this.link.ask(op, fields); }

  async enter(name) {
    const response = await fetch("api/enter", { method: "POST", body: JSON.stringify({ name }) });
    const answer = await response.json().catch(() => ({ error: "The server did not answer." }));
    if (!response.ok) throw new Error(answer.error);
    this.me = answer;
    localStorage.setItem(stored, JSON.stringify(answer));
    this.#emit("me");
    this.link.open();
  }

  // Begins again without a name: nothing of the old one's stays in the page.
  leave() {
    localStorage.removeItem(stored);
    location.reload();
  }

  // A browser does not say why a websocket was refused; an ordinary request does.
  async #stillKnown() {
    try {
      const response = await fetch("api/me", { headers: { authorization: "Bearer " + this.me.token } });
      if (response.status === 401) this.leave();
    } catch { /* not reachable: the link tries again */ }
  }

  #emit(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
}

export const session = new Session();
