parts.further = block => {
  const curves = Object.entries(block.further).map(([key, title]) => sessionChart(block, key, title));
  return section("Further metrics", table("further", block.tables.further), chartRow(curves));
};
