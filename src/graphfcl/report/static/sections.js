// What stands on each tab. `parts` are sections of blocks that only some reports have.
const parts = {};
const marked = row => row.name + row.marks.map(mark => data.marks[mark]).join("");

// Blocks that may stand side by side: those of the same grid and protocol, and of the same K where a part of its own compares K.
const alike = block => data.blocks.filter(other => ["grid", "protocol", ...(block.shots === undefined ? [] : ["kind"])].every(key => other[key] === block[key]));
function columnTitle(block, blocks) {
  const same = blocks.filter(other => other.dataset === block.dataset);
  const parts = [["kind", block.kind], ["track", block.track], ["standardised", block.standardised ? "standardised" : "not standardised"]];
  const apart = parts.filter(([key]) => same.some(other => other[key] !== block[key])).map(([, text]) => text);
  return [block.dataset, ...apart].join(", ");
}
function overview(block) {
  const blocks = alike(block);
  if (blocks.length < 2) return [];
  const metric = block.metrics.find(one => one.name === choice.metric), low = lessIsBetter(metric.name);
  const names = [...new Set(blocks.flatMap(one => shown(one).map(row => row.name)))];
  const rowIn = (one, name) => one.rows.find(row => row.name === name);
  const ranked = blocks.every(one => one.rows.some(row => row.rank !== null)) && names.every(name => new Set(blocks.map(one => (rowIn(one, name) || {rank: null}).rank)).size === 1);
  const lines = names.map(name => {
    const rows = blocks.map(one => rowIn(one, name)), values = rows.map(row => row ? valueOf(row, metric.name) : null);
    const whole = values.every(value => value !== null), mean = values.reduce((sum, value) => sum + (value ? value.mean : 0), 0) / values.length;
    const rank = rows[0] && rows[0].rank !== null && ranked ? [number(rows[0].rank)] : ranked ? [""] : [];
    return {name, cells: [marked(rows.find(Boolean)), whole ? number(mean) : "", ...values.map((value, place) => ({text: spread(value), value: value ? value.mean : null, best: blocks[place].winner === name})), ...rank]};
  });
  const columns = [{title: "method"}, {title: "mean over datasets", low}, ...blocks.map(one => ({title: columnTitle(one, blocks), low, current: one === block})), ...(ranked ? [{title: "average rank", low: true}] : [])];
  const caption = `${capital(metric.title)}, each method on each dataset${block.shots === undefined ? "" : `, ${block.kind}`}; protocol ${block.protocol}, ${block.version}. The dataset below is underlined.`;
  return [section("Overview: methods × datasets", table({key: "overview", caption, columns, rows: lines, sorted: "mean over datasets"}))];
}
function resultTable(block) {
  const count = Math.max(...block.rows.map(row => row.sessions.length)), {sessions, every} = someSessions(count, MOST_SESSIONS);
  const ranked = block.rows.some(row => row.rank !== null), others = block.rows.length > 1;
  const columns = [{title: "method"}, {title: "seeds"}, {title: "average"}, ...sessions.map(session => ({title: String(session)})), {title: "PD", low: true}, {title: "RPD", low: true}];
  if (others) columns.push({title: `improvement by ${block.reference} (PD/RPD)`}, {title: `${block.reference} ahead on average`}, {title: "p, Holm", low: true});
  if (ranked) columns.push({title: "average rank", low: true});
  const rows = shown(block).map(row => ({kind: row.name === block.winner ? "best" : "", name: row.name, cells: [
    marked(row), String(row.seeds.length), spread(row.average), ...sessions.map(session => session === count - 1 ? spread(row.last) : number(row.balanced_accuracy.mean[session])),
    spread(row.pd), spread(row.rpd), ...(others ? [row.improvement, row.difference, row.p] : []), ...(ranked ? [row.rank === null ? "" : number(row.rank)] : [])]}));
  const below = block.printed.map(one => ({kind: "printed", name: one.name, cells: [`${one.name}, printed`, "", number(one.average), ...sessions.map(session => number(one.accuracy[session])), number(one.pd), number(one.rpd), ...Array(columns.length - sessions.length - 5).fill("")]}));
  const caption = `${block.title}: after each session, mean over seeds${foldedNote(count, every)}`;
  return section("Balanced accuracy by session, %", table({key: "results", caption, columns, rows, below, sorted: "average"}), ...block.notes.map(quiet));
}
function leadSections(block) {
  const order = byResult(shown(block)).map(row => row.name);
  return block.leads.map((lead, number) => {
    const names = order.filter(name => lead.columns.slice(1).includes(name)), place = name => lead.columns.indexOf(name);
    const line = name => lead.rows.find(row => row[0] === name);
    const make = () => table({key: `leads-${number}`, caption: `${block.title}: ${lead.title}; ${data.about_leads}`, columns: ["method", ...names].map(title => ({title})), rows: names.map(name => ({name, cells: [name, ...names.map(other => line(name)[place(other)])]}))});
    return section(capital(lead.title), names.length > 6 ? folded(`${names.length} × ${names.length} differences`, make) : make());
  });
}
function mapSection(block) {
  const rows = byResult(shown(block)), first = rows.length > 5 ? rows.slice(0, 4) : rows, others = rows.slice(first.length);
  const more = others.length ? [folded(`${others.length} others`, () => pictures(...others.map(sessionMap)))] : [];
  return section("Session by session", pictures(...first.map(sessionMap)), ...more);
}
function costSection(block) {
  const kinds = ["nodes", "features", "embeddings", "weights"], rows = byResult(shown(block));
  const gpu = block.rows.some(row => row.gpu_memory !== null);
  const memory = row => [row.memory.toFixed(0), ...(gpu ? [row.gpu_memory === null ? "" : row.gpu_memory.toFixed(0)] : [])];
  const columns = ["method", "seconds", "peak memory, MB", ...(gpu ? ["peak GPU memory, MB"] : []), ...kinds.map(kind => `${kind}, bytes`)];
  const lines = rows.map(row => ({name: row.name, cells: [row.name, row.seconds.toFixed(1), ...memory(row), ...kinds.map(kind => (row.stored[kind] || 0).toLocaleString("en"))]}));
  const caption = `${block.title}: means over seeds; bytes are what is kept between sessions, the most over seeds`;
  const chosen = () => table({key: "chosen", caption: `${block.title}: what validation sessions chose, for each seed in turn`, columns: ["method", "chosen"].map(title => ({title})), rows: rows.map(row => ({name: row.name, text: 1, cells: [row.name, row.chosen]}))});
  return section("Time, memory, and what is kept", table({key: "costs", caption, columns: columns.map((title, place) => ({title, low: place > 0})), rows: lines}), folded("What validation chose", chosen));
}
function drawBlock(place) {
  const block = choice.block;
  if (block.shots !== undefined) place.append(...parts.shots(block));
  place.append(...overview(block));
  if (!shown(block).length) return place.append(quiet("No method is shown: choose some above."));
  const metric = block.metrics.find(one => one.name === choice.metric);
  if (block.active) place.append(parts.active(block));
  place.append(resultTable(block));
  place.append(section("Curves", pictures(
    sessionChart(block, row => row.balanced_accuracy, "balanced accuracy (%) over all classes seen; bands are 95 % intervals over seeds"),
    sessionChart(block, row => row.base, "balanced accuracy (%) over base and pseudo-novel classes"),
    sessionChart(block, row => row.novel, "balanced accuracy (%) over novel classes"))));
  const bars = {[metric.name]: `${metric.title}, with 95 % intervals`, pd: "PD: session 0 minus last session, points", rpd: "RPD: PD relative to session 0, %"};
  place.append(section("By method, and what is lost", pictures(...Object.entries(bars).map(([name, title]) => barChart(block, name, title)))));
  place.append(...leadSections(block));
  if (block.further) place.append(parts.further(block));
  place.append(mapSection(block), costSection(block));
}
function drawSweeps(place) {
  const maps = data.sweeps.map(sweep => heat({
    values: sweep.values, rowNames: sweep.ways.map(String), columnNames: sweep.shots.map(String), name: sweep.method, down: "N-way", across: "K-shot",
    title: `${sweep.dataset}: ${sweep.method}, average balanced accuracy (%), ${sweep.version}`,
    describe: (line, column, value) => `${sweep.method}, ${sweep.ways[line]}-way ${sweep.shots[column]}-shot: ${number(value)} %`,
  }));
  place.append(section("N-way × K-shot: average balanced accuracy, %", pictures(...maps)));
}
const hueOf = label => (label * 137.5) % 360;
function embeddingPicture(group, method) {
  const size = pictureWidth(), svg = element("svg", {viewBox: `0 0 ${size} ${size}`, width: size, height: size, role: "img", "aria-label": `${group.title}: ${method.name}`});
  const reach = values => [Math.min(...values), Math.max(...values)];
  const [x0, x1] = reach(method.x), [y0, y1] = reach(method.y);
  method.x.forEach((value, place) => {
    const label = method.labels[place], novel = group.novel[label];
    const dot = element("circle", {cx: 8 + (size - 16) * (value - x0) / (x1 - x0 || 1), cy: 8 + (size - 16) * (y1 - method.y[place]) / (y1 - y0 || 1), r: novel ? 4.2 : 2.6, fill: `hsl(${hueOf(label)} 65% 52%)`, opacity: novel ? 0.95 : 0.6, stroke: novel ? "var(--ink)" : "none", "stroke-width": 0.8});
    svg.append(hint(dot, group.classes[label] + (novel ? " (novel)" : "")));
  });
  for (const label of new Set(method.labels)) svg.append(classNumber(method, label, size, [x0, x1], [y0, y1]));
  return figure(method.name, svg, method.name);
}
/* The number of a class at the middle of its nodes, as the list below the pictures has it: colours alone do not do. */
function classNumber(method, label, size, [x0, x1], [y0, y1]) {
  const middle = values => {
    const own = values.filter((_, place) => method.labels[place] === label).sort((a, b) => a - b);
    return own[Math.floor(own.length / 2)];
  };
  const at = {x: 8 + (size - 16) * (middle(method.x) - x0) / (x1 - x0 || 1), y: 12 + (size - 16) * (y1 - middle(method.y)) / (y1 - y0 || 1)};
  return element("text", {...at, class: "classNumber", "text-anchor": "middle", "aria-hidden": "true"}, String(label + 1));
}
function classLegend(group) {
  const seen = [...new Set(group.methods.flatMap(method => method.labels))].sort((a, b) => a - b);
  const entry = label => element("li", {value: label + 1}, element("span", {class: "classColour", style: `background: hsl(${hueOf(label)} 65% 52%)`, "aria-hidden": "true"}), `${group.classes[label]}${group.novel[label] ? " (novel)" : ""}`);
  return element("ol", {class: "classLegend", "aria-label": "classes by their number in the pictures"}, ...seen.map(entry));
}
function drawEmbeddings(place) {
  const about = "t-SNE of the same test nodes; a class has the same colour and number in each picture, novel classes have an outline.";
  for (const group of data.embeddings) place.append(section(`Embedding: ${group.title}`, quiet(about), pictures(...group.methods.map(method => embeddingPicture(group, method))), classLegend(group)));
}
function drawDatasets(place) {
  const rows = data.datasets.rows.map(row => ({cells: row.map(value => typeof value === "number" ? {text: value.toLocaleString("en"), value} : value)}));
  place.append(section("Datasets", table({key: "datasets", caption: "Table 1: the datasets, their classes and the protocol they are used under", columns: data.datasets.columns.map(title => ({title})), rows})));
}
function drawRepeat(place) {
  const grids = data.grids.map(grid => element("li", {}, `${grid.name}: ${grid.done} of ${grid.total} cells done, ${grid.failed} failed`));
  const failures = data.failures.map(text => element("li", {class: "mark"}, text));
  place.append(section("How to repeat it", element("pre", {tabindex: "0"}, data.grids.map(grid => grid.command).join("\n")), element("ul", {}, ...grids, ...failures), element("pre", {tabindex: "0"}, data.versions.join("\n"))));
  const details = data.settings.map(entry => element("details", {}, element("summary", {}, entry.name), element("pre", {}, JSON.stringify(entry.settings, null, 1))));
  place.append(section("Settings", ...details));
}
