// The hall: all lots, live.

import { h, money, ticker } from "./dom.js";
import { house } from "./house.js";
import { left } from "./clock.js";
import { paddle } from "./paddle.js";

function card(id) {
  const { about } = house.lots.get(id);
  const price = ticker("card-price"), label = h("span", { class: "label" }), who = h("p", { class: "who" });
  const time = h("span", { class: "time" }), node = h("li", { class: "card" });
  node.append(h("a", { href: "#/lot/" + id },
    h("span", { class: "picture" }, h("img", { src: `lots/${id}.svg`, alt: "", width: "400", height: "400" }), time),
    h("span", { class: "lot-number", text: "Lot " + about.number }),
    h("h2", { text: about.title }),
    h("span", { class: "line" }, label, price.node),
    who));
  return {
    node,
    update(moving) {
      const { facts } = house.lots.get(id);
      const sold = facts.closed && facts.leader;
      node.classList.toggle("closed", !!facts.closed);
      label.textContent = facts.closed ? (sold ? "Sold" : "Unsold") : facts.price ? "Current bid" : "Opens at";
      price.show(facts.closed && !sold ? "—" : money(facts.price ?? facts.next), moving);
      const mine = facts.leader && facts.leader === house.me?.name;
      node.classList.toggle("mine", !!mine);
      who.textContent = facts.leader
        ? (facts.closed ? (mine ? "to you" : "to " + facts.leader) : mine ? "You lead" : facts.leader + " leads")
        : facts.closed ? "No bids this round" : "No bids yet";
    },
    tick() {
      const { facts } = house.lots.get(id);
      const { seconds, text } = left(facts.closed ? facts.reopens : facts.ends);
      time.textContent = facts.closed ? "again in " + text : text;
      time.classList.toggle("last", !facts.closed && seconds <= 10);
    },
  };
}

export function hallPage() {
  const cards = new Map([...house.lots.keys()].map((id) => [id, card(id)]));
  const node = h("div", { class: "hall" },
    h("section", { class: "intro" },
      h("h1", {}, "Six lots, always", h("br"), " under the hammer."),
      h("div", { class: "aside" },
        h("p", { text: "Every lot is an object of its own with its own clock. Bid, shut the tab, and the house will keep your notes until you are back." }),
        house.me ? null : paddle("Your name in the room"))),
    h("ul", { class: "cards", "aria-label": "Lots" }, [...cards.values()].map((each) => each.node)));

  const tick = () => { for (const each of cards.values()) each.tick(); };
  for (const each of cards.values()) each.update(false);
  tick();
  const timer = setInterval(tick, 250);
  const onLot = ({ detail }) => { cards.get(detail.id)?.update(true); tick(); };
  house.addEventListener("lot", onLot);
  return {
    node,
    title: "The Weir Rooms",
    close() { clearInterval(timer); house.removeEventListener("lot", onLot); },
  };
}
