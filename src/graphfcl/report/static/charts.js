// Pictures of lines and bars, drawn in the pixels that they have, so that texts keep their size.
function figure(caption, picture, name) {
  const svg = picture.querySelector("svg") || picture, save = saveButton("SVG", () => saveFile(fileName(svg.getAttribute("aria-label"), "svg"), "image/svg+xml", svgText(svg)));
  return element("figure", {}, picture, element("figcaption", {}, ...(name === undefined ? [] : [swatch(name)]), caption, " ", save));
}
// Places nearest to the wanted ones, in their order, at least `gap` apart and inside [low, high] if all fit:
// those that are too close become a heap around their mean.
function spreadOut(wanted, gap, low, high) {
  const order = wanted.map((_, place) => place).sort((a, b) => wanted[a] - wanted[b]), heaps = [], places = [];
  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
  order.forEach((place, rank) => {
    heaps.push([wanted[place] - rank * gap]);
    while (heaps.length > 1 && mean(heaps[heaps.length - 2]) > mean(heaps[heaps.length - 1])) heaps.splice(-2, 2, heaps.slice(-2).flat());
  });
  const bare = heaps.flatMap(heap => heap.map(() => mean(heap))), limit = Math.max(low, high - gap * (order.length - 1));
  order.forEach((place, rank) => { places[place] = Math.min(Math.max(bare[rank], low), limit) + rank * gap; });
  return places;
}
function scaleOf(series) {
  const values = series.flatMap(one => one.points.flatMap(point => [point.y, point.low, point.high])).filter(value => value !== null && value !== undefined);
  const high = Math.min(100, Math.ceil(Math.max(10, ...values) / 10) * 10);
  return {high, low: Math.min(high - 10, Math.max(0, Math.floor(Math.min(90, ...values) / 10) * 10))};
}
function axes(svg, frame, xTitle, ticks, tickText) {
  const {left, right, bottom, height, x, y, low, high} = frame;
  const step = (high - low) / 10 * 14 > bottom - frame.top ? 20 : 10;
  for (let value = low; value <= high; value += step) {
    svg.append(element("line", {class: "axis", x1: left, x2: right, y1: y(value), y2: y(value)}));
    svg.append(element("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, String(value)));
  }
  for (const value of ticks) svg.append(element("text", {x: x(value), y: bottom + 16, "text-anchor": "middle"}, tickText(value)));
  svg.append(element("text", {x: (left + right) / 2, y: height - 2, "text-anchor": "middle"}, xTitle));
}
/* place: dataset and protocol, for a saved picture. series: {name, points: [{x, y, low, high, text}], faint, dashed}; what covers others comes last.
   all: also those that are hidden, so that the scale stays; ticks: numbers below the picture; tickText: their texts. */
function lineChart({title, place, series, xTitle, ticks, most, scale, tickText = String}) {
  const width = pictureWidth(), height = 310, named = series.filter(one => !one.faint && one.points.length);
  const longest = Math.max(0, ...named.map(one => textWidth(one.name, 11)));
  const room = Math.min(longest + 22, Math.max(70, width * 0.34)), {low, high} = scale;
  const left = 34, right = width - 8 - room, top = 10, bottom = height - 36;
  const x = value => left + 4 + (right - left - 8) * value / (most || 1);
  const y = value => top + (bottom - top) * (high - Math.max(low, Math.min(high, value))) / (high - low);
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${place}: ${title}`});
  const fits = ticks.filter((_, place) => place % Math.ceil(ticks.length * 22 / (right - left)) === 0);
  axes(svg, {left, right, top, bottom, height, x, y, low, high}, xTitle, fits, tickText);
  series.forEach((one, turn) => svg.append(lineOf(one, x, y, turn)));
  const ends = named.map(one => one.points[one.points.length - 1]);
  const places = spreadOut(ends.map(end => y(end.y)), 13, top + 4, bottom);
  named.forEach((one, place) => {
    const group = element("g", {class: colourClass(one.name)}), at = places[place], from = x(ends[place].x);
    group.append(element("path", {class: "leader", d: `M${from + 5},${y(ends[place].y)}L${right + 4},${at}L${right + 8},${at}`}));
    group.append(hint(element("text", {class: "name", x: right + 11, y: at + 4}, shortened(one.name, 11, room - 12)), one.name));
    svg.append(group);
  });
  return figure(title, svg);
}
function lineOf(one, x, y, turn) {
  const group = element("g", {class: one.faint ? "faint" : colourClass(one.name)});
  const band = one.points.filter(point => point.low !== null && point.low !== undefined);
  if (band.length > 1 && !one.faint) {
    const outline = [...band.map(point => `${x(point.x)},${y(point.high)}`), ...band.reverse().map(point => `${x(point.x)},${y(point.low)}`)];
    group.append(element("polygon", {class: "band", points: outline.join(" ")}));
  }
  const path = one.points.map((point, place) => `${place ? "L" : "M"}${x(point.x)},${y(point.y)}`).join("");
  group.append(element("path", {class: one.faint ? "line faint" : "line", d: path, ...(one.dashed ? {"stroke-dasharray": "6 4"} : {})}));
  // Of many points some have a mark, each line at places of its own.
  const every = Math.ceil(one.points.length / 14), last = one.points.length - 1;
  one.points.forEach((point, place) => {
    if (!one.faint && (place === last || place % every === turn % every)) group.append(markAt(one.name, x(point.x), y(point.y)));
    group.append(hint(element("circle", {cx: x(point.x), cy: y(point.y), r: 7, fill: "transparent"}), point.text));
  });
  return group;
}
function sessionSeries(block, row, key) {
  const curve = row.curves[key], points = curve.mean.map((value, session) => {
    const low = curve.low[session], high = curve.high[session];
    const text = `${row.name}, session ${session}: ${number(value)} %` + (low === null ? "" : ` (${number(low)} to ${number(high)})`);
    return {x: session, y: value, low, high, text};
  });
  const dashed = row.marks.includes("uses pool labels");
  return {name: row.name, points: points.filter(point => point.y !== null), faint: isFaint(block, row.name), dashed};
}
function sessionChart(block, key, title) {
  const all = block.rows.map(row => sessionSeries(block, row, key));
  // The weakest first, so that the best lie above; grey ones below all.
  const order = byResult(shown(block)).reverse().map(row => all.find(one => one.name === row.name));
  const series = [...order.filter(one => one.faint), ...order.filter(one => !one.faint)];
  const most = Math.max(1, ...block.rows.map(row => row.sessions - 1));
  const ticks = Array.from({length: most + 1}, (_, session) => session);
  return {title, place: block.title, series, all, xTitle: "session", ticks, most};
}
/* Charts side by side with one scale. charts: what lineChart takes, but for the scale. */
function chartRow(charts) {
  const scale = scaleOf(charts.flatMap(chart => chart.all));
  return pictures(...charts.map(chart => lineChart({...chart, scale})));
}
// One line a row: a dot for each seed, the mean as the row's mark, a bar for its interval.
function seedChart(block, name, title) {
  const rows = byResult(shown(block), name).filter(row => valueOf(row, name));
  const width = pictureWidth(), step = 24, top = 6, bottom = top + step * rows.length + 4, height = bottom + 18, values = 52;
  const left = Math.min(Math.max(60, ...rows.map(row => textWidth(row.name, 11))) + 14, width * 0.42), right = width - values;
  const every = rows.flatMap(row => {
    const {mean, interval, seeds} = valueOf(row, name);
    return [mean - (interval || 0), mean + (interval || 0), ...Object.values(seeds)];
  });
  const least = Math.min(...every), most = Math.max(...every, least + 1), tick = tickStep((most - least) / Math.max(2, Math.floor((right - left) / 60)));
  const low = Math.floor(least / tick) * tick, high = Math.ceil(most / tick) * tick;
  const x = value => left + (right - left) * (value - low) / (high - low);
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${block.title}: ${title}`});
  for (let value = low; value < high + tick / 2; value += tick) {
    svg.append(element("line", {class: "axis", x1: x(value), x2: x(value), y1: top, y2: bottom}));
    svg.append(element("text", {x: x(value), y: height - 3, "text-anchor": "middle"}, String(Number(value.toFixed(6)))));
  }
  rows.forEach((row, place) => {
    const y = top + step * (place + 0.5), {mean, interval, seeds} = valueOf(row, name), group = element("g", {class: colourClass(row.name)});
    group.append(element("text", {class: "name", x: left - 8, y: y + 4, "text-anchor": "end"}, shortened(row.name, 11, left - 10)));
    group.append(element("rect", {fill: "transparent", x: left, y: y - step / 2, width: right - left, height: step}));
    if (interval !== null) group.append(element("rect", {class: "interval", x: x(mean - interval), y: y - 5, width: Math.max(1, x(mean + interval) - x(mean - interval)), height: 10, rx: 3}));
    for (const value of Object.values(seeds)) group.append(element("circle", {class: "seed", cx: x(value), cy: y, r: 2}));
    group.append(markAt(row.name, x(mean), y));
    group.append(element("text", {class: "value", x: right + 6, y: y + 4}, number(mean)));
    svg.append(hint(group, `${row.name}: ${spread({mean, interval})}; seeds ${Object.values(seeds).map(number).join(", ")}`));
  });
  return figure(title, svg);
}
// A round number that is not below the wanted one: 1, 2 or 5 times a power of ten.
function tickStep(wanted) {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * [1, 2, 5, 10].find(factor => factor * power >= wanted * 0.999);
}
