// The page: the board as this device shows it, and the account that all devices of a member share.

import { byId, clock, h } from "./dom.js";
import { session } from "./session.js";

const tags = ["quest", "trade", "meet"];
let inbox = { unread: 0, devices: 0, notes: [] };
let shown; // the tag that this device shows; undefined: all
let posts = [];

const board = h("ol", { class: "posts" }), notes = h("ol", { class: "posts" });
const filter = h("fieldset", { class: "tags" }), watching = h("fieldset", { class: "tags" });
const count = h("span", { class: "count" }), devices = h("span", { class: "quiet" });
const trial = h("p", { class: "problem", role: "alert" });

function door() {
  const field = h("input", { id: "name", required: true, maxlength: "30", autocomplete: "nickname", placeholder: "Ada" });
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", {
    class: "door",
    onsubmit: async (event) => {
      event.preventDefault();
      try { await session.enter(field.value); } catch (error) { problem.textContent = error.message; }
    },
  }, h("h2", { text: "Sign the book" }), h("label", { for: "name", text: "Under which name? There is no password: the same name on another device is the same member." }),
  h("div", { class: "row" }, field, h("button", { class: "primary", text: "Enter" })), problem);
}

function choices(legend, values, chosen, choose) {
  return [h("legend", { text: legend }), ...values.map(([text, value]) => h("button", {
    type: "button", text, "aria-pressed": String(value === chosen), onclick: () => choose(value).catch(() => {}),
  }))];
}

function line(post, more) {
  return h("li", { class: post.unread === 1 && "unread" }, h("span", { text: post.text }),
    h("small", {}, h("em", { text: post.tag }), ` · ${post.who} · ${clock(post.at)}`, more));
}

function draw() {
  filter.replaceChildren(...choices("This device shows", [["all", undefined], ...tags.map((t) => [t, t])], shown, show));
  board.replaceChildren(...posts.map((post) => line(post)));
  if (posts.length === 0) board.append(h("li", { class: "quiet", text: "Nothing here yet." }));
  watching.replaceChildren(...choices("Your account watches, also while you are away", [["nothing", undefined], ...tags.map((t) => [t, t])],
    inbox.watching, (tag) => session.ask("watch", { tag })));
  notes.replaceChildren(...inbox.notes.map((note) => line(note, note.away === 1 && " · while you were away")));
  if (inbox.notes.length === 0) notes.append(h("li", { class: "quiet", text: "What others post under the watched tag waits here." }));
  count.textContent = inbox.unread;
  count.hidden = inbox.unread === 0;
  read.hidden = inbox.unread === 0;
  devices.textContent = inbox.devices === 1 ? "on this device" : `on ${inbox.devices} devices`;
  document.title = (inbox.unread ? `(${inbox.unread}) ` : "") + "The Guild";
}

const read = h("button", { type: "button", class: "text", text: "Mark all as read", onclick: () => session.ask("read").catch(() => {}) });

// Changes this device's edge to the board; the answer has what was posted before.
async function show(tag) {
  const latest = await session.ask("show", { tag });
  shown = tag;
  posts = latest;
  draw();
}

function writing() {
  const tag = h("select", { "aria-label": "Tag" }, ...tags.map((t) => h("option", { value: t, text: t })));
  const field = h("input", { "aria-label": "Post", maxlength: "200", autocomplete: "off", required: true, placeholder: "Three wanted for the old mill" });
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", {
    class: "post",
    onsubmit: async (event) => {
      event.preventDefault();
      problem.textContent = "";
      try {
        await session.ask("post", { tag: tag.value, text: field.value.trim() });
        field.value = "";
      } catch (error) { problem.textContent = error.message; }
    },
  }, h("div", { class: "row" }, tag, field, h("button", { class: "primary", text: "Post" })), problem);
}

function spying() {
  const field = h("input", { "aria-label": "Whose stream", required: true, maxlength: "30", placeholder: "somebody else's name" });
  return h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await session.ask("spy", { name: field.value.trim() });
        trial.textContent = "Admitted: this stream is yours.";
      } catch (error) { trial.textContent = error.message; }
    },
  }, h("div", { class: "row" }, field, h("button", { class: "primary", text: "Try" })), trial);
}

// What the account's own stream says; every device of this member gets it.
function personal(what) {
  inbox.unread = what.unread;
  inbox.devices = what.devices;
  if (what.kind === "watching") inbox.watching = what.watching;
  if (what.kind === "read") for (const note of inbox.notes) note.unread = 0;
  if (what.kind === "note" && !inbox.notes.some((have) => have.id === what.note.id)) inbox.notes = [what.note, ...inbox.notes].slice(0, 50);
}

session.addEventListener("frame", ({ detail: frame }) => {
  if (frame.type === "welcome") { // also after an absence: the account kept what came
    inbox = frame.inbox;
    show(shown).catch(() => {});
  } else if (frame.topic === "events") personal(frame.data);
  else if (frame.topic === "post" && !posts.some((have) => have.n === frame.data.n)) posts = [frame.data, ...posts].slice(0, 30);
  draw();
});

session.addEventListener("link", ({ detail }) => {
  byId("link").classList.toggle("down", detail !== "up");
  byId("link").textContent = detail === "up" ? "Live" : typeof detail === "string" ? detail : "Connecting again";
});

function start() {
  if (!session.me) return byId("main").replaceChildren(door());
  byId("me").replaceChildren(h("b", { text: session.me.name }), h("button", { type: "button", class: "text", text: "Leave", onclick: () => session.leave() }));
  byId("main").replaceChildren(h("div", { class: "guild" },
    h("section", { class: "panel" }, h("h2", { text: "Board" }), writing(), filter, board),
    h("section", { class: "panel inbox" },
      h("header", {}, h("h2", {}, "Your account", count), devices), watching,
      h("div", { "aria-live": "polite" }, notes), read,
      h("details", {}, h("summary", { class: "quiet", text: "Try to follow somebody else's stream" }), spying()))));
  draw();
}

session.addEventListener("me", start);
start();
session.start();
