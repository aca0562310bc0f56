// The page: a name, the rooms, and the room in front of us.

import { byId, clock, h } from "./dom.js";
import { session } from "./session.js";

const rooms = new Map(); // name → { room, owner, members }
const fresh = new Set(); // rooms in which something happened while we looked at another
const list = h("ul", { "aria-label": "Rooms" });
const none = h("p", { class: "quiet none", text: "No room yet. Open the first one." });
const stage = h("section", { class: "room", "aria-label": "Room" });
let room = null; // { name, last, talk, here, box }: the one on the stage

function door() {
  const field = h("input", { id: "name", required: true, maxlength: "30", autocomplete: "nickname", placeholder: "Ada" });
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", {
    class: "door",
    onsubmit: async (event) => {
      event.preventDefault();
      try { await session.enter(field.value); } catch (error) { problem.textContent = error.message; }
    },
  }, h("h2", { text: "Come in" }), h("label", { for: "name", text: "Under which name do you talk? There is no password." }),
  h("div", { class: "row" }, field, h("button", { class: "primary", text: "Enter" })), problem);
}

function opening() {
  const field = h("input", { "aria-label": "Name of a new room", required: true, maxlength: "24", placeholder: "new-room", autocapitalize: "none" });
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", {
    class: "opening",
    onsubmit: async (event) => {
      event.preventDefault();
      const name = field.value.trim().toLowerCase().replace(/\s+/g, "-");
      problem.textContent = "";
      try {
        await session.ask("open", { room: name });
        field.value = "";
        enter(name);
      } catch (error) { problem.textContent = error.message; }
    },
  }, h("div", { class: "row" }, field, h("button", { class: "primary", text: "Open" })), problem);
}

function showRooms() {
  none.hidden = rooms.size > 0;
  list.replaceChildren(...[...rooms.values()].sort((a, b) => a.room < b.room ? -1 : 1).map((r) => h("li", {}, h("button", {
    type: "button", class: fresh.has(r.room) && "fresh", "aria-current": r.room === room?.name && "true", onclick: () => enter(r.room),
  }, "#" + r.room, h("small", { text: r.members + (r.members === 1 ? " member" : " members") })))));
}

const empty = (...content) => stage.replaceChildren(h("div", { class: "join" }, ...content));

// Enters a room: from its beginning, or, when the connection is back, after the last message we have.
async function enter(name) {
  const again = room?.name === name && room.talk.isConnected;
  if (!again) {
    room = { name, last: undefined, talk: h("ol", { class: "talk", "aria-live": "polite", "aria-label": "Messages", tabindex: "0" }), here: h("div", { class: "here" }) };
  }
  const mine = room;
  location.replace("#" + name);
  fresh.delete(name);
  showRooms();
  try {
    const answer = await session.ask("enter", { room: name, n: mine.last });
    if (room !== mine) return;
    if (!again) furnish();
    showHere(answer.here);
    take(answer.messages);
    if (answer.messages.length > 0) await catchUp();
  } catch (error) {
    if (room !== mine || !session.link.up) return; // the welcome enters again
    if (error.message.startsWith("follow refused")) return invite(name);
    empty(h("p", { text: error.message }));
  }
}

function invite(name) {
  const problem = h("p", { class: "problem", role: "alert" });
  room.talk.remove();
  empty(h("h2", { text: "#" + name }), h("p", { class: "quiet", text: "Only members see what is said here." }),
    h("button", {
      type: "button", class: "primary", text: "Join", onclick: async () => {
        try {
          await session.ask("join", { room: name });
          enter(name);
        } catch (error) { problem.textContent = error.message; }
      },
    }), problem);
}

function furnish() {
  const field = h("input", { "aria-label": "Message", maxlength: "500", autocomplete: "off", placeholder: "Say something" });
  const problem = h("p", { class: "problem", role: "alert" });
  stage.replaceChildren(h("header", {}, h("h2", { text: "#" + room.name }), room.here), room.talk, h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text) return;
      problem.textContent = "";
      try {
        await session.ask("say", { room: room.name, text });
        if (field.value.trim() === text) field.value = "";
      } catch (error) { problem.textContent = error.message; } // what was typed stays
    },
  }, h("div", { class: "row" }, field, h("button", { class: "primary", text: "Send" })), problem));
  if (matchMedia("(hover: hover)").matches) field.focus();
}

// Takes messages, in order, each once: events and answers overlap.
function take(messages) {
  const { talk } = room;
  const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 60;
  for (const m of messages) {
    if (m.n <= (room.last ?? 0)) continue;
    if (m.who !== room.who || m.at - room.at > 300000) {
      talk.append(h("li", { class: "head" + (m.who === session.me.name ? " own" : "") }, m.who, h("time", { text: clock(m.at) })));
    }
    talk.append(h("li", { text: m.text }));
    Object.assign(room, { last: m.n, who: m.who, at: m.at });
  }
  room.last ??= 0;
  if (atEnd) talk.scrollTop = talk.scrollHeight;
}

// Asks for what was missed until there is nothing more.
async function catchUp() {
  for (const mine = room; ;) {
    const messages = await session.ask("since", { room: mine.name, n: mine.last });
    if (room !== mine || messages.length === 0) return;
    take(messages);
  }
}

function showHere({ names, owner }) {
  const own = owner === session.me.name;
  room.here.replaceChildren(...names.map((who) => h("span", {}, who, who === owner && " (owner)", own && who !== owner && h("button", {
    type: "button", class: "text", text: "remove", "aria-label": "Remove " + who,
    onclick: () => session.ask("remove", { room: room.name, who }).catch(() => {}),
  }))));
}

session.addEventListener("frame", ({ detail: frame }) => {
  switch (frame.type) {
    case "welcome": {
      for (const r of frame.rooms) rooms.set(r.room, r);
      showRooms();
      const name = room?.name ?? decodeURIComponent(location.hash.slice(1));
      if (rooms.has(name)) enter(name);
      else if (!room) empty(h("p", { class: "quiet", text: "Choose a room, or open one." }));
      break;
    }
    case "message":
      if (frame.room !== room?.name || room.last === undefined) break;
      if (frame.message.n > room.last + 1) catchUp().catch(() => {}); // a number is left out: one was missed
      else take([frame.message]);
      break;
    case "here":
      if (frame.room === room?.name) showHere(frame.here);
      break;
    case "room": {
      const { removed, ...r } = frame.room;
      rooms.set(r.room, r);
      if (r.room !== room?.name) fresh.add(r.room);
      showRooms();
      if (removed === session.me.name && r.room === room?.name) {
        room.talk.remove();
        empty(h("h2", { text: "#" + r.room }), h("p", { text: "The owner has removed you from this room." }));
      }
    }
  }
});

session.addEventListener("link", ({ detail }) => {
  byId("link").classList.toggle("down", detail !== "up");
  byId("link").textContent = detail === "up" ? "Live" : typeof detail === "string" ? detail : "Connecting again";
});

function start() {
  if (!session.me) return byId("main").replaceChildren(door());
  byId("me").replaceChildren(h("b", { text: session.me.name }), h("button", { type: "button", class: "text", text: "Leave", onclick: () => session.leave() }));
  byId("main").replaceChildren(h("div", { class: "chat" },
    h("nav", { class: "rooms", "aria-label": "Rooms" }, h("h2", { text: "Rooms" }), none, list, opening()), stage));
}

session.addEventListener("me", start);
start();
session.start();
