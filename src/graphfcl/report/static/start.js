// Tabs, the bar of choices, and drawing what was chosen.
const byId = id => document.getElementById(id);

function draw() {
  const tab = currentTab(), place = byId("results");
  byId("tip").style.display = "none";
  byId("panel").setAttribute("aria-labelledby", `tab-${tabs.indexOf(tab)}`);
  [...byId("tabs").children].forEach((button, number) => {
    button.setAttribute("aria-selected", String(tabs[number] === tab));
    button.tabIndex = tabs[number] === tab ? 0 : -1;
  });
  place.replaceChildren();
  tab.draw(place);
}
function fillBar() {
  const tab = currentTab(), block = choice.block;
  byId("bar").hidden = !block;
  byId("bar").style.display = block ? "" : "none";
  if (!block) return;
  const groups = new Map();
  tab.blocks.forEach((one, place) => {
    const title = `protocol ${one.protocol}, ${one.version}`;
    if (!groups.has(title)) groups.set(title, element("optgroup", {label: title}));
    groups.get(title).append(element("option", {value: place, ...(one === block ? {selected: ""} : {})}, one.title));
  });
  byId("block").replaceChildren(...(groups.size > 1 ? groups.values() : [...groups.values()].flatMap(group => [...group.children])));
  byId("metric").replaceChildren(...block.metrics.map(one => element("option", {value: one.name, ...(one.name === choice.metric ? {selected: ""} : {})}, one.title)));
  byId("every").checked = choice.every;
  const count = Math.max(...block.rows.map(row => row.sessions));
  byId("every-label").style.display = count > Math.min(MOST_SESSIONS, Math.floor((pictureWidth() - 44) / LEAST_CELL)) ? "" : "none";
  byId("methods").replaceChildren(...byResult(block.rows).map(row => {
    const box = element("input", {type: "checkbox", value: row.name});
    box.addEventListener("change", () => { box.checked ? choice.hidden.delete(row.name) : choice.hidden.add(row.name); paint(); changed(); });
    return element("label", {}, box, swatch(row.name), row.name);
  }));
  paint();
}
function paint() {
  const block = choice.block;
  byId("filter-title").textContent = `Methods: ${shown(block).length} of ${block.rows.length} shown`;
  for (const box of byId("methods").querySelectorAll("input")) {
    box.checked = !choice.hidden.has(box.value);
    const faint = isFaint(block, box.value) || !box.checked;
    box.nextSibling.setAttribute("class", `swatch ${faint ? "faint" : colourClass(box.value)}`);
  }
}
function changed({step = false, bar = false} = {}) {
  writeAddress(step);
  if (bar) fillBar();
  draw();
}
function choose(tab, block) {
  choice.tab = tab.id;
  choice.block = block;
  if (block && !block.metrics.some(one => one.name === choice.metric)) choice.metric = block.metrics[0].name;
  if (tab.draw === drawBlock && !tab.blocks.includes(block)) choice.block = firstBlock(tab);
  changed({step: true, bar: true});
}
function showTab(number) {
  const tab = tabs[number];
  // The same dataset as before, where this tab has it.
  const before = choice.block, first = firstBlock(tab);
  const same = before && tab.blocks.find(block => block.dataset === before.dataset && first && block.protocol === first.protocol);
  choose(tab, same || first);
}
function makeTabs() {
  for (const grid of data.grids) {
    const blocks = data.blocks.filter(block => block.grid === grid.name);
    if (blocks.length) addTab(grid.name, grid.title, drawBlock, blocks);
  }
  if (data.sweeps.length) addTab("sweep", "Sweep", drawSweeps);
  if (data.embeddings.length) addTab("embeddings", "Embeddings", drawEmbeddings);
  if (data.datasets) addTab("datasets", "Datasets", drawDatasets);
  addTab("repeat", data.failures.length ? `How to repeat it (${data.failures.length} failed)` : "How to repeat it", drawRepeat);
  byId("tabs").append(...tabs.map((tab, number) => {
    const button = element("button", {type: "button", role: "tab", id: `tab-${number}`, "aria-controls": "panel"}, tab.title);
    button.addEventListener("click", () => showTab(number));
    return button;
  }));
  byId("tabs").addEventListener("keydown", event => {
    const here = tabs.indexOf(currentTab()), last = tabs.length - 1;
    const to = {ArrowRight: here === last ? 0 : here + 1, ArrowLeft: here === 0 ? last : here - 1, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    showTab(to);
    byId("tabs").children[to].focus();
  });
}
function listen() {
  byId("block").addEventListener("change", event => choose(currentTab(), currentTab().blocks[Number(event.target.value)]));
  byId("metric").addEventListener("change", event => { choice.metric = event.target.value; changed(); });
  byId("every").addEventListener("change", event => { choice.every = event.target.checked; changed(); });
  byId("all").addEventListener("click", () => { choice.hidden.clear(); paint(); changed(); });
  byId("none").addEventListener("click", () => { choice.block.rows.forEach(row => choice.hidden.add(row.name)); paint(); changed(); });
  window.addEventListener("hashchange", () => { readAddress(); fillBar(); draw(); });
  for (const [name, begins] of [["beforeprint", true], ["afterprint", false]]) window.addEventListener(name, () => { printing = begins; draw(); });
  let width = pictureWidth();
  window.addEventListener("resize", () => {
    if (pictureWidth() === width) return;
    width = pictureWidth();
    draw();
  });
}
byId("about").textContent = data.about;
makeTabs();
readAddress();
byId("filter").open = window.innerWidth > 600 && choice.block !== null && choice.block.rows.length <= 14;
fillBar();
listen();
draw();
