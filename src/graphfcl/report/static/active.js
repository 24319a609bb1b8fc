parts.active = block => {
  const own = block.active;
  const most = Math.max(1, ...own.curves.flatMap(row => row.labels));
  const ticks = Array.from({length: 5}, (_, part) => Math.round(most * part / 4));
  const picture = ([key, title]) => {
    const all = own.curves.map(row => ({name: row.name, dashed: row.dashed, faint: isFaint(block, row.name), points: row.labels.map((labels, place) => ({x: labels, y: row[key][place], text: `${row.name}, ${labels} labels: ${number(row[key][place])} %`}))}));
    const series = byResult(shown(block)).reverse().map(row => all.find(one => one.name === row.name));
    return {title: own.titles[key], place: block.title, series, all, xTitle: "labels", ticks, most};
  };
  return section("What labels bring", table("active", own.table, {sorted: own.table.columns[3]}), chartRow(Object.entries(own.titles).map(picture)));
};
