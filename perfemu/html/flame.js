// The picture: boxes on a canvas, from the zoomed one on; what is narrower than half a pixel is left out. The canvas is as
// high as can be seen of the space that it stands in, and is drawn anew when that is scrolled.
const LEVEL = 18, LEAST_WIDTH = 0.5;

class Flame {
  constructor(canvas, onFocus, onZoom) {
    Object.assign(this, { canvas, space: canvas.parentElement, window: canvas.parentElement.parentElement, onFocus, onZoom, boxes: [], focus: null, zoomed: null, matches: null });
    this.options = { icicle: false, side: NEW, compared: false };
    canvas.addEventListener("mousemove", event => { this.hover(this.at(event)); });
    canvas.addEventListener("mouseleave", () => this.hover(null));
    canvas.addEventListener("click", event => { const box = this.at(event); if (box) this.zoom(box); });
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("focus", () => { this.setFocus(this.focus ?? this.zoomed); });
    new ResizeObserver(() => this.draw()).observe(this.window);
    this.window.addEventListener("scroll", () => this.draw(this.boxes));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
  show(root, options) {
    Object.assign(this, { root, zoomed: root, focus: null });
    Object.assign(this.options, options);
    this.most = null;
    this.draw();
    this.showBase();
  }
  showBase() { this.window.scrollTop = this.options.icicle ? 0 : this.levels * LEVEL; }
  zoom(box) {
    this.zoomed = box;
    this.draw();
    this.showBase();
    this.setFocus(box);
    this.onZoom(box);
  }
  hover(box) {
    if (box === this.hovered) return;
    this.hovered = box;
    this.onFocus(box ?? this.focus ?? this.zoomed);
    this.draw(this.boxes);
  }
  setFocus(box) {
    this.focus = box;
    this.onFocus(box);
    this.draw(this.boxes);
  }

  // Where boxes lie: callers of the zoomed one across the whole width, and what is below it.
  layout(width) {
    const side = this.options.side, placed = [];
    for (let box = this.zoomed.parent; box; box = box.parent) placed.unshift({ box, x: 0, width, faded: true });
    placed.forEach((place, depth) => { place.depth = depth; });
    const todo = [{ box: this.zoomed, x: 0, width, depth: placed.length }];
    const scale = this.zoomed.sums[side] ? width / this.zoomed.sums[side] : 0;
    while (todo.length) {
      const place = todo.pop();
      placed.push(place);
      let x = place.x;
      const below = [];
      for (const child of place.box.children) {
        const childWidth = child.sums[side] * scale;
        if (childWidth >= LEAST_WIDTH) below.push({ box: child, x, width: childWidth, depth: place.depth + 1 });
        x += childWidth;
      }
      todo.push(...below.reverse());
    }
    return placed;
  }
  draw(boxes = null) {  // `boxes`, if they lie where they did
    if (!this.root) return;
    const width = Math.max(this.space.clientWidth, 50), ratio = devicePixelRatio || 1;
    this.boxes = boxes ?? this.layout(width);
    this.most ??= this.boxes.reduce((most, { box }) => Math.max(most, Math.abs(box.sums[NEW] - box.sums[OLD])), 1);
    this.levels = 1 + this.boxes.reduce((most, { depth }) => Math.max(most, depth), 0);
    this.space.style.height = `${this.levels * LEVEL}px`;
    const height = Math.min(this.levels * LEVEL, this.window.clientHeight), above = this.window.scrollTop;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.translate(0, -above);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.paint = paints(this.options.compared, this.most);
    for (const place of this.boxes) {
      const y = this.top(place.depth);
      if (y + LEVEL > above && y < above + height) this.drawBox(context, place, y);
    }
  }
  drawBox(context, { box, x, width, faded }, y) {
    const matches = this.matches && box.func && this.matches[box.func.number];
    context.globalAlpha = faded ? 0.5 : 1;
    context.fillStyle = matches ? this.paint.match : this.paint.box(box);
    context.fillRect(x, y, Math.max(width - (width > 3 ? 0.7 : 0), LEAST_WIDTH), LEVEL - 1);
    context.globalAlpha = 1;
    if (box === this.focus || box === this.hovered) {
      context.strokeStyle = this.paint.outline;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2.7, 1), LEVEL - 3);
    }
    if (width < 24) return;
    context.fillStyle = matches ? this.paint.matchText : this.paint.text(box);
    context.fillText(this.fitting(context, box.label, width - 6), x + 3, y + LEVEL / 2);
  }
  fitting(context, text, width) {
    const whole = context.measureText(text).width;
    if (whole <= width) return text;
    const kept = Math.floor(text.length * width / whole) - 1;
    return kept > 1 ? `${text.slice(0, kept)}\u2026` : "";
  }
  top(depth) { return (this.options.icicle ? depth : this.levels - 1 - depth) * LEVEL; }
  at(event) {
    const { left, top } = this.space.getBoundingClientRect();
    const x = event.clientX - left, level = Math.floor((event.clientY - top) / LEVEL);
    const depth = this.options.icicle ? level : this.levels - 1 - level;
    return this.boxes.find(place => place.depth === depth && place.x <= x && x < place.x + place.width)?.box ?? null;
  }

  key(event) {
    const upward = this.options.icicle ? -1 : 1;
    const moves = {
      ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1),
      ArrowUp: () => this.vertical(upward), ArrowDown: () => this.vertical(-upward),
      Enter: () => this.zoom(this.focus), " ": () => this.zoom(this.focus),
      Escape: () => this.zoom(this.zoomed.parent ?? this.root), Home: () => this.zoom(this.root),
    };
    if (!moves[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.focus ??= this.zoomed;
    moves[event.key]();
  }
  vertical(step) {
    const next = step < 0 ? this.focus.parent : this.boxes.find(({ box }) => box.parent === this.focus)?.box;
    if (next) this.walkTo(next);
  }
  beside(step) {
    const depth = this.boxes.find(({ box }) => box === this.focus)?.depth;
    const level = this.boxes.filter(place => place.depth === depth).map(({ box }) => box);
    const next = level[level.indexOf(this.focus) + step];
    if (next) this.walkTo(next);
  }
  walkTo(box) {
    this.setFocus(box);
    const y = this.top(this.boxes.find(place => place.box === box)?.depth ?? 0), height = this.window.clientHeight;
    const { scrollTop } = this.window;
    if (y < scrollTop) this.window.scrollTop = y;
    if (y + LEVEL > scrollTop + height) this.window.scrollTop = y + LEVEL - height;
  }
}

