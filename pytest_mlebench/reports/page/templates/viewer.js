// Follow a run that goes on: the server sends how far it is, and everything is put in as text.
"use strict";
(() => {
  const live = document.getElementById("live");
  if (!live || !live.dataset.events) return;
  const drawn = new Map();

  const element = (parent, name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const shape = (parent, name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };

  const section = (one) => {
    const card = document.createElement("section");
    card.className = "card";
    card.setAttribute("aria-label", one.name);
    element(card, "h2", "", one.name);
    element(card, "p", "quiet facts");
    element(card, "div", "curves");
    element(card, "pre").tabIndex = 0;
    live.append(card);
    return card;
  };

  const update = (card, one) => {
    const facts = [one.time, one.place, ...one.usage, one.valid, one.spent];
    if (one.snapshots) facts.push(`${one.snapshots} snapshots`);
    card.querySelector(".facts").textContent = facts.filter(Boolean).join(" · ");
    const curves = card.querySelector(".curves");
    curves.replaceChildren();
    for (const curve of one.curves) {
      const figure = element(curves, "figure");
      const svg = shape(figure, "svg", { class: "curve", viewBox: "0 0 260 60", role: "img", "aria-label": curve.label });
      shape(svg, "polyline", { points: curve.points });
      element(figure, "figcaption", "", curve.label);
    }
    const log = card.querySelector("pre");
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 20;
    log.textContent = one.log.join("\n");
    if (atEnd) log.scrollTop = log.scrollHeight;
  };

  const draw = (now) => {
    document.getElementById("status").textContent = now.status + (now.more ? `, ${now.more} more run` : "");
    const names = new Set(now.running.map((one) => one.name));
    for (const [name, card] of drawn) if (!names.has(name)) { card.remove(); drawn.delete(name); }
    for (const one of now.running) {
      if (!drawn.has(one.name)) drawn.set(one.name, section(one));
      update(drawn.get(one.name), one);
    }
  };

  live.replaceChildren();
  const source = new EventSource(live.dataset.events);
  source.addEventListener("message", (event) => {
    const now = JSON.parse(event.data);
    draw(now);
    if (now.over) source.close();
  });
})();
