// Filter, sort and group what the page has already; the state is in the address, so that it can be shared.
"use strict";
(() => {
  const filters = document.querySelector(".filters");
  const tools = document.querySelector(".tools");
  const map = document.querySelector(".map");
  // gathered when they are first asked for: a page that is only read needs none of them
  const once = (gather) => { let found; return () => (found ??= gather()); };
  const items = once(() => [...document.querySelectorAll("[data-item]")]);
  const rows = once(() => [...document.querySelectorAll(".sortable tbody tr")]);
  const cells = once(() => [...map.querySelectorAll(".cell")]);
  const heads = [...document.querySelectorAll(".sortable th[data-key]")];
  const fields = [...filters.elements, ...tools.elements].filter((field) => field.name);
  let sort = "";

  const read = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      field.value = state.get(field.name) || "";
      if (field.selectedIndex === -1) field.value = "";
    }
    sort = state.get("sort") || "";
  };

  const write = () => {
    const state = new URLSearchParams();
    for (const field of fields) if (field.value) state.set(field.name, field.value);
    if (sort) state.set("sort", sort);
    history.replaceState(null, "", location.pathname + location.search + (state.size ? "#" + state : ""));
  };

  const isShown = (item) => {
    const words = filters.elements.q.value.toLowerCase().split(/\s+/);
    if (!words.every((word) => item.dataset.name.includes(word))) return false;
    for (const name of ["split", "category"]) {
      const wanted = filters.elements[name].value;
      if (wanted && item.dataset[name] !== wanted) return false;
    }
    for (const name of ["medal", "outcome"]) {
      const wanted = filters.elements[name].value;
      if (wanted && !item.dataset[name].split(" ").includes(wanted)) return false;
    }
    return true;
  };

  const show = () => {
    for (const item of items()) item.hidden = !isShown(item);
    const shown = rows().filter((row) => !row.hidden).length;
    filters.querySelector("output").textContent = `${shown} of ${rows().length} competitions`;
  };

  const cell = (row, index) => {
    const found = row.cells[index];
    return found.dataset.value === undefined ? found.textContent.trim() : found.dataset.value;
  };

  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b) : difference;
  };

  const order = () => {
    const [key, direction] = sort.split(":");
    const head = heads.find((one) => one.dataset.key === key);
    for (const one of heads) one.setAttribute("aria-sort", one !== head ? "none" : direction === "down" ? "descending" : "ascending");
    const sorted = [...rows()];
    if (head) {
      const index = head.cellIndex, sign = direction === "down" ? -1 : 1;
      sorted.sort((a, b) => {
        const [one, other] = [cell(a, index), cell(b, index)];
        return one === "" || other === "" ? compare(one, other) : sign * compare(one, other);
      });
    }
    if (sorted.length) sorted[0].parentNode.append(...sorted);
  };

  const arrange = () => {
    const group = tools.elements.group.value || "split", by = tools.elements.order.value;
    const sorted = [...cells()];
    if (by) sorted.sort((a, b) => Number(b.dataset[by] || -1) - Number(a.dataset[by] || -1));
    const groups = new Map();
    for (const one of sorted) groups.set(one.dataset[group], [...(groups.get(one.dataset[group]) || []), one]);
    const parts = [];
    for (const [name, members] of groups) {
      const title = document.createElement("h3");
      title.textContent = name;
      title.hidden = members.every((member) => member.hidden);
      parts.push(title, ...members);
    }
    map.replaceChildren(...parts);
  };

  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const attempt = target && target.closest("details");
    if (!attempt) return false;
    attempt.hidden = false;
    attempt.open = true;
    target.scrollIntoView();
    return true;
  };

  const update = () => { show(); arrange(); };
  const follow = () => {
    if (location.hash.includes("=") || location.hash === "") { read(); order(); update(); } else open();
  };

  for (const head of heads) {
    head.setAttribute("aria-sort", "none");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const key = head.dataset.key;
      sort = sort === `${key}:up` ? `${key}:down` : sort === `${key}:down` ? "" : `${key}:up`;
      order();
      write();
    });
  }
  for (const form of [filters, tools]) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => { write(); update(); });
  }
  filters.addEventListener("reset", () => setTimeout(() => { write(); update(); }));
  addEventListener("hashchange", follow);
  // the page comes sorted and grouped: it is arranged anew only where something else is asked for
  if (fields.some((field) => field.value)) update();
  if (location.hash !== "") follow();
})();
