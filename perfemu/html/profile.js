// The document, decoded: the tree of call paths, and sums over parts of it.
"use strict";
const NEW = 0, OLD = 1;
const data = JSON.parse(document.getElementById("document").textContent);
const functions = data.functions.map(([name, file], number) =>
  ({ number, name: data.strings[name], file: data.strings[file], home: data.homes[number] }));
for (const [number, name] of data.was) functions[number].was = data.strings[name];
for (const each of functions) each.label = each.name || each.file;
const tasks = data.tasks.map(([comm, pid, tid]) => ({ comm: data.strings[comm], pid, tid }));
const nodeFunction = Int32Array.from(data.nodes.function);
const nodeCount = nodeFunction.length;
const nodeParent = new Int32Array(nodeCount), nodeEnd = new Int32Array(nodeCount);
// Whether no caller of the node is the same function: where sums of functions are taken, so that recursion counts once.
const nodeIsFirst = new Uint8Array(nodeCount);

(function decodeTree() {
  const path = [], times = new Int32Array(functions.length);
  const leave = (depth, at) => {
    while (path.length > depth) { const node = path.pop(); nodeEnd[node] = at; times[nodeFunction[node]]--; }
  };
  for (let node = 0; node < nodeCount; node++) {
    leave(data.nodes.depth[node], node);
    nodeParent[node] = path.length ? path[path.length - 1] : -1;
    nodeIsFirst[node] = times[nodeFunction[node]]++ === 0 ? 1 : 0;
    path.push(node);
  }
  leave(0, nodeCount);
})();

for (const event of data.events) {
  event.segments = [];
  let row = 0;
  for (const [task, length] of event.tasks) {
    for (let node = 0, last = row + length, first = row; row < last; row++) {
      node = event.nodes[row] += row === first ? 0 : node;
    }
    event.segments.push({ task, first: row - length, last: row });
  }
}

// What some threads weigh: rows by node, ascending, and sums of all rows before each.
class Weights {
  constructor(event, segments) {
    let rows = [];
    for (const { first, last } of segments) for (let row = first; row < last; row++) rows.push(row);
    if (segments.length > 1) rows.sort((a, b) => event.nodes[a] - event.nodes[b]);
    const count = rows.length;
    this.nodes = new Int32Array(count);
    this.values = [new Float64Array(count), new Float64Array(count)];
    this.before = [new Float64Array(count + 1), new Float64Array(count + 1)];
    for (let at = 0; at < count; at++) {
      this.nodes[at] = event.nodes[rows[at]];
      this.values[NEW][at] = event.new[rows[at]];
      this.values[OLD][at] = event.old.length ? event.old[rows[at]] : 0;
      for (const side of [NEW, OLD]) this.before[side][at + 1] = this.before[side][at] + this.values[side][at];
    }
  }
  // The first row from `low` on that is not before `node`.
  find(node, low = 0, high = this.nodes.length) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.nodes[middle] < node) low = middle + 1; else high = middle;
    }
    return low;
  }
  sums(low, high) { return [NEW, OLD].map(side => this.before[side][high] - this.before[side][low]); }
}

// A box of the picture. `children` are made when they are first asked for, which few boxes are.
class Box {
  constructor(parent, label, sums, key, func = null) {
    Object.assign(this, { parent, label, sums, key, func, made: null });
  }
  get children() { return this.made ??= this.makeChildren(); }
  get path() { return this.parent ? [...this.parent.path, this.key] : []; }
}

// Callers above callees: a node of the tree, and the rows below it.
class CallerBox extends Box {
  constructor(parent, weights, node, low, high) {
    const func = node < 0 ? null : functions[nodeFunction[node]];
    super(parent, func ? func.label : "all", weights.sums(low, high), func ? func.number : -1, func);
    Object.assign(this, { weights, node, low, high });
  }
  makeChildren() {
    const made = [], end = this.node < 0 ? nodeCount : nodeEnd[this.node];
    for (let node = this.node + 1, low = this.weights.find(node, this.low, this.high); node < end && low < this.high;) {
      if (this.weights.nodes[low] >= nodeEnd[node]) { node = nodeEnd[node]; continue; }
      const high = this.weights.find(nodeEnd[node], low, this.high);
      made.push(new CallerBox(this, this.weights, node, low, high));
      node = nodeEnd[node];
      low = high;
    }
    return made;
  }
  share(matching) {  // of the rows whose path matches
    const sums = [0, 0];
    for (let row = this.low; row < this.high; row++) {
      if (matching[this.weights.nodes[row]]) for (const side of [NEW, OLD]) sums[side] += this.weights.values[side][row];
    }
    return sums;
  }
}