// Colours: by file and name, warm; compared, red for what has grown and blue for what has shrunk, by at most `most`.
function paints(compared, most) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const plain = box => {
    if (!box.func) return dark ? "#4a4d55" : "#d5d5d5";
    const hue = 8 + hash(box.func.file) % 45, shade = hash(box.label) % 14;
    return dark ? `hsl(${hue} 45% ${27 + shade}%)` : `hsl(${hue} 85% ${66 + shade}%)`;
  };
  const difference = box => {
    const grown = box.sums[NEW] - box.sums[OLD];
    if (!grown) return dark ? "#3f434b" : "#e4e4e4";
    const strength = Math.min(1, Math.sqrt(Math.abs(grown) / most)), hue = grown > 0 ? 4 : 214;
    return dark ? `hsl(${hue} ${35 + 40 * strength}% ${25 + 17 * strength}%)`
      : `hsl(${hue} ${60 + 30 * strength}% ${90 - 25 * strength}%)`;
  };
  return {
    box: compared ? difference : plain, outline: dark ? "#fff" : "#000", text: () => dark ? "#f2f2f2" : "#111",
    match: dark ? "#f08cff" : "#b000d0", matchText: dark ? "#111" : "#fff",
  };
}

function hash(text) {
  let value = 7;
  for (let at = 0; at < text.length; at++) value = (value * 31 + text.charCodeAt(at)) >>> 0;
  return value;
}
