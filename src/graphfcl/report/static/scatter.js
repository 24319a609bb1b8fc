// Average accuracy against training time: a dot for each seed, the row's mark at the means of both.
function timeChart(block) {
  const width = pictureWidth(), height = 310, left = 40, right = width - 12, top = 10, bottom = height - 36;
  const title = "average accuracy (%) over sessions against training time; one dot per seed, logarithmic time axis";
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${block.title}: ${title}`});
  const rows = byResult(shown(block)).reverse().map(row => {
    const seeds = Object.entries(valueOf(row, "average").seeds).map(([seed, y]) => ({seed, y, x: row.seconds[seed]}));
    const mean = key => seeds.reduce((sum, point) => sum + key(point), 0) / seeds.length;
    return {row, seeds, x: Math.exp(mean(point => Math.log(point.x))), y: mean(point => point.y), faint: isFaint(block, row.name)};
  }).sort((a, b) => b.faint - a.faint);
  // The scales are those of all rows, so that they stay when some are hidden.
  const times = block.rows.flatMap(row => Object.values(row.seconds).map(Math.log10));
  const first = Math.min(...times) - 0.1, last = Math.max(...times) + 0.1;
  const {low, high} = scaleOf(block.rows.map(row => ({points: Object.values(valueOf(row, "average").seeds).map(y => ({y}))})));
  const x = value => left + (right - left) * (Math.log10(value) - first) / (last - first);
  const y = value => top + (bottom - top) * (high - value) / (high - low);
  const ticks = [];
  for (let power = Math.floor(first); power <= last; power++) ticks.push(...[1, 3].map(factor => factor * 10 ** power));
  const inside = ticks.filter(value => x(value) >= left && x(value) <= right);
  axes(svg, {left, right, top, bottom, height, x, y, low, high}, "training time, s", inside, value => String(Number(value.toPrecision(1))));
  for (const one of rows) {
    const group = element("g", {class: one.faint ? "faint" : colourClass(one.row.name)});
    for (const point of one.seeds) group.append(element("circle", {class: "seed", cx: x(point.x), cy: y(point.y), r: 2}));
    group.append(markAt(one.row.name, x(one.x), y(one.y), 4.5), element("circle", {cx: x(one.x), cy: y(one.y), r: 9, fill: "transparent"}));
    svg.append(hint(group, `${one.row.name}: ${number(one.y)} % after ${number(one.x)} s (geometric mean)`));
  }
  // A name stands right of its mark, or left of it where there is no room.
  const named = rows.filter(one => !one.faint), fits = one => x(one.x) + 8 + textWidth(one.row.name, 11) <= right;
  const beside = one => fits(one) ? {x: x(one.x) + 8} : {x: x(one.x) - 8, "text-anchor": "end"};
  const places = spreadOut(named.map(one => y(one.y)), 12, top + 6, bottom - 2);
  named.forEach((one, place) => svg.append(element("g", {class: colourClass(one.row.name)}, element("text", {class: "name", ...beside(one), y: places[place] + 4}, one.row.name))));
  return figure(title, svg);
}
