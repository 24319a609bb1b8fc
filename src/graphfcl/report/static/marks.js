// The colour and the mark of a row, the same in every picture; report/figures.py gives them.
const styleOf = name => data.styles[name] || {slot: 0, mark: "circle"};
const colourClass = name => `colour-${styleOf(name).slot}`;
const polygonOf = (corners, radius, turn) => Array.from({length: corners}, (_, place) => {
  const angle = turn + 2 * Math.PI * place / corners;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});
const UP = -Math.PI / 2;
const plus = radius => [[-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1]].map(([x, y]) => [x * radius / 2.8, y * radius / 2.8]);
const turned = points => points.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);
const SHAPES = {
  square: radius => polygonOf(4, radius * 1.25, UP + Math.PI / 4),
  diamond: radius => polygonOf(4, radius * 1.35, UP),
  triangle: radius => polygonOf(3, radius * 1.35, UP),
  "triangle down": radius => polygonOf(3, radius * 1.35, -UP),
  plus,
  cross: radius => turned(plus(radius)),
  star: radius => polygonOf(10, 1, UP).map(([x, y], place) => [x, y].map(value => value * radius * (place % 2 ? 0.65 : 1.6))),
};
function markAt(name, x, y, radius = 3.4) {
  const mark = styleOf(name).mark, hollow = mark.endsWith(" hollow"), shape = mark.replace(" hollow", "");
  const kind = {class: hollow ? "shape hollow" : "shape"};
  if (!SHAPES[shape]) return element("circle", {...kind, cx: x, cy: y, r: radius});
  return element("polygon", {...kind, points: SHAPES[shape](radius).map(([dx, dy]) => `${(x + dx).toFixed(1)},${(y + dy).toFixed(1)}`).join(" ")});
}
function swatch(name) {
  const line = element("line", {class: "line", x1: 1, x2: 25, y1: 6, y2: 6});
  return element("svg", {class: `swatch ${colourClass(name)}`, viewBox: "0 0 26 12", "aria-hidden": "true"}, line, markAt(name, 13, 6));
}
// Of many rows the strongest have colours; once few are shown, all have.
const isFaint = (block, name) => shown(block).length > 12 && !data.bright[block.grid].includes(name);
