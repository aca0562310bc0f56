// Building and changing the page. Text always goes in as text nodes, never as markup.

export function h(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

export const money = (pounds) => "£" + pounds.toLocaleString("en-GB");

// An icon of lines, drawn in a 24 by 24 box.
export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export const icons = {
  bell: "M6 16.500V11a6 6 0 0 1 12 0v5.500l1.500 2h-15zM10 21h4",
  star: "M12 4l2.500 5.200 5.700.7-4.200 3.900 1.100 5.700L12 16.700l-5.100 2.800L8 13.800 3.800 9.900l5.700-.7z",
};

// Says something to screen readers.
export function say(text) {
  byId("polite").textContent = text;
}

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

// A number that moves when it changes: the old one leaves upwards, the new one comes from below.
export function ticker(className) {
  let shown;
  const box = h("span", { class: "ticker " + className });
  return {
    node: box,
    show(text, moving = true) {
      if (text === shown) return;
      const old = [...box.children];
      const next = h("span", { text });
      const first = shown === undefined;
      shown = text;
      if (first || !moving || calm.matches) {
        box.replaceChildren(next);
        return;
      }
      box.append(next);
      const timing = { duration: 420, easing: "cubic-bezier(.2,.8,.2,1)" };
      for (const node of old) {
        node.classList.add("leaving");
        node.setAttribute("aria-hidden", "true");
        node.animate([{ transform: "none", opacity: 1 }, { transform: "translateY(-.9em)", opacity: 0 }], timing)
          .finished.then(() => node.remove(), () => node.remove());
      }
      next.animate([{ transform: "translateY(.9em)", opacity: 0 }, { transform: "none", opacity: 1 }], timing);
      box.classList.remove("moved");
      void box.offsetWidth; // starts the accent again
      box.classList.add("moved");
    },
  };
}

let toastTimer;

// One line at the foot of the page for a few seconds.
export function toast(...content) {
  const node = h("div", { class: "toast" }, ...content);
  byId("toasts").replaceChildren(node);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => node.remove(), 7000);
  node.addEventListener("click", () => node.remove());
  say(node.textContent);
}
