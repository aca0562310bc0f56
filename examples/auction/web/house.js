// What this tab knows of the house: the lots, who we are, and our notifications. It keeps the connection.
//
// Events: "lot" (detail: id, facts, before), "missed" (detail: id), "inbox", "note" (detail: the notification), "me",
// "link" (detail: "up" or the milliseconds until the next attempt), "welcome".

import { Link } from "./link.js";
import { learn } from "./clock.js";

const stored = "weir-rooms";

class House extends EventTarget {
  lots = new Map(); // id → { about, facts }, in the catalogue's order
  me = JSON.parse(localStorage.getItem(stored) ?? "null"); // { name, token }
  inbox = { unread: 0, notes: [], watching: [] };

  constructor() {
    super();
    this.link = new Link(() => {
      const url = new URL("live", location.href.split("#")[0]);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      if (this.me) url.searchParams.set("token", this.me.token);
      return url.href;
    });
    this.link.addEventListener("open", () => {
      if (!this.me) this.refresh(); // a visitor's socket sends no welcome: what was missed is asked for
      this.#emit("link", "up");
    });
    this.link.addEventListener("over", (event) => this.#emit("link", "The connection was closed: " + event.detail));
    this.link.addEventListener("down", (event) => {
      this.#emit("link", event.detail);
      if (this.me) this.#stillKnown();
    });
    this.link.addEventListener("frame", (event) => this.#frame(event.detail));
  }

  async start() {
    this.link.open();
    await this.refresh();
  }

  // Gets the board by an ordinary request.
  async refresh() {
    try {
      const asked = Date.now();
      const response = await fetch("api/board");
      if (!response.ok) return;
      const board = await response.json();
      learn(board.now, asked, Date.now());
      this.#board(board);
    } catch { /* the link says that we are offline */ }
  }

  async enter(name) {
    const response = await fetch("api/enter", { method: "POST", body: JSON.stringify({ name }) });
    const answer = await response.json().catch(() => ({ error: "The house did not answer." }));
    if (!response.ok) throw new Error(answer.error);
    this.#become(answer);
  }

  leave() { this.#become(null); }

  // Sits down in front of a lot: from here on its events arrive, and what was missed is in the answer.
  async look(id) {
    const answer = this.me && this.link.up ? await this.link.ask("enter", { lot: id }) : await this.#lookByRequest(id);
    learn(answer.data.now, answer.asked, answer.answered);
    this.take(answer.data.facts);
    return answer.data;
  }

  async #lookByRequest(id) {
    const asked = Date.now();
    const response = await fetch("api/lots/" + id);
    if (!response.ok) throw new Error("There is no such lot.");
    return { data: await response.json(), asked, answered: Date.now() };
  }

  // Takes the facts of a lot if they are newer. Events arrive at most once, and by two ways (the lot's and the board's):
  // a step we have is old, one that is not the next means that something was missed. (The time of opening comes first,
  // for a house whose data folder was emptied: it counts from one again.)
  take(facts, event = false) {
    const lot = this.lots.get(facts.lot);
    const before = lot?.facts;
    if (!lot || before && (facts.opened < before.opened || facts.opened === before.opened && facts.step <= before.step)) return;
    lot.facts = facts;
    this.#emit("lot", { id: facts.lot, facts, before });
    if (event && before && facts.step !== before.step + 1) this.#emit("missed", { id: facts.lot });
  }

  #frame(frame) {
    switch (frame.type) {
      case "welcome":
        this.inbox = frame.inbox;
        this.#board(frame.board);
        this.#emit("inbox");
        this.#emit("welcome");
        break;
      case "lot":
      case "event": // the platform's own envelope, on a visitor's socket
        this.take(frame.data, true);
        break;
      case "personal":
        this.#personal(frame.data);
    }
  }

  #personal({ kind, unread, note, lot, watching }) {
    this.inbox.unread = unread;
    if (kind === "note" && !this.inbox.notes.some((have) => have.id === note.id)) {
      this.inbox.notes = [note, ...this.inbox.notes].slice(0, 50);
      this.#emit("note", note);
    }
    if (kind === "read") for (const have of this.inbox.notes) if (!lot || have.lot === lot) have.unread = 0;
    if (kind === "watching") this.inbox.watching = watching;
    this.#emit("inbox");
  }

  #board(board) {
    for (const { about, facts } of board.lots) {
      if (!this.lots.has(about.id)) this.lots.set(about.id, { about });
      this.take(facts);
    }
    this.#emit("board");
  }

  #become(me) {
    this.me = me;
    if (me) localStorage.setItem(stored, JSON.stringify(me));
    else localStorage.removeItem(stored);
    this.inbox = { unread: 0, notes: [], watching: [] };
    this.#emit("me");
    this.#emit("inbox");
    this.link.open();
  }

  // A browser does not say why a websocket was refused; an ordinary request does.
  async #stillKnown() {
    const me = this.me;
    try {
      const response = await fetch("api/me", { headers: { authorization: "Bearer " + me.token } });
      if (response.status === 401 && this.me === me) this.leave();
    } catch { /* not reachable: the link tries again */ }
  }

  #emit(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
}

export const house = new House();
