parts.further = block => {
  const names = Object.keys(block.further);
  const rows = byResult(shown(block)).map(row => ({name: row.name, cells: [row.name, ...names.map(name => spread(row.further[name]))]}));
  const columns = [{title: "method"}, ...names.map(name => ({title: block.further[name], low: lessIsBetter(name)}))];
  const curves = Object.entries(block.curves).map(([name, title]) => sessionChart(block, row => row.curves[name], title));
  return section("Further metrics", table({key: "further", caption: `${block.title}: metrics besides those of the first table, mean over seeds`, columns, rows}), pictures(...curves));
};
