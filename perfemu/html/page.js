// The page: what is chosen, the table of functions, the source, and the part of the address behind the #.
const element = id => document.getElementById(id);
const LEAST_ROWS = 200;
const DEFAULTS = { event: 0, tasks: "", groups: data.events[0].chains ? "none" : "comm", shape: "flame", inverted: false,
  width: "new", search: "", file: 0 };
const state = { ...DEFAULTS };
const sorting = { column: 2, descending: true };
let matches = null, matching = null, allRows = false, target = 0;

const number = value => Math.round(value).toLocaleString("en-US");
const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(2)}%` : "";
const signed = value => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + number(Math.abs(value));
const change = ([now, before]) => now === before ? "" : before ? `${now >= before ? "+" : "\u2212"}${(100 * Math.abs(now - before) / before).toFixed(2)}%`
  : now ? "new" : "";
const event = () => data.events[state.event];

function make(tag, text = "", classes = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

function fill(id, rows) {  // a table, with more rows than a call may have arguments
  const body = document.createElement("tbody");
  for (const row of rows) body.append(row);
  element(id).tBodies[0].replaceWith(body);
}

const TASK_CHOICES = (() => {
  const rows = [["", "all", null]];
  for (const comm of new Set(tasks.map(task => task.comm))) rows.push([`comm ${comm}`, comm, task => task.comm === comm]);
  if (tasks.length > 1) {
    for (const each of tasks) {
      const name = GROUPS.task(each);
      rows.push([`task ${name}`, `\u00a0\u00a0${name}`, task => GROUPS.task(task) === name]);
    }
  }
  return rows;
})();
const chosenTasks = () => TASK_CHOICES.find(([value]) => value === state.tasks)?.[2] ?? null;

// --- the picture ---

const flame = new Flame(element("flame"), describe, remember);

function showAnew() { showFlame([]); }

function showFlame(path = flame.zoomed?.path ?? []) {  // zoomed as before, where there is such a box
  const root = rootOf(event(), chosenTasks(), state.groups, state.inverted);
  flame.show(root, { icicle: state.shape === "icicle", side: state.width === "old" ? OLD : NEW, compared: event().compared });
  let box = root;
  for (const key of path) box = box?.children.find(child => child.key === key);
  if (box && box !== root) flame.zoom(box); else describe(root);
  showMatched();
}

function describe(box) {
  if (!box) return;
  const root = flame.root.sums, { sums } = box, side = flame.options.side;
  const words = [`${box.label}${box.func?.name ? ` (${box.func.file})` : ""}: ${number(sums[side])} ${event().name}`];
  if (root[side]) words.push(`${percent(sums[side], root[side])} of all`);
  if (box.parent?.parent?.sums[side]) words.push(`${percent(sums[side], box.parent.sums[side])} of ${box.parent.label}`);
  if (event().compared) words.push(`old ${number(sums[OLD])}, new ${number(sums[NEW])}, ${signed(sums[NEW] - sums[OLD])} ${change(sums)}`);
  element("status").textContent = words.join(", ");
}

function search() {
  matches = matching = null;
  if (state.search) {
    let found;
    try { const pattern = new RegExp(state.search, "i"); found = text => pattern.test(text); }
    catch { const text = state.search.toLowerCase(); found = other => other.toLowerCase().includes(text); }
    matches = functions.map(({ label }) => found(label));
    matching = matchingNodes(matches);
  }
  flame.matches = matches;
}

function showMatched() {
  const side = flame.options.side, zoomed = flame.zoomed;
  element("matched").textContent = matching
    ? `matched ${percent(zoomed.share(matching)[side], zoomed.sums[side]) || "0.00%"}` : "";
}

// --- the table of functions ---

function columns() {
  const here = event(), sums = data.events.map(each => sumsOfFunctions(each, chosenTasks()));
  const { own, all, total } = sums[state.event];
  const made = [
    { title: "Function", text: row => row.label, sort: row => row.label.toLowerCase(), isText: true },
    { title: "File", text: row => row.file, sort: row => row.file.toLowerCase(), isText: true },
  ];
  const numbers = (title, values, text = number, classes = () => "") =>
    made.push({ title, sort: row => values(row.number), text: row => text(values(row.number), row), classes });
  numbers("Self", at => own[NEW][at]);
  numbers("Self %", at => own[NEW][at] / total[NEW] * 100 || 0, value => `${value.toFixed(2)}%`);
  if (here.chains) {
    numbers("Total", at => all[NEW][at]);
    numbers("Total %", at => all[NEW][at] / total[NEW] * 100 || 0, value => `${value.toFixed(2)}%`);
  }
  if (here.compared) {
    const coloured = row => { const value = own[NEW][row.number] - own[OLD][row.number]; return value > 0 ? "grown" : value < 0 ? "shrunk" : ""; };
    numbers("Old self", at => own[OLD][at]);
    made.push({ title: "Difference", sort: row => Math.abs(own[NEW][row.number] - own[OLD][row.number]),
      text: row => signed(own[NEW][row.number] - own[OLD][row.number]), classes: coloured });
    made.push({ title: "Change", sort: row => (own[NEW][row.number] - own[OLD][row.number]) / (own[OLD][row.number] || 1e-9),
      text: row => change([own[NEW][row.number], own[OLD][row.number]]), classes: coloured });
    if (here.chains) numbers("Total difference", at => all[NEW][at] - all[OLD][at], signed);
  }
  for (const { title, over, under, scale } of data.metrics) {
    const value = at => sums[under].own[NEW][at] ? scale * sums[over].own[NEW][at] / sums[under].own[NEW][at] : -1;
    numbers(title, value, found => found < 0 ? "" : found.toFixed(2));
  }
  const rows = functions.filter(({ number: at, name }) => name && (all[NEW][at] || all[OLD][at]));
  return { made, rows };
}

function showTable() {
  const { made, rows } = columns();
  if (sorting.column >= made.length) sorting.column = 2;
  const head = make("tr");
  made.forEach((column, index) => {
    const cell = make("th", "", column.isText ? "text" : ""), button = make("button", column.title);
    cell.scope = "col";
    cell.ariaSort = index !== sorting.column ? "none" : sorting.descending ? "descending" : "ascending";
    if (index === sorting.column) button.textContent += sorting.descending ? " \u25bc" : " \u25b2";
    button.type = "button";
    button.addEventListener("click", () => {
      sorting.descending = index === sorting.column ? !sorting.descending : !column.isText;
      sorting.column = index;
      showTable();
      element("functions").querySelectorAll("th button")[index].focus();
    });
    cell.append(button);
    head.append(cell);
  });
  element("functions").tHead.replaceChildren(head);
  const { sort } = made[sorting.column], direction = sorting.descending ? -1 : 1;
  const keyed = rows.map(row => ({ row, key: sort(row) }));
  keyed.sort((a, b) => a.key < b.key ? -direction : a.key > b.key ? direction : a.row.number - b.row.number);
  let shown = keyed.map(({ row }) => row);
  if (matches) shown = [...shown.filter(row => matches[row.number]), ...shown.filter(row => !matches[row.number])];
  const left = shown.length - LEAST_ROWS;
  if (!allRows) shown = shown.slice(0, LEAST_ROWS);
  fill("functions", shown.map(row => tableRow(row, made)));
  element("more").hidden = allRows || left <= 0;
  element("more").textContent = `Show ${left} more`;
}

function tableRow(row, made) {
  const line = make("tr", "", matches?.[row.number] ? "matches" : "");
  for (const column of made) line.append(make("td", column.text(row), column.isText ? "text" : column.classes?.(row) ?? ""));
  const button = make("button", row.label);
  button.type = "button";
  button.title = row.home.length ? "Show where it is in the picture, and its source" : "Show where it is in the picture";
  button.addEventListener("click", () => {
    choose("search", `^${row.label.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
    showHome(row);
  });
  line.firstChild.replaceChildren(button);
  if (row.was) line.firstChild.append(` (was ${row.was})`);
  return line;
}

