// One lot: its price, its clock, the bids, and a hand to raise.

import { calm, h, icon, icons, money, say, ticker } from "./dom.js";
import { house } from "./house.js";
import { left } from "./clock.js";
import { paddle } from "./paddle.js";

const clockTime = (at) => new Date(at).toLocaleTimeString("en-GB");

export function lotPage(id) {
  const lot = house.lots.get(id), { about } = lot;
  const mine = (facts) => !!facts.leader && facts.leader === house.me?.name;
  const price = ticker("price"), priceLabel = h("p", { class: "label" }), leader = h("p", { class: "leader" });
  const time = h("span", { class: "clock", role: "timer" }), timeLabel = h("span", { class: "label" }), bar = h("i");
  const history = h("ol", { class: "history", reversed: true }), historyNote = h("p", { class: "quiet" });
  const earlier = h("tbody"), earlierBox = h("section", { class: "earlier", hidden: true }, h("h2", { text: "Earlier rounds" }),
    h("table", {}, h("thead", { class: "sr" }, h("tr", {}, h("th", { text: "Round" }), h("th", { text: "To" }), h("th", { text: "Price" }))), earlier));
  const act = h("div", { class: "act" });
  const watch = h("button", { type: "button", class: "watch", onclick: toggleWatch }, icon(icons.star), h("span", {}));

  // The form.
  const amount = h("input", { id: "amount", inputmode: "numeric", autocomplete: "off", pattern: "[0-9]*", maxlength: "7", "aria-describedby": "problem" });
  const bid = h("button", { class: "primary" }), chips = h("div", { class: "chips" });
  const problem = h("p", { class: "problem", id: "problem", role: "alert" });
  const form = h("form", { class: "bid", onsubmit: (event) => { event.preventDefault(); place(Number(amount.value)); } },
    h("label", { for: "amount", text: "Your bid in pounds" }), chips, h("div", { class: "row" }, amount, bid), problem);
  const guest = h("button", { type: "button", class: "text", onclick: () => request("guest") }, "Let a guest bid");
  const reopen = h("button", { type: "button", class: "secondary", onclick: () => request("reopen") }, "Open the next round now");
  let typed = false;
  amount.addEventListener("input", () => { typed = true; problem.textContent = ""; button(); });

  const node = h("article", { class: "lot" },
    h("a", { class: "back", href: "#/" }, "← All lots"),
    h("div", { class: "plate" }, h("img", { src: `lots/${id}.svg`, alt: `Picture: ${about.title}`, width: "400", height: "400" })),
    h("div", { class: "desk" },
      h("p", { class: "lot-number", text: `Lot ${about.number} · ${about.origin}` }),
      h("h1", { text: about.title }),
      h("div", { class: "figures" },
        h("div", {}, priceLabel, price.node, leader),
        h("div", { class: "time-box" }, timeLabel, time)),
      h("div", { class: "bar", "aria-hidden": "true" }, bar),
      act,
      h("section", { class: "bids" }, h("h2", { text: "Bids" }), history, historyNote)),
    h("div", { class: "story" }, h("p", { text: about.text }),
      h("p", { class: "quiet", text: `Opens at ${money(about.opening)}, in steps of ${money(about.step)} or more. A bid in the last ten seconds gives the others ten more.` }),
      house.me ? watch : null, earlierBox));

  async function request(op, fields) {
    problem.textContent = "";
    try {
      return await house.link.ask(op, { lot: id, ...fields });
    } catch (error) {
      problem.textContent = error.message[0].toUpperCase() + error.message.slice(1);
      return null;
    }
  }

  async function place(pounds) {
    bid.disabled = true;
    if (await request("bid", { amount: pounds })) typed = false;
    update(lot.facts);
  }

  async function toggleWatch() {
    watch.disabled = true;
    await request(house.inbox.watching.includes(id) ? "unwatch" : "watch");
    watch.disabled = false;
  }

  function watching() {
    const on = house.inbox.watching.includes(id);
    watch.setAttribute("aria-pressed", String(on));
    watch.lastChild.textContent = on ? "Watching: you will be told" : "Watch this lot";
  }

  function button() {
    const value = Number(amount.value);
    bid.textContent = mine(lot.facts) ? "The highest bid is yours" : value > 0 ? "Bid " + money(value) : "Bid";
    bid.disabled = !house.link.up || mine(lot.facts) || !(value > 0);
  }

  // Draws what the facts say.
  let drawn = "";
  function update(facts, moving = true) {
    priceLabel.textContent = facts.closed ? (facts.leader ? "Hammer price" : "Unsold") : facts.price ? "Current bid" : "Opening price";
    price.show(facts.closed && !facts.leader ? "—" : money(facts.price ?? facts.next), moving);
    leader.textContent = facts.leader
      ? (facts.closed ? (mine(facts) ? "Sold to you" : "Sold to " + facts.leader) : mine(facts) ? "You lead" : facts.leader + " leads")
      : facts.closed ? "Nobody raised a hand" : "No bids yet: yours could be the first";
    node.classList.toggle("mine", mine(facts));
    node.classList.toggle("closed", !!facts.closed);
    timeLabel.textContent = facts.closed ? "Next round" : "Closes in";
    const shape = !house.me ? "visitor" : facts.closed ? "closed" : "open";
    if (shape !== drawn) {
      drawn = shape;
      const held = act.contains(document.activeElement);
      act.replaceChildren(...shape === "visitor" ? [paddle("Take a paddle to bid: your name")]
        : shape === "closed" ? [h("p", { class: "gavel", text: facts.leader ? "The hammer has fallen." : "The round is over." }), reopen] : [form, guest]);
      if (shape === "closed") act.append(problem);
      else form.append(problem);
      problem.textContent = "";
      if (held && shape !== "visitor") (shape === "open" ? amount : reopen).focus();
    }
    if (!typed || Number(amount.value) < facts.next && document.activeElement !== amount) {
      amount.value = String(facts.next);
      typed = false;
    }
    chips.replaceChildren(...[0, 1, 4].map((steps) => facts.next + steps * about.step).map((sum) =>
      h("button", { type: "button", class: "chip", disabled: mine(facts), "aria-label": "Set the bid to " + money(sum), onclick: () => { amount.value = String(sum); typed = true; button(); } }, money(sum))));
    button();
    tick();
  }

  function tick() {
    const facts = lot.facts, until = facts.closed ? facts.reopens : facts.ends, from = facts.closed ?? facts.opened;
    const { seconds, text } = left(until);
    time.textContent = text;
    node.classList.toggle("last", !facts.closed && seconds <= 10);
    bar.style.transform = `scaleX(${Math.min(1, seconds * 1000 / Math.max(1, until - from))})`;
  }

  const row = ({ bidder, amount: sum, at }) => h("li", { class: bidder === house.me?.name ? "own" : "" },
    h("span", { class: "bidder", text: bidder === house.me?.name ? "You" : bidder }), h("time", { datetime: new Date(at).toISOString(), text: clockTime(at) }), h("span", { class: "sum", text: money(sum) }));
  const note = () => { historyNote.textContent = history.children.length ? "" : "No bids in this round yet."; };

  // Asks for everything: at the start, after a reconnect, and when a step was missed.
  let asking = false, again = false;
  async function look() {
    if (asking) { again = true; return; }
    asking = true;
    try {
      do {
        again = false;
        const seen = await house.look(id);
        if (seen.facts.step < lot.facts.step) again = true; // something happened meanwhile
        history.replaceChildren(...seen.history.map(row));
        note();
        earlier.replaceChildren(...seen.earlier.map((past) => h("tr", {}, h("td", { text: "Round " + past.round }), h("td", { text: past.winner }), h("td", { class: "sum", text: money(past.price) }))));
        earlierBox.hidden = seen.earlier.length === 0;
      } while (again);
    } catch { /* asked again when the link is back */ } finally { asking = false; }
  }

  function onLot({ detail: { id: which, facts, before } }) {
    if (which !== id) return;
    update(facts);
    if (!before || facts.round !== before.round) { look(); return; }
    if (facts.bids === before.bids + 1) {
      const added = row({ bidder: facts.leader, amount: facts.price, at: facts.at });
      history.prepend(added);
      note();
      if (!calm.matches) added.animate([{ opacity: 0, transform: "translateY(-.5em)" }, { opacity: 1, transform: "none" }], { duration: 350, easing: "ease-out" });
      say(mine(facts) ? `Your bid of ${money(facts.price)} leads.` : `${facts.leader} bids ${money(facts.price)}.`);
    }
    if (facts.closed) say(facts.leader ? `Sold to ${mine(facts) ? "you" : facts.leader} for ${money(facts.price)}.` : "The round is over, unsold.");
  }
  const onMissed = ({ detail }) => detail.id === id && look();
  const onLink = ({ detail }) => { button(); if (detail === "up" && !house.me) look(); };

  const listeners = { lot: onLot, missed: onMissed, link: onLink, welcome: look, inbox: watching };
  for (const [type, listener] of Object.entries(listeners)) house.addEventListener(type, listener);
  const timer = setInterval(tick, 250);
  update(lot.facts, false);
  watching();
  note();
  look();

  return {
    node,
    title: `${about.title} · The Weir Rooms`,
    close() {
      clearInterval(timer);
      for (const [type, listener] of Object.entries(listeners)) house.removeEventListener(type, listener);
      if (house.me && house.link.up) house.link.ask("leave").catch(() => {});
    },
  };
}
