// Theme, search, filters and sorting; the state of the lists stands in the address, after the #.
"use strict";

function themed() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (error) { /* no storage */ }
  });
}

const fits = (value, choice) => choice.startsWith("not ") ? value !== choice.slice(4) : value === choice;

// A claim that has no verdict at a scale was not run there.
function matches(row, state) {
  const said = row.dataset;
  if (state.q && !state.q.toLowerCase().split(/\s+/).every((word) => (said.text || "").includes(word))) return false;
  if (state.paper && said.paper !== state.paper) return false;
  if (state.whose && !fits(said.whose, state.whose)) return false;
  if (state.about && said.about !== state.about) return false;
  if (!state.verdict && !state.scale) return true;
  const found = (said.at || "").split(";").map((one) => one.split(":"))
    .filter(([scale]) => !state.scale || scale === state.scale);
  if (!found.length) return state.verdict === "not run";
  return found.some(([, verdict]) => !state.verdict || verdict === state.verdict);
}

function compared(left, right) {
  const [a, b] = [left.dataset.key ?? left.textContent.trim(), right.dataset.key ?? right.textContent.trim()];
  const [x, y] = [parseFloat(a), parseFloat(b)];
  if (!Number.isNaN(x) && !Number.isNaN(y) && x !== y) return x - y;
  return a.localeCompare(b, "en", { numeric: true });
}

const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

// Returns what draws the table in a state and says how many of how many rows it shows.
function listed(table, write) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  const fold = table.closest("details");
  for (const head of heads) {
    head.querySelector("button")?.addEventListener("click", () => {
      const state = read();
      write({ ...state, sort: state.sort === head.dataset.sort ? `-${head.dataset.sort}` : head.dataset.sort });
    });
  }
  return (state) => {
    const at = heads.findIndex((head) => head.dataset.sort === (state.sort || "").replace(/^-/, ""));
    const turn = (state.sort || "").startsWith("-") ? -1 : 1;
    const rows = at < 0 ? original : [...original].sort((a, b) => turn * compared(a.cells[at], b.cells[at]));
    let shown = 0;
    for (const row of rows) { row.hidden = !matches(row, state); shown += row.hidden ? 0 : 1; body.append(row); }
    heads.forEach((head, index) => head.setAttribute("aria-sort", index !== at ? "none" : turn > 0 ? "ascending" : "descending"));
    if (fold && ["q", "verdict", "scale", "paper", "whose", "about"].some((key) => state[key])) fold.open = shown > 0;
    return [shown, original.length];
  };
}

function lists(tables) {
  const controls = [...document.querySelectorAll("[data-filter]")];
  const count = document.getElementById("count");
  const write = (state) => {
    const kept = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
    history.replaceState(null, "", kept.toString() ? `#${kept}` : location.pathname + location.search);
    draw();
  };
  const all = tables.map((table) => listed(table, write));
  const draw = () => {
    const state = read();
    for (const control of controls) if (control !== document.activeElement || control.value === "") control.value = state[control.dataset.filter] || "";
    const [shown, total] = all.map((one) => one(state)).reduce(([a, b], [c, d]) => [a + c, b + d]);
    if (count) count.textContent = `${shown} of ${total} shown`;
  };
  for (const control of controls) {
    control.addEventListener("input", () => write({ ...read(), [control.dataset.filter]: control.value }));
  }
  addEventListener("hashchange", () => { draw(); if (location.hash.includes("=")) document.querySelector(".filters")?.scrollIntoView(); });
  draw();
}

function marked() {
  for (const wide of document.querySelectorAll(".wide")) wide.classList.toggle("scrolls", wide.scrollWidth > wide.clientWidth + 1);
}

themed();
const tables = [...document.querySelectorAll("table[data-list]")];
if (tables.length) lists(tables);
marked();
addEventListener("resize", marked);
