// What the reader has chosen. The address holds it, so that a link shows the same and "back" goes back.
const choice = {tab: "", block: null, metric: "", every: false, hidden: new Set(), sorts: new Map()};

const tabs = [];
function addTab(id, title, draw, blocks = []) {
  while (tabs.some(tab => tab.id === id)) id += "_";
  tabs.push({id, title, draw, blocks});
}
const currentTab = () => tabs.find(tab => tab.id === choice.tab);

// Of several protocols any but the paper's.
function firstBlock(tab) {
  const rank = block => block.protocol === "paper" ? 0 : 1;
  return tab.blocks.reduce((best, block) => best === null || rank(block) > rank(best) ? block : best, null);
}
function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const tab = tabs.find(tab => tab.id === said.get("tab")) || tabs[0];
  choice.tab = tab.id;
  choice.block = tab.blocks.find(block => block.title === said.get("data")) || firstBlock(tab);
  const metrics = choice.block ? choice.block.metrics : [];
  choice.metric = (metrics.find(metric => metric.name === said.get("metric")) || metrics[0] || {name: ""}).name;
  choice.every = said.get("sessions") === "all";
  choice.hidden = new Set(said.getAll("hide"));
  choice.sorts = new Map();
  for (const [key, value] of said) {
    const found = /^(up|down) (.+)$/s.exec(value);
    if (key.startsWith("sort-") && found) choice.sorts.set(key.slice(5), {column: found[2], down: found[1] === "down"});
  }
}
function writeAddress(asStep) {
  const said = new URLSearchParams({tab: choice.tab});
  if (choice.block) {
    said.set("data", choice.block.title);
    if (choice.metric !== choice.block.metrics[0].name) said.set("metric", choice.metric);
    if (choice.every) said.set("sessions", "all");
    for (const name of choice.hidden) said.append("hide", name);
  }
  for (const [key, sort] of choice.sorts) said.set(`sort-${key}`, `${sort.down ? "down" : "up"} ${sort.column}`);
  const address = "#" + said;
  if (address !== location.hash) history[asStep ? "pushState" : "replaceState"](null, "", address);
}
const shown = block => block.rows.filter(row => !choice.hidden.has(row.name));
const valueOf = (row, name) => row.metrics[name] || null;
const metricsWhereLessIsBetter = new Set(data.blocks.flatMap(block => block.metrics.filter(metric => metric.low).map(metric => metric.name)));
// The rows of a block, the best first.
function byResult(rows, name = "average") {
  const sign = metricsWhereLessIsBetter.has(name) ? 1 : -1;
  const value = row => valueOf(row, name) ? sign * valueOf(row, name).mean : Infinity;
  return [...rows].sort((a, b) => value(a) - value(b) || 0);
}
