// Draws every chart of the page: a specification stands in a script element beside its place.
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Room for the longest label of any chart: so the axes of time stand one below the other.
  function margin(narrow) {
    let longest = 6;
    for (const figure of document.querySelectorAll("figure")) {
      const spec = specOf(figure);
      for (const y of [spec, ...(spec.layer || [])].map((one) => one.encoding && one.encoding.y)) {
        if (!y || y.type !== "nominal") continue;
        for (const name of y.sort || []) longest = Math.max(longest, String(name).length);
      }
    }
    return Math.min(narrow ? 96 : 220, 6.5 * longest + 10);
  }

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
      axisY: { domain: false, ticks: false, minExtent: margin(narrow), maxExtent: margin(narrow) },
      legend: {
        orient: "bottom", direction: "horizontal", columns: narrow ? 2 : 4,
        labelLimit: narrow ? 130 : 220, labelColor: ink, labelFontSize: 12, symbolType: "circle",
        symbolStrokeWidth: 2, symbolOpacity: 1, title: null,
      },
      line: { strokeJoin: "round", strokeCap: "round" },
      rule: { color: quiet },
    };
  }

  // The time that charts show: all of it, or from when to when, in milliseconds.
  let shown = null;

  function specOf(figure) { return JSON.parse(figure.querySelector("script").textContent); }

  function axesOf(spec) {
    return [spec, ...(spec.layer || [])].map((one) => one.encoding && one.encoding.x)
      .filter((one) => one && one.type === "temporal");
  }

  function extent() {
    let [first, last] = [Infinity, -Infinity];
    for (const figure of document.querySelectorAll("figure")) {
      const spec = specOf(figure);
      if (!axesOf(spec).length) continue;
      for (const row of spec.data.values) {
        for (const at of [row.from, row.to, row.at]) {
          if (typeof at !== "number") continue;
          first = Math.min(first, at);
          last = Math.max(last, at);
        }
      }
    }
    return first < last ? [first, last] : null;
  }

  function offerRange() {
    const form = document.getElementById("range");
    const all = extent();
    if (!all) return;
    form.hidden = false;
    const [from, to] = [form.elements.from, form.elements.to];
    const text = (at) => new Date(at).toISOString().slice(0, 19);
    const buttons = [...form.querySelectorAll("button")];
    function show(range, pressed) {
      shown = range;
      const [first, last] = range || all;
      [from.value, to.value] = [text(first), text(last)];
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === pressed)));
    }
    for (const button of buttons) {
      const reach = 1000 * Number(button.dataset.seconds);
      button.hidden = reach > 0 && reach >= all[1] - all[0];
      button.addEventListener("click", () => {
        show(reach ? [all[1] - reach, all[1]] : null, button);
        drawAll();
      });
    }
    for (const input of [from, to]) {
      input.addEventListener("change", () => {
        const range = [Date.parse(from.value + "Z"), Date.parse(to.value + "Z")];
        if (range[0] < range[1]) { show(range, null); drawAll(); }
      });
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    show(null, buttons[0]);
  }

  function tellAges() {
    for (const one of document.querySelectorAll(".age")) {
      const minutes = Math.floor((Date.now() - Number(one.dataset.at)) / 60000);
      const told = minutes < 120 ? `${minutes} min` : minutes < 2880
        ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
      one.textContent = minutes < 1 ? "" : `, ${told} before you look at it`;
    }
  }

  function offerSearch() {
    for (const place of document.querySelectorAll(".search")) {
      place.hidden = false;
      const folds = [...place.parentElement.querySelectorAll("details")];
      place.querySelector("input").addEventListener("input", (event) => {
        const wanted = event.target.value.trim().toLowerCase();
        let found = 0;
        for (const fold of folds) {
          fold.hidden = !fold.querySelector("summary").textContent.toLowerCase().includes(wanted);
          if (!fold.hidden) found += 1;
        }
        place.querySelector("span").textContent = found ? ""
          : "not on this page: kohort pipeline report --group NAME draws a page of any groups";
      });
    }
  }

  function draw(figure) {
    const place = figure.querySelector(".chart");
    const spec = specOf(figure);
    if (shown && axesOf(spec).length) {
      axesOf(spec).forEach((x) => { x.scale = { ...x.scale, domain: shown }; });
      [spec, ...(spec.layer || [])].forEach((one) => { if (one.mark) one.mark.clip = true; });
    }
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
  offerRange();
  offerSearch();
  tellAges();
  drawAll();
})();