// --- source ---

function showHome(func, jump = false) {
  if (!func?.home.length) return;
  state.file = func.home[0];
  target = func.home[1];
  element("file").value = state.file;
  showSource();
  const line = element("source").querySelector("tr.target");
  if (line) element("source-box").scrollTop = line.offsetTop - element("source-box").clientHeight / 3;
  if (jump) { element("source-box").scrollIntoView({ block: "nearest" }); element("source-box").focus(); }
}

function showSource() {
  const source = data.sources[state.file];
  if (!source) return;
  const counts = new Map(source.lines.map((line, index) => [line, source.counts[state.event][index]]));
  const most = source.counts[state.event].reduce((most, count) => Math.max(most, count), 1), total = event().total[1];
  const line = (at, text, classes) => {
    const row = make("tr", "", `${classes}${at === target ? " target" : ""}`), count = counts.get(at) ?? 0;
    row.append(make("td", count ? number(count) : ""), make("td", count ? percent(count, total) : ""));
    row.append(make("td", String(at), "number"), make("td", text, "code"));
    if (count) row.style.background = `rgba(var(--heat), ${(0.08 + 0.5 * count / most).toFixed(3)})`;
    return row;
  };
  const rows = source.parts.flatMap(([first, texts]) =>
    texts.map((text, index) => line(first + index, text, index ? "" : "gap")));
  const known = new Set(source.parts.flatMap(([first, texts]) => texts.map((_, index) => first + index)));
  for (const at of source.lines) if (!known.has(at)) rows.push(line(at, "(the source is not here)", ""));
  fill("source", rows);
}

