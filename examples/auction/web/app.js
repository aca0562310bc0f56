// Starts the page: the corner with bell and name, the state of the connection, and which page is shown.

import { byId, h, say, toast } from "./dom.js";
import { house } from "./house.js";
import { bell, sentence } from "./bell.js";
import { hallPage } from "./hall.js";
import { lotPage } from "./lot.js";

let page = null; // { node, title, lot?, close() }

function show() {
  const id = location.hash.match(/^#\/lot\/([\w-]+)$/)?.[1];
  if (house.lots.size === 0) return; // the board comes first
  page?.close();
  page = id && house.lots.has(id) ? lotPage(id) : hallPage();
  document.title = page.title;
  byId("main").replaceChildren(page.node);
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  show();
  scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
  say(document.title);
});

function corner() {
  byId("corner").replaceChildren(...house.me ? [
    bell.node,
    h("span", { class: "me", text: house.me.name }),
    h("button", { type: "button", class: "text leave", onclick: () => house.leave() }, "Leave"),
  ] : [h("span", { class: "me", text: "Visitor" })]);
}

let countdown;

house.addEventListener("link", ({ detail }) => {
  clearInterval(countdown);
  const up = detail === "up";
  document.body.classList.toggle("down", !up);
  byId("link-text").textContent = up ? "Live" : "Offline";
  const offline = byId("offline");
  if (up) {
    if (!offline.hidden) say("Connected again.");
    offline.hidden = true;
    return;
  }
  if (typeof detail === "string") {
    byId("offline-text").textContent = detail;
    offline.hidden = false;
    return;
  }
  const until = Date.now() + detail;
  const tell = () => {
    const seconds = Math.ceil((until - Date.now()) / 1000);
    byId("offline-text").textContent = seconds > 0 ? `The connection is lost. Trying again in ${seconds} s.` : "Connecting again …";
  };
  tell();
  countdown = setInterval(tell, 500);
  if (offline.hidden && detail > 700) say("The connection is lost.");
  offline.hidden = false;
});
byId("retry").addEventListener("click", () => house.link.retry());

house.addEventListener("me", () => { corner(); show(); });
house.addEventListener("board", () => page ?? show());

// What came while nobody was looking is said once, when the tab is back.
let greeted = false;
house.addEventListener("welcome", () => {
  const missed = house.inbox.notes.filter((note) => note.unread && note.away).length;
  if (!greeted && missed > 0) {
    toast(`While you were away: ${missed} ${missed === 1 ? "notification" : "notifications"}.`,
      h("button", { type: "button", class: "text", onclick: () => bell.open() }, "Show"));
  }
  greeted = true;
});
house.addEventListener("note", ({ detail: note }) => {
  const about = h("span", {}, ...sentence(note));
  if (location.hash === "#/lot/" + note.lot && !document.hidden) { // it stands on the page already
    say(about.textContent);
    house.link.ask("read", { lot: note.lot }).catch(() => {});
    return;
  }
  toast(about, h("a", { class: "text", href: "#/lot/" + note.lot }, "Go to the lot"));
});

corner();
house.start();
