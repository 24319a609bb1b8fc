parts.active = block => {
  const own = block.active, names = new Map(block.rows.map((row, place) => [row.name, own.rows[place]]));
  const most = Math.max(1, ...own.curves.flatMap(row => row.labels));
  const ticks = Array.from({length: 5}, (_, part) => Math.round(most * part / 4));
  const picture = ([key, title]) => {
    const all = own.curves.map(row => ({name: row.name, dashed: row.dashed, faint: isFaint(block, row.name), points: row.labels.map((labels, place) => ({x: labels, y: row[key][place], text: `${row.name}, ${labels} labels: ${number(row[key][place])} %`}))}));
    const series = byResult(shown(block)).reverse().map(row => all.find(one => one.name === row.name));
    return lineChart({title: own.titles[key], series, all, xTitle: "labels", ticks, most});
  };
  const rows = shown(block).map(row => ({name: row.name, cells: names.get(row.name)}));
  const caption = `${block.title}: what the selected labels bring, mean over seeds`;
  const sorted = own.columns[3];
  return section("What labels bring", table({key: "active", caption, columns: own.columns.map(title => ({title})), rows, sorted}), ...own.notes.map(quiet), pictures(...Object.entries(own.titles).map(picture)));
};