// --- what is chosen ---

const SHOWS = {
  event: [showFlame, showTable, showSource], tasks: [showFlame, showTable], groups: [showAnew], shape: [showFlame],
  inverted: [showAnew], width: [showFlame], search: [search, () => flame.draw(), showMatched, showTable], file: [showSource],
};

function choose(name, value) {
  state[name] = value;
  const control = element(name);
  if (control.type === "checkbox") control.checked = value; else control.value = value;
  SHOWS[name].forEach(show => show());
  remember();
}

function remember() {
  showMatched();
  const words = new URLSearchParams();
  for (const name of Object.keys(DEFAULTS)) if (state[name] !== DEFAULTS[name]) words.set(name, state[name]);
  if (flame.zoomed?.parent) words.set("zoom", JSON.stringify(flame.zoomed.path));
  history.replaceState(null, "", `#${words}`);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(state)) {
    if (!words.has(name)) continue;
    const value = words.get(name);
    if (name === "inverted") state[name] = value === "true";
    else if (name === "event" || name === "file") state[name] = Math.max(0, Math.min(Number(value) || 0, (name === "event" ? data.events : data.sources).length - 1));
    else state[name] = value;
  }
  if (!(state.groups in GROUPS)) state.groups = DEFAULTS.groups;
  try { return JSON.parse(words.get("zoom") ?? "[]"); } catch { return []; }
}

function start() {
  const zoom = recall();
  for (const [label, value] of data.facts) {
    const pair = make("div");
    pair.append(make("dt", label), make("dd", value));
    element("facts").append(pair);
  }
  const options = (id, rows) => rows.forEach(([value, text]) => element(id).append(Object.assign(make("option", text), { value })));
  options("event", data.events.map((each, at) => [at, `${each.name} (${number(each.total[1])}${each.exact ? ", exact" : ""})`]));
  options("tasks", TASK_CHOICES);
  options("file", data.sources.map((source, at) => [at, source.path]));
  element("sources").hidden = !data.sources.length;
  element("width-label").hidden = element("legend").hidden = data.old === null;
  if (data.old !== null) element("old").textContent = data.old;
  for (const name of Object.keys(SHOWS)) {
    const control = element(name), isBox = control.type === "checkbox";
    if (isBox) control.checked = state[name]; else control.value = state[name];
    control.addEventListener(name === "search" ? "input" : "change", () => {
      const value = isBox ? control.checked : control.value;
      choose(name, name === "event" || name === "file" ? Number(value) : value);
    });
  }
  element("controls").addEventListener("submit", submitted => submitted.preventDefault());
  element("reset").addEventListener("click", () => flame.zoom(flame.root));
  element("more").addEventListener("click", () => { allRows = true; showTable(); });
  document.addEventListener("keydown", pressed => {
    if (pressed.ctrlKey || pressed.altKey || pressed.metaKey || /^(INPUT|SELECT)$/.test(pressed.target.tagName)) return;
    if (pressed.key === "/") { pressed.preventDefault(); element("search").focus(); }
    if (pressed.key === "s") showHome((flame.focus ?? flame.zoomed).func, true);
  });
  search();
  showFlame(zoom);
  showTable();
  showSource();
}

start();
