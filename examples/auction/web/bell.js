// The bell and its panel of notifications.

import { h, icon, icons, money } from "./dom.js";
import { house } from "./house.js";
import { ago } from "./clock.js";

const title = (id) => house.lots.get(id)?.about.title ?? id;

// A notification as text and elements.
export function sentence({ kind, lot, who, amount }) {
  const name = h("b", { text: who }), what = h("em", { text: title(lot) }), price = h("span", { class: "sum", text: money(amount) });
  switch (kind) {
    case "outbid": return [name, " outbid you on ", what, " at ", price];
    case "won": return ["You won ", what, " for ", price];
    case "lost": return [what, " went to ", name, " for ", price];
    default: return [what, " was sold to ", name, " for ", price];
  }
}

const count = h("span", { class: "count" });
const button = h("button", { type: "button", class: "bell", "aria-expanded": "false", "aria-controls": "notes", onclick: () => panel.hidden ? open() : close() },
  icon(icons.bell), count);
const list = h("ul");
const heading = h("h2", { text: "Notifications", tabindex: "-1" });
const panel = h("section", { class: "notes", id: "notes", "aria-label": "Notifications", hidden: true },
  h("header", {}, heading, h("button", { type: "button", class: "text", onclick: () => close() }, "Close")), list);
const node = h("div", { class: "bell-box" }, button, panel);

let fresh = new Set(); // what was unread when the panel was opened: marked until it closes

function render() {
  const { unread, notes } = house.inbox;
  count.textContent = unread > 9 ? "9+" : String(unread);
  count.hidden = unread === 0;
  button.setAttribute("aria-label", unread ? `Notifications, ${unread} unread` : "Notifications");
  if (panel.hidden) return;
  list.replaceChildren(...notes.length ? notes.map((note) =>
    h("li", { class: note.unread || fresh.has(note.id) ? "fresh " + note.kind : note.kind },
      h("a", { href: "#/lot/" + note.lot, onclick: () => close() },
        h("img", { src: `lots/${note.lot}.svg`, alt: "", width: "44", height: "44" }),
        h("span", {}, h("span", { class: "what" }, ...sentence(note)),
          h("small", { text: ago(note.at) + (note.away ? " · while you were away" : "") })))))
    : [h("li", { class: "none", text: "Nothing yet. Bid on a lot or watch it, close this tab, and come back." })]);
}

function open() {
  if (!panel.hidden) return;
  fresh = new Set(house.inbox.notes.filter((note) => note.unread).map((note) => note.id));
  panel.hidden = false;
  button.setAttribute("aria-expanded", "true");
  render();
  heading.focus();
  if (house.inbox.unread) house.link.ask("read").catch(() => {});
}

function close() {
  if (panel.hidden) return;
  const inside = panel.contains(document.activeElement);
  panel.hidden = true;
  fresh.clear();
  button.setAttribute("aria-expanded", "false");
  if (inside) button.focus();
}

document.addEventListener("keydown", (event) => event.key === "Escape" && close());
document.addEventListener("pointerdown", (event) => node.contains(event.target) || close());
house.addEventListener("inbox", () => {
  // Read while it is open.
  if (!panel.hidden && house.inbox.unread) {
    for (const note of house.inbox.notes) if (note.unread) fresh.add(note.id);
    house.link.ask("read").catch(() => {});
  }
  render();
});
render();

export const bell = { node, open };