// Callees above callers: some rows, and how far up each has been followed.
class CalleeBox extends Box {
  constructor(parent, weights, func, rows, cursors) {
    const sums = [0, 0];
    for (const row of rows) for (const side of [NEW, OLD]) sums[side] += weights.values[side][row];
    super(parent, func ? func.label : "all", sums, func ? func.number : -1, func);
    Object.assign(this, { weights, rows, cursors });
  }
  makeChildren() {
    const by = new Map();
    this.cursors.forEach((node, index) => {
      if (node < 0) return;
      let found = by.get(nodeFunction[node]);
      if (!found) by.set(nodeFunction[node], found = [[], []]);
      found[0].push(this.rows[index]);
      found[1].push(nodeParent[node]);
    });
    return [...by].sort((a, b) => a[0] - b[0])
      .map(([number, [rows, cursors]]) => new CalleeBox(this, this.weights, functions[number], rows, cursors));
  }
  share(matching) {
    const sums = [0, 0];
    for (const row of this.rows) {
      if (matching[this.weights.nodes[row]]) for (const side of [NEW, OLD]) sums[side] += this.weights.values[side][row];
    }
    return sums;
  }
}

// Above the roots of several commands or threads.
class GroupBox extends Box {
  constructor(groups) {
    super(null, "all", [NEW, OLD].map(side => groups.reduce((sum, box) => sum + box.sums[side], 0)), -1);
    groups.forEach(box => { box.parent = this; });
    this.made = groups;
  }
  share(matching) {
    const shares = this.made.map(box => box.share(matching));
    return [NEW, OLD].map(side => shares.reduce((sum, share) => sum + share[side], 0));
  }
}

const GROUPS = { none: null, comm: task => task.comm, task: task => `${task.comm} ${task.pid}/${task.tid}` };

function segmentsOf(event, chosen) {  // chosen: null, or whether a task is one of those
  return event.segments.filter(({ task }) => !chosen || chosen(tasks[task]));
}

function rootOf(event, chosen, grouping, inverted) {
  const segments = segmentsOf(event, chosen);
  const make = some => {
    const weights = new Weights(event, some), rows = weights.nodes.length;
    return inverted ? new CalleeBox(null, weights, null, Array.from({ length: rows }, (_, row) => row), [...weights.nodes])
      : new CallerBox(null, weights, -1, 0, rows);
  };
  const nameOf = GROUPS[grouping];
  if (!nameOf) return make(segments);
  const by = new Map();
  for (const segment of segments) {
    const name = nameOf(tasks[segment.task]);
    by.set(name, [...(by.get(name) ?? []), segment]);
  }
  return new GroupBox([...by].map(([name, some]) => Object.assign(make(some), { label: name, key: name })));
}

// By function: [new, old] of itself, and with all that it calls.
function sumsOfFunctions(event, chosen) {
  const weights = new Weights(event, segmentsOf(event, chosen));
  const own = [NEW, OLD].map(() => new Float64Array(functions.length));
  const all = [NEW, OLD].map(() => new Float64Array(functions.length));
  weights.nodes.forEach((node, row) => {
    for (const side of [NEW, OLD]) own[side][nodeFunction[node]] += weights.values[side][row];
  });
  for (let node = 0, low = 0; node < nodeCount; node++) {
    while (low < weights.nodes.length && weights.nodes[low] < node) low++;
    if (!nodeIsFirst[node]) continue;
    const sums = weights.sums(low, weights.find(nodeEnd[node], low));
    for (const side of [NEW, OLD]) all[side][nodeFunction[node]] += sums[side];
  }
  return { own, all, total: weights.sums(0, weights.nodes.length) };
}

function matchingNodes(matches) {  // by node: whether it, or a caller of it, is a function that matches
  const matching = new Uint8Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    const parent = nodeParent[node];
    matching[node] = matches[nodeFunction[node]] || (parent >= 0 && matching[parent]) ? 1 : 0;
  }
  return matching;
}
