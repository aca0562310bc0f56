// The form with which a visitor becomes a bidder.

import { h } from "./dom.js";
import { house } from "./house.js";

export function paddle(why) {
  const field = h("input", { id: "name", name: "name", required: true, maxlength: "30", autocomplete: "nickname", placeholder: "Ada" });
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", {
    class: "paddle",
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await house.enter(field.value);
      } catch (error) {
        problem.textContent = error.message;
        field.focus();
      }
    },
  }, h("label", { for: "name", text: why }),
  h("div", { class: "row" }, field, h("button", { class: "primary" }, "Take a paddle")), problem);
}
