// Draws every chart of the page: a specification stands in a script element beside its place.
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function config() {
    const style = getComputedStyle(document.documentElement);
    const [ink, quiet, line] = ["--ink", "--quiet", "--line"].map((name) =>
      style.getPropertyValue(name).trim());
    const narrow = innerWidth < 640;
    const font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
    return {
      background: null,
      font: font,
      view: { stroke: null },
      axis: {
        domainColor: line, gridColor: line, tickColor: line, labelColor: quiet, titleColor: quiet,
        labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal",
        labelLimit: narrow ? 96 : 220, labelOverlap: true,
      },
      axisY: { domain: false, ticks: false },
      legend: {
        orient: "bottom", direction: "horizontal", columns: narrow ? 2 : 4,
        labelLimit: narrow ? 130 : 220, labelColor: ink, labelFontSize: 12, symbolType: "circle",
        symbolStrokeWidth: 2, symbolOpacity: 1, title: null,
      },
      line: { strokeJoin: "round", strokeCap: "round" },
      rule: { color: quiet },
    };
  }

  function draw(figure) {
    const place = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const options = {
      mode: "vega-lite", renderer: "svg", actions: false, config: config(),
      tooltip: { theme: dark.matches ? "dark" : "light" },
    };
    vegaEmbed(place, spec, options).then(
      () => { place.dataset.drawn = "yes"; },
      (error) => { place.dataset.drawn = "no"; place.textContent = "not drawn: " + error.message; },
    );
  }

  function drawAll() { document.querySelectorAll("figure").forEach(draw); }

  let width = innerWidth < 640;
  addEventListener("resize", () => {
    if ((innerWidth < 640) !== width) { width = innerWidth < 640; drawAll(); }
  });
  dark.addEventListener("change", drawAll);
  drawAll();
})();
