// What stands on each tab. `parts` are sections of blocks that only some reports have.
const parts = {};

function overview(block) {
  if (block.overview === undefined) return [];
  const own = data.overviews[block.overview], place = own.titles.indexOf(block.title) + 2;
  return [section("Overview: methods × datasets", table("overview", own.tables[choice.metric], {sorted: "mean over datasets", current: [place]}), quiet("The dataset below is underlined."))];
}
function resultTable(block) {
  const own = block.tables.results, count = Math.max(...block.rows.map(row => row.sessions)), {sessions, every} = someSessions(count, MOST_SESSIONS);
  const places = own.columns.map((_, place) => place).filter(place => !/^\d+$/.test(own.columns[place]) || sessions.includes(Number(own.columns[place])));
  const note = every === 1 ? [] : [quiet(capital(foldedNote(count, every).slice(2)))];
  return section("Balanced accuracy by session, %", table("results", own, {columns: places, sorted: "average"}), ...note);
}
function leadSections(block) {
  const order = byResult(shown(block)).map(row => row.name);
  return block.leads.map((lead, number) => {
    const names = order.filter(name => lead.names.includes(name)), columns = [0, ...names.map(name => lead.columns.indexOf(name))];
    const make = () => table(`leads-${number}`, lead, {columns, names});
    return section(capital(lead.title.slice(block.title.length + 2)), names.length > 6 ? folded(`${names.length} × ${names.length} differences`, make) : make());
  });
}
function mapSection(block) {
  const rows = byResult(shown(block)), first = rows.length > 5 ? rows.slice(0, 4) : rows, others = rows.slice(first.length);
  const more = others.length ? [folded(`${others.length} others`, () => pictures(...others.map(row => sessionMap(block, row))))] : [];
  return section("Accuracy on the classes of each session", pictures(...first.map(row => sessionMap(block, row))), ...more);
}
function costSection(block) {
  const chosen = () => table("chosen", block.tables.chosen, {text: [1]});
  return section("Time, memory, and what is kept", pictures(timeChart(block)), table("costs", block.tables.costs), folded("What validation chose", chosen));
}
function drawBlock(place) {
  const block = choice.block;
  if (block.shots !== undefined) place.append(...parts.shots(block));
  place.append(...overview(block));
  if (!shown(block).length) return place.append(quiet("No method is shown: choose some above."));
  const metric = block.metrics.find(one => one.name === choice.metric);
  if (block.active) place.append(parts.active(block));
  place.append(resultTable(block));
  const titles = {
    balanced_accuracy: "balanced accuracy (%) over all classes seen; bands are 95 % intervals over seeds",
    base: "balanced accuracy (%) over base and pseudo-novel classes",
    novel: "balanced accuracy (%) over novel classes",
  };
  place.append(section("Curves", chartRow(Object.entries(titles).map(([key, title]) => sessionChart(block, key, title)))));
  const charts = {[metric.name]: `${metric.title}, with 95 % intervals; dots are seeds`, pd: "PD: session 0 minus last session, points", rpd: "RPD: PD relative to session 0, %"};
  place.append(section("Results by method: accuracy, PD and RPD", pictures(...Object.entries(charts).map(([name, title]) => seedChart(block, name, title)))));
  place.append(...leadSections(block));
  if (block.further) place.append(parts.further(block));
  place.append(mapSection(block), costSection(block));
}
function drawSweeps(place) {
  const maps = data.sweeps.map(sweep => heat({
    values: sweep.values, rowNames: sweep.ways.map(String), columnNames: sweep.shots.map(String), name: sweep.method, down: "N-way", across: "K-shot",
    title: sweep.table.title,
    describe: (line, column, value) => `${sweep.method}, ${sweep.ways[line]}-way ${sweep.shots[column]}-shot: ${number(value)} %`,
  }));
  const tables = () => element("div", {}, ...data.sweeps.map((sweep, number) => table(`sweep-${number}`, sweep.table)));
  place.append(section("N-way × K-shot: average balanced accuracy, %", pictures(...maps), folded("The figures with their intervals", tables)));
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
  place.append(section("Datasets", table("datasets", data.datasets)));
}
function drawRepeat(place) {
  const grids = data.grids.map(grid => element("li", {}, `${grid.name}: ${grid.done} of ${grid.total} cells done, ${grid.failed} failed`));
  const failures = data.failures.map(text => element("li", {class: "mark"}, text));
  place.append(section("How to repeat it", element("pre", {tabindex: "0"}, data.grids.map(grid => grid.command).join("\n")), element("ul", {}, ...grids, ...failures), element("pre", {tabindex: "0"}, data.versions.join("\n"))));
  const details = data.settings.map(entry => element("details", {}, element("summary", {}, entry.name), element("pre", {}, JSON.stringify(entry.settings, null, 1))));
  place.append(section("Settings", ...details));
}
