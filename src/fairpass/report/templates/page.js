"use strict";
(() => {
  const percent = (value) => (value === null ? "–" : (100 * value).toFixed(1));
  const all = (root, selector) => [...root.querySelectorAll(selector)];

  function element(name, content, attributes = {}) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...[content].flat());
    return made;
  }

  // --- light and dark: as the system has it, until the reader says otherwise; paper is always light ---
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.getElementById("theme");
  let wanted = null;
  function applyTheme() {
    const dark = wanted === null ? system.matches : wanted;
    root.dataset.theme = dark ? "dark" : "light";
    toggle.textContent = dark ? "Light" : "Dark";
    toggle.setAttribute("aria-pressed", String(dark));
  }
  toggle.addEventListener("click", () => {
    wanted = root.dataset.theme !== "dark";
    applyTheme();
  });
  system.addEventListener("change", applyTheme);
  applyTheme();
  let closed = [];
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    closed = all(document, "details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    closed.forEach((details) => { details.open = false; });
    applyTheme();
  });

  // --- contents: folded on a narrow screen, and showing where the reader is ---
  const contents = document.querySelector(".toc details");
  if (matchMedia("(max-width: 62rem)").matches) contents.open = false;
  const links = new Map(all(contents, "a").map((link) => [link.getAttribute("href").slice(1), link]));
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      const link = links.get(one.target.getAttribute("aria-labelledby"));
      if (one.isIntersecting && link) {
        links.forEach((other) => other.removeAttribute("aria-current"));
        link.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  all(document, "section[aria-labelledby]").forEach((section) => watcher.observe(section));

  // --- the appendix is folded: a link into it opens it ---
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded) {
      folded.open = true;
      target.scrollIntoView();
    }
  }
  addEventListener("hashchange", unfold);
  unfold();

  // --- a table that is wider than its place says so ---
  const sizes = new ResizeObserver((changed) => {
    changed.forEach(({ target }) => {
      const box = target.closest(".scroll");
      box.classList.toggle("more", box.scrollWidth > box.clientWidth + 1);
    });
  });
  all(document, ".scroll, .scroll > table").forEach((each) => sizes.observe(each));

  // --- tables: a button in a heading sorts by its column; what has no value stays last ---
  function valueOf(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent.trim().toLowerCase();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  }
  function sortBy(table, header) {
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    all(table, "thead th").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, header.cellIndex), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return ascending ? order : -order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  all(document, "table.sortable").forEach((table) => {
    all(table, "thead th").forEach((header) => {
      header.querySelector("button").addEventListener("click", () => sortBy(table, header));
    });
  });

  // --- the threshold: all metrics from counts, exact at every position of the slider ---
  function metricsAt(counts, position) {
    // `position` thresholds lie below the cut: a node is selected if its score is above more of them.
    const groups = new Map();
    let tp = 0, fp = 0, positives = 0, negatives = 0;
    for (const { group, label, above, total } of counts.cells) {
      const selected = above[position];
      if (label) { tp += selected; positives += total; } else { fp += selected; negatives += total; }
      if (group === null) continue;
      const known = groups.get(group) || { selected: [0, 0], total: [0, 0] };
      known.selected[label] += selected;
      known.total[label] += total;
      groups.set(group, known);
    }
    const ratio = (part, whole) => (whole ? part / whole : null);
    const rates = [...groups].map(([group, { selected, total }]) => ({
      group,
      predicted: ratio(selected[0] + selected[1], total[0] + total[1]),
      tpr: ratio(selected[1], total[1]),
      fpr: ratio(selected[0], total[0]),
    }));
    const gap = (name) => {
      const values = rates.map((rate) => rate[name]);
      return values.length < 2 || values.includes(null) ? null : Math.max(...values) - Math.min(...values);
    };
    const n = positives + negatives;
    const recall = ratio(tp, positives), refused = ratio(negatives - fp, negatives);
    return {
      acc: ratio(tp + negatives - fp, n),
      balanced_acc: recall === null || refused === null ? null : (recall + refused) / 2,
      f1: positives + tp + fp ? (2 * tp) / (positives + tp + fp) : 0,
      delta_dp: gap("predicted"),
      delta_eo: gap("tpr"),
      rates,
    };
  }
  function summedUp(counts) {
    const cells = counts.cells.map((cell) => {
      const above = new Array(counts.thresholds.length).fill(0);
      let sum = 0;
      for (let k = cell.counts.length - 1; k >= 1; k--) {
        sum += cell.counts[k];
        above[k - 1] = sum;
      }
      return { group: cell.group, label: cell.label, above, total: sum + cell.counts[0] };
    });
    return { thresholds: counts.thresholds, own: counts.own, cells };
  }
  function svgElement(parent, name, attributes, text = "") {
    const made = document.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }
  const CURVES = { acc: ["s0", ""], delta_dp: ["s1", "6 3"], delta_eo: ["s2", "2 3"] };
  function drawCurves(svg, counts, table, symbols) {
    svg.replaceChildren();
    const x = (value) => 34 + 296 * value, y = (value) => 176 - 164 * value;
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      svgElement(svg, "line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) });
      svgElement(svg, "text", { x: 28, y: y(tick) + 4, "text-anchor": "end" }, String(100 * tick));
      svgElement(svg, "text", { x: x(tick), y: 190, "text-anchor": "middle" }, String(tick));
    }
    let left = 40;
    for (const [name, [colour, dash]] of Object.entries(CURVES)) {
      const points = table.map((row, i) => (row[name] === null ? "" : `${x(counts.thresholds[i]).toFixed(1)},${y(row[name]).toFixed(1)}`));
      svgElement(svg, "polyline", { class: `line ${colour}`, points: points.join(" "), "stroke-dasharray": dash });
      svgElement(svg, "line", { class: `line ${colour}`, x1: left, x2: left + 24, y1: 210, y2: 210, "stroke-dasharray": dash });
      svgElement(svg, "text", { class: "name", x: left + 30, y: 214 }, symbols[name]);
      left += 86;
    }
    return svgElement(svg, "line", { class: "mark", y1: y(0), y2: y(1) });
  }
  function threshold(box, data) {
    const [method, slider, at, own] = [".method", ".cut", ".at", ".own"].map((s) => box.querySelector(s));
    const tiles = box.querySelector(".live"), groups = box.querySelector(".live-groups tbody");
    const curve = box.querySelector(".curve");
    let counts, table, mark;
    function show() {
      const position = Number(slider.value), now = table[position], value = counts.thresholds[position];
      const shown = value.toFixed(value === counts.own && !Number.isInteger(1000 * value) ? 4 : 3);
      at.textContent = value === counts.own ? `${shown}, the model's own` : shown;
      slider.setAttribute("aria-valuetext", at.textContent);
      const names = ["acc", "balanced_acc", "f1", "delta_dp", "delta_eo"];
      tiles.replaceChildren(...names.map((name) => element("div", [
        element("dt", data.symbols[name]),
        element("dd", [percent(now[name]), element("small", " %")], { "data-metric": name, "data-value": now[name] ?? "" }),
      ])));
      groups.replaceChildren(...now.rates.map((rate) => element("tr", [
        element("th", rate.group, { scope: "row" }),
        ...[rate.predicted, rate.tpr, rate.fpr].map((each) => element("td", percent(each), { class: "n" })),
      ])));
      const x = 34 + 296 * value;
      mark.setAttribute("x1", x);
      mark.setAttribute("x2", x);
    }
    function choose() {
      counts = summedUp(data.thresholds[method.value]);
      table = counts.thresholds.map((_, position) => metricsAt(counts, position));
      slider.max = counts.thresholds.length - 1;
      mark = drawCurves(curve, counts, table, data.symbols);
      back();
    }
    function back() {
      slider.value = counts.thresholds.indexOf(counts.own);
      show();
    }
    method.addEventListener("change", choose);
    slider.addEventListener("input", show);
    own.addEventListener("click", back);
    box.hidden = false;
    choose();
  }

  // --- a node and its neighbours ---
  const SIDES = [0, 4, 3, 5, 6, 8]; // 0 is a circle
  function nodeShape(parent, number, x, y, r, attributes) {
    const sides = SIDES[number % SIDES.length];
    if (!sides) return svgElement(parent, "circle", { cx: x, cy: y, r, ...attributes });
    const turn = sides === 4 ? Math.PI / 4 : -Math.PI / 2, size = sides === 3 ? 1.35 * r : 1.18 * r;
    const corners = Array.from({ length: sides }, (_, i) => turn + (2 * Math.PI * i) / sides);
    const points = corners.map((angle) => `${(x + size * Math.cos(angle)).toFixed(1)},${(y + size * Math.sin(angle)).toFixed(1)}`);
    return svgElement(parent, "polygon", { points: points.join(" "), ...attributes });
  }
  function neighbours(box, data) {
    const { cases } = data.neighbourhoods;
    const [choice, method, svg, about, keys, means, body] = [".case", ".method", ".graph", ".about", ".keys", ".means", ".as-table tbody"].map((s) => box.querySelector(s));
    const labelOf = (index) => (index === null ? "unknown" : data.labels[index]);
    const groupOf = (node) => (node.group === null ? "unknown" : data.groups[node.group]);
    const isWrong = (node) => node.label !== null && node.predicted[method.value] !== node.label;
    const colour = (node) => (node.label === null ? "s-none" : `s${node.label % 8}`);
    const shapeOf = (node) => (node.group === null ? SIDES.length - 1 : node.group);

    cases.forEach(({ centre }, i) => {
      const outcome = centre.predicted[data.chosen] === centre.label ? "right" : "wrong";
      choice.append(element("option", `${centre.id}: ${groupOf(centre)}, ${labelOf(centre.label)}, predicted ${outcome}`, { value: i }));
    });
    for (const [i, label] of data.labels.entries()) keys.append(legend(`label ${label}`, 0, `s${i % 8}`));
    for (const [i, group] of data.groups.entries()) keys.append(legend(`group ${group}`, i, "s-none"));

    function legend(text, shape, style) {
      const made = element("span", text, { class: "key" });
      const picture = svgElement(svg, "svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" });
      nodeShape(picture, shape, 7, 7, 5, { class: `node ${style}` });
      made.prepend(picture);
      return made;
    }
    function describe(node, title) {
      const facts = [["group", groupOf(node)], ["true label", labelOf(node.label)], ["predicted", labelOf(node.predicted[method.value])]];
      if (node.similarity) facts.push(["similarity", node.similarity[method.value].toFixed(3)]);
      about.replaceChildren(element("h3", title), element("dl", facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)])));
    }
    function add(node, x, y, r, title, edge, isFirst) {
      const g = svgElement(svg, "g", { tabindex: isFirst ? 0 : -1, role: "img" });
      const spoken = `${title}, ${groupOf(node)}, ${labelOf(node.label)}`;
      g.setAttribute("aria-label", node.similarity ? `${spoken}, similarity ${node.similarity[method.value]}` : spoken);
      nodeShape(g, shapeOf(node), x, y, r, { class: `node ${colour(node)}${isWrong(node) ? " wrong" : ""}` });
      svgElement(g, "circle", { class: "halo", cx: x, cy: y, r: r + 5 });
      const show = () => {
        all(svg, ".edge.on").forEach((other) => other.classList.remove("on"));
        if (edge) edge.classList.add("on");
        describe(node, title);
      };
      g.addEventListener("focus", show);
      g.addEventListener("pointerenter", show);
    }
    function draw() {
      const { centre, degree, neighbours: shown } = cases[Number(choice.value)];
      svg.replaceChildren();
      // Groups side by side, and within them labels, so that the eye can compare.
      const ordered = [...shown].sort((a, b) => (a.group - b.group) || (a.label - b.label) || (b.similarity[data.chosen] - a.similarity[data.chosen]));
      const places = ordered.map((_, i) => {
        const angle = (2 * Math.PI * i) / ordered.length - Math.PI / 2;
        return [150 * Math.cos(angle), 150 * Math.sin(angle)];
      });
      const edges = ordered.map((node, i) => svgElement(svg, "line", {
        class: "edge", x1: 0, y1: 0, x2: places[i][0], y2: places[i][1],
        "stroke-width": (0.6 + 7 * node.similarity[method.value]).toFixed(2),
      }));
      add(centre, 0, 0, 13, `node ${centre.id}`, null, true);
      ordered.forEach((node, i) => add(node, ...places[i], 9, `neighbour ${node.id}`, edges[i], false));
      describe(centre, `node ${centre.id}`);
      const mean = (nodes) => (nodes.length ? (nodes.reduce((sum, node) => sum + node.similarity[method.value], 0) / nodes.length).toFixed(2) : "–");
      const [inside, across] = [true, false].map((same) => mean(ordered.filter((node) => (node.group === centre.group) === same)));
      const how = shown.length < degree ? `${shown.length} of ${degree} neighbours, evenly chosen from the most to the least similar. ` : "";
      means.textContent = `${how}Mean similarity to neighbours of its own group ${inside}, of other groups ${across}.`;
      body.replaceChildren(...ordered.map((node) => {
        const cells = [groupOf(node), labelOf(node.label), labelOf(node.predicted[method.value])].map((text) => element("td", text));
        const similarity = node.similarity[method.value];
        return element("tr", [element("th", node.id, { scope: "row" }), ...cells, element("td", similarity.toFixed(3), { class: "n", "data-value": similarity })]);
      }));
    }
    // One stop for Tab; from there the arrows go round.
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const nodes = all(svg, "g"), place = nodes.indexOf(document.activeElement);
      if (!step || place < 0) return;
      event.preventDefault();
      const next = nodes[(place + step + nodes.length) % nodes.length];
      nodes.forEach((node) => node.setAttribute("tabindex", node === next ? 0 : -1));
      next.focus();
    });
    choice.addEventListener("change", draw);
    method.addEventListener("change", draw);
    box.hidden = false;
    draw();
  }

  all(document, "article").forEach((article) => {
    const data = JSON.parse(article.querySelector("script.interactive").textContent);
    const slider = article.querySelector(".threshold"), picture = article.querySelector(".neighbours");
    if (slider) threshold(slider, data);
    if (picture) neighbours(picture, data);
  });
})();
