// Follow a run that goes on, or the list of runs: the server sends what has changed, and everything is put in as text.
"use strict";
(() => {
  const live = document.getElementById("live");
  const runs = document.getElementById("runs");
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
    const bar = shape(card, "svg", { class: "bar", viewBox: "0 0 204 18", "aria-hidden": "true" });
    shape(bar, "rect", { class: "track", x: 2, y: 5, width: 200, height: 8, rx: 4 });
    shape(bar, "rect", { class: "fill", x: 2, y: 5, width: 0, height: 8, rx: 4 });
    element(card, "p", "quiet facts");
    element(card, "div", "curves");
    element(card, "pre").tabIndex = 0;
    live.append(card);
    return card;
  };

  const update = (card, one) => {
    const facts = [one.time, one.place, ...one.usage, one.valid, one.spent];
    card.querySelector(".bar").toggleAttribute("hidden", one.part === null);
    card.querySelector(".fill").setAttribute("width", 200 * (one.part || 0));
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

  const table = (rows) => {
    const body = document.getElementById("rows");
    body.replaceChildren();
    for (const row of rows) {
      const line = element(body, "tr");
      element(line, "th", "", row.name).scope = "row";
      element(line, "td", "number", row.seed);
      for (const name of ["state", "medal"]) element(line, "td", "", row[name]);
      for (const name of ["score", "time"]) element(line, "td", "number", row[name]);
      const left = element(line, "td");
      for (const [name, href] of row.links) { element(left, "a", "", name).href = href; left.append(" "); }
    }
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

  const list = (now) => {
    for (const card of now.cards) {
      const row = [...runs.rows].find((one) => one.dataset.run === card.name);
      if (!row) { location.reload(); return; }
      const [, , agent, splits, seeds, progress, rates, cost] = row.cells;
      agent.textContent = card.agent;
      splits.textContent = card.splits;
      seeds.textContent = card.seeds === null ? "" : card.seeds;
      progress.textContent = card.problem || card.progress;
      progress.className = card.problem ? "bad" : "";
      rates.replaceChildren();
      for (const [split, rate] of card.rates) element(rates, "div", "", `${split} ${rate}`);
      cost.textContent = card.cost;
    }
  };

  const follow = (place, show) => {
    const known = {};
    const source = new EventSource(place.dataset.events);
    source.addEventListener("message", (event) => {
      const changed = JSON.parse(event.data);
      Object.assign(known, changed);
      show(known, changed);
      if (known.over) source.close();
    });
  };

  if (runs) follow(runs, list);
  if (live && live.dataset.events) {
    live.replaceChildren();
    follow(live, (now, changed) => { draw(now); if (changed.rows) table(changed.rows); });
  }
})();
