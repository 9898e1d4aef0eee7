// Pages of an export: prompts, and lists that are searched, sorted and divided here, from data in parts.
"use strict";

const SVG_TAGS = new Set(["svg", "g", "line", "circle", "path", "polyline", "rect", "text", "title"]);
const parts = new Map();

// Data of one file; it is compressed, unless the server has decompressed it already.
async function readFile(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  const content = await response.blob();
  const [first, second] = new Uint8Array(await content.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return JSON.parse(await content.text());
  return new Response(content.stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function load(address) {
  if (!parts.has(address)) parts.set(address, readFile(address));
  return parts.get(address);
}

function isSafe(name, value) {
  if (/^(on|style$|srcdoc$|formaction$)/i.test(name)) return false;
  return !/^(href|src|action)$/i.test(name) || !/^[\s\u0000-\u001f]*[a-z][\w+.-]*:/i.test(value) || /^https?:/i.test(value);
}

// Append elements of tokens: a text, [tag, attributes], or 0 for the end of an element.
function build(parent, tokens) {
  const open = [parent];
  for (const token of tokens) {
    const last = open[open.length - 1];
    if (token === 0) {
      if (open.length > 1) open.pop();
    } else if (typeof token === "string") {
      last.append(token);
    } else {
      const [tag, attributes = {}] = token;
      const isDrawing = tag === "svg" || (last.namespaceURI === "http://www.w3.org/2000/svg" && SVG_TAGS.has(tag));
      const element = isDrawing ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) if (isSafe(name, value)) element.setAttribute(name, value);
      last.append(element);
      open.push(element);
    }
  }
}

function report(place, text) {
  let status = document.querySelector("main [role=status]");
  if (!status) {
    status = document.createElement("p");
    status.setAttribute("role", "status");
    place.before(status);
  }
  status.textContent = text;
  status.hidden = !text;
}

function explain(error) {
  const advice = location.protocol === "file:" ? "Open it from a server: python -m http.server" : "Load the page again.";
  return `The data of this page cannot be loaded (${error.message}). ${advice}`;
}

// The number of the prompt in the address: ?id=7 or #prompt=7.
function findPromptNumber() {
  const text = /^#prompt=(\d+)$/.exec(location.hash)?.[1] ?? new URLSearchParams(location.search).get("id");
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

async function showPrompt() {
  const number = findPromptNumber();
  const main = document.querySelector("main");
  if (number === null) return;
  try {
    const size = Number(main.dataset.part);
    const part = await load(`prompts/${Math.floor(number / size)}.json.gz`).catch((error) => {
      if (/: 404$/.test(error.message)) return { prompts: {} };
      throw error;
    });
    if (number !== findPromptNumber()) return;
    const pieces = part.prompts[number];
    if (!pieces) return report(main.lastElementChild, `This export has no prompt ${number}.`);
    main.replaceChildren();
    build(main, pieces.flatMap((piece) => part.pieces[piece]));
    document.title = `${main.querySelector("h1").textContent} · Suffrage`;
  } catch (error) {
    report(main.lastElementChild, explain(error));
  }
}

const asText = (value) => String(value ?? "").toLowerCase();

const RULES = {
  contains: (wish) => (value) => asText(value).includes(asText(wish)),
  equals: (wish) => (value) => String(value ?? "") === wish,
  least: (wish) => (value) => value !== null && value >= Number(wish),
  most: (wish) => (value) => value !== null && value <= Number(wish),
};

// Numbers before texts; the caller keeps undefined values out.
function compareValues(a, b) {
  if (typeof a !== typeof b) return typeof a === "string" ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortPlaces(places, values, isDescending) {
  const known = places.filter((place) => values[place] !== null && values[place] !== undefined);
  const missing = places.filter((place) => values[place] === null || values[place] === undefined);
  known.sort((a, b) => compareValues(values[a], values[b]) * (isDescending ? -1 : 1));
  return [...known, ...missing];
}

class List {
  constructor(element) {
    this.element = element;
    this.parameters = new URLSearchParams(location.search);
    this.nRows = Number(element.dataset.rows);
    this.partSize = Number(element.dataset.part);
    this.pageSize = Number(element.dataset.page);
  }

  loadPart(number) {
    return load(`${this.element.dataset.list}-rows-${number}.json.gz`);
  }

  async show() {
    const data = await load(`${this.element.dataset.list}-columns.json.gz`);
    let places = this.filterColumns(data);
    for (const [name, rule] of Object.entries(data.filters)) {
      const wish = (this.parameters.get(name) ?? "").trim();
      if (rule.kind === "text" && wish) places = await this.findText(places, wish);
    }
    const key = this.parameters.get("sort");
    if (key && data.columns[key]) places = sortPlaces(places, data.columns[key], this.isDescending());
    if (data.per_kind) return this.showResults(places, data);
    const nPages = Math.max(1, Math.ceil(places.length / this.pageSize));
    const page = Math.min(Math.max(1, Math.trunc(Number(this.parameters.get("page") ?? 1)) || 1), nPages);
    const first = (page - 1) * this.pageSize;
    const shown = places.slice(first, first + this.pageSize);
    await this.fill(shown);
    this.markHeads();
    this.writePaging(page, nPages, first, shown.length, places.length);
  }

  isDescending() {
    return this.parameters.get("order") === "descending";
  }

  filterColumns(data) {
    let places = Array.from({ length: this.nRows }, (_, place) => place);
    for (const [name, rule] of Object.entries(data.filters)) {
      const wish = this.parameters.get(name) ?? "";
      const column = data.columns[rule.column];
      if (wish === "" || rule.kind === "text" || !column) continue;
      if (["least", "most"].includes(rule.kind) && !Number.isFinite(Number(wish))) {
        throw new Error(`${name} is “${wish}”; it must be a number`);
      }
      const isMatch = RULES[rule.kind](wish);
      places = places.filter((place) => isMatch(column[place]));
    }
    return places;
  }

  // Rows whose text has a part; upper and lower case are equal.
  async findText(places, wish) {
    const wanted = asText(wish);
    const numbers = [...new Set(places.map((place) => Math.floor(place / this.partSize)))];
    let nSearched = 0;
    const loaded = new Map();
    await Promise.all(numbers.map(async (number) => {
      const part = await this.loadPart(number);
      loaded.set(number, part.texts.map((text) => asText(text).includes(wanted)));
      nSearched += part.texts.length;
      report(this.container(), `Searched ${nSearched.toLocaleString("en")} of ${this.nRows.toLocaleString("en")} rows.`);
    }));
    report(this.container(), "");
    return places.filter((place) => loaded.get(Math.floor(place / this.partSize))[place % this.partSize]);
  }

  container() {
    return this.element.closest(".scroll") ?? this.element;
  }

  async fill(places) {
    const tokens = [];
    for (const place of places) {
      const part = await this.loadPart(Math.floor(place / this.partSize));
      tokens.push(...part.rows[place % this.partSize]);
    }
    const fragment = document.createDocumentFragment();
    build(fragment, tokens);
    this.element.replaceChildren(fragment);
  }

  async showResults(places, data) {
    const counts = {};
    const kinds = data.columns.kind;
    const shown = places.filter((place) => (counts[kinds[place]] = (counts[kinds[place]] ?? 0) + 1) <= data.per_kind);
    await this.fill(shown);
    const wish = this.parameters.get("q");
    document.querySelector("main h1").textContent = `Search: ${wish}`;
    document.title = `Search: ${wish} · Suffrage`;
    if (!shown.length) report(this.container(), `No benchmark, model or prompt contains “${wish}”.`);
  }

  address(changes) {
    const parameters = new URLSearchParams(this.parameters);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) parameters.delete(name);
      else parameters.set(name, value);
    }
    return `?${parameters}`;
  }

  markHeads() {
    for (const link of this.element.closest("table")?.querySelectorAll("thead a[href*='sort=']") ?? []) {
      const key = new URL(link.href).searchParams.get("sort");
      const isSorted = key === this.parameters.get("sort");
      const order = isSorted && !this.isDescending() ? "descending" : "ascending";
      link.setAttribute("href", this.address({ sort: key, order, page: null }));
      if (!isSorted) continue;
      link.closest("th").setAttribute("aria-sort", this.isDescending() ? "descending" : "ascending");
      link.querySelector("[aria-hidden]").textContent = this.isDescending() ? " ↓" : " ↑";
    }
  }

  writePaging(page, nPages, first, nShown, n) {
    const place = document.querySelector("p.pages");
    const noun = /(\p{L}+?)s?\.\s*$/u.exec(place.firstChild.textContent)?.[1] ?? "row";
    const count = n.toLocaleString("en");
    const range = `${(first + 1).toLocaleString("en")}–${(first + nShown).toLocaleString("en")} of ${count} ${noun}s. `;
    place.replaceChildren(nPages > 1 ? range : n ? `${count} ${noun}${n === 1 ? "" : "s"}.` : `No ${noun} matches.`);
    for (const [rel, title, number] of [["prev", "Previous", page - 1], ["next", "Next", page + 1]]) {
      if (number < 1 || number > nPages) continue;
      const link = document.createElement("a");
      link.rel = rel;
      link.setAttribute("href", this.address({ page: number }));
      link.textContent = title;
      place.append(link, " ");
    }
  }
}

// Forms show the parameters of the address, and keep the order of the list.
function fillForms(parameters, isSearch) {
  for (const form of document.forms) {
    if (form.getAttribute("role") === "search" && !isSearch) continue;
    for (const field of form.elements) if (field.name && parameters.has(field.name)) field.value = parameters.get(field.name);
    if (!form.classList.contains("filters")) continue;
    for (const name of ["sort", "order"]) {
      if (!parameters.has(name) || form.elements.namedItem(name)) continue;
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = name;
      field.value = parameters.get(name);
      form.append(field);
    }
  }
}

function start() {
  if (document.querySelector("#prompt")) {
    document.querySelector("main").dataset.part = document.querySelector("#prompt").dataset.part;
    showPrompt();
    addEventListener("hashchange", showPrompt);
    return;
  }
  const parameters = new URLSearchParams(location.search);
  const element = document.querySelector("[data-list]");
  if (!element || ![...parameters.values()].some((value) => value.trim())) return;
  fillForms(parameters, element.matches("ul"));
  const list = new List(element);
  list.show().catch((error) => report(list.container(), explain(error)));
}

start();
