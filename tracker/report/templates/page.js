(() => {
  "use strict";
  const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const LIGHT = [[0, "#f4f8fb"], [0.25, "#c6dbec"], [0.5, "#7fb0d5"], [0.75, "#3279b0"], [1, "#0b3c66"]];
  const DARK = [[0, "#14202b"], [0.25, "#1d4668"], [0.5, "#3279b0"], [0.75, "#7fb0d5"], [1, "#d7eafa"]];
  const screenDark = window.matchMedia("screen and (prefers-color-scheme: dark)");

  // Colours are those of the style sheet, so that charts follow light and dark.
  let INK, SOFT, ACCENT, DIM, LINE, GROUND, FONT, SCALE;
  const readColours = () => {
    const style = getComputedStyle(document.documentElement), of = name => style.getPropertyValue(name).trim();
    [INK, SOFT, ACCENT, DIM, LINE, GROUND] = ["--ink", "--soft", "--accent", "--dim", "--line", "--ground"].map(of);
    FONT = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: INK };
    SCALE = screenDark.matches ? DARK : LIGHT;
  };

  // The library renders some tags in its texts as markup: names are escaped.
  const plain = text => String(text).replace(/\s+/g, " ").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = text => {
    const most = window.innerWidth < 640 ? 15 : 34, signs = Array.from(String(text));
    return plain(signs.length <= most ? text : signs.slice(0, most - 8).join("") + "…" + signs.slice(-7).join(""));
  };
  const ticks = (labels, chosen) => ({
    tickmode: "array", type: "linear", automargin: true, zeroline: false, fixedrange: labels.length < 8,
    tickvals: chosen ? Object.keys(chosen).map(Number) : labels.map((_, i) => i),
    ticktext: chosen ? Object.values(chosen).map(short) : labels.map(short),
  });
  const frame = (height, more) => ({
    height, font: FONT, paper_bgcolor: GROUND, plot_bgcolor: GROUND, showlegend: false, hovermode: "closest",
    margin: { l: 20, r: 16, t: 8, b: 44 }, hoverlabel: { bgcolor: GROUND, bordercolor: SOFT, font: FONT, align: "left" }, ...more,
  });

  const intervals = chart => {
    const n = chart.labels.length, names = chart.labels.map(label => `<b>${plain(label)}</b>`);
    const part = dim => {
      const rows = chart.labels.map((_, i) => i).filter(i => chart.dim[i] === dim);
      const middle = i => chart.value[i] === null ? (chart.low[i] + chart.high[i]) / 2 : chart.value[i];
      return {
        type: "scatter", mode: "markers", hoverinfo: "text", y: rows, x: rows.map(middle),
        hovertext: rows.map(i => `${names[i]}<br>${plain(chart.hover[i])}`),
        marker: { size: 8, color: dim ? DIM : ACCENT, opacity: rows.map(i => chart.value[i] === null ? 0 : 1) },
        error_x: {
          type: "data", symmetric: false, thickness: 2, width: chart.whole ? 4 : 0, color: dim ? DIM : ACCENT,
          array: rows.map(i => chart.high[i] === null ? 0 : chart.high[i] - middle(i)),
          arrayminus: rows.map(i => chart.low[i] === null ? 0 : middle(i) - chart.low[i]),
        },
      };
    };
    const whole = chart.whole ? { dtick: Math.max(1, Math.ceil(n / 12)), tick0: 1 } : {};
    return [[part(false), part(true)], frame(19 * n + 70, {
      yaxis: { ...ticks(chart.labels), range: [n - 0.4, -0.6], gridcolor: LINE },
      xaxis: { title: { text: plain(chart.axis), standoff: 8 }, gridcolor: LINE, zeroline: false, automargin: true, ...whole },
    })];
  };

  const heatmap = chart => {
    const n = chart.rows.length, tall = chart.tilted ? 150 : 60;
    const hovertext = chart.hover.map((row, i) => row.map((text, j) =>
      `<b>${plain(chart.rows[i])}</b>${chart.ticks ? "" : `<br>${plain(chart.columns[j])}`}<br>${plain(text)}`));
    return [[{
      type: "heatmap", z: chart.values, x: chart.columns.map((_, j) => j), y: chart.rows.map((_, i) => i),
      hovertext, hoverinfo: "text", colorscale: SCALE, hoverongaps: true,
      xgap: chart.ticks ? 0 : 1, ygap: 1, showscale: window.innerWidth >= 640, colorbar: { thickness: 10, outlinewidth: 0, title: { text: plain(chart.unit), side: "top" } },
    }], frame(19 * n + tall + 20, {
      yaxis: { ...ticks(chart.rows), range: [n - 0.5, -0.5], showgrid: false },
      xaxis: { ...ticks(chart.columns, chart.ticks), showgrid: false, tickangle: chart.tilted ? -50 : 0 },
    })];
  };

  const library = async () => {
    const packed = document.getElementById("drawing-library").textContent;
    const bytes = Uint8Array.from(atob(packed), sign => sign.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
    return window.Plotly;
  };

  let Plotly = null;
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll("[data-chart]")];
  const explain = text => { for (const wait of document.querySelectorAll(".wait")) wait.textContent = text; };
  const isVisible = place => place.getClientRects().length > 0;

  // Charts of closed details have no size: each is drawn when it is first seen.
  const drawOne = async place => {
    const chart = charts[place.dataset.chart];
    readColours();
    const [traces, layout] = (chart.kind === "heatmap" ? heatmap : intervals)(chart);
    await Plotly.react(place, traces, layout, CONFIG);
    place.classList.add("drawn-now");
    document.documentElement.dataset.drawn = String(document.querySelectorAll(".drawn-now").length);
    await new Promise(resolve => setTimeout(resolve, 0)); // the page stays responsive between charts
  };
  let drawing = Promise.resolve();
  const drawVisible = again => {
    drawing = drawing.then(async () => {
      const waiting = places.filter(place => isVisible(place) && (again || !place.classList.contains("drawn-now")));
      if (!waiting.length) return;
      if (typeof DecompressionStream === "undefined") {
        explain("This browser is too old for the interactive chart: it cannot decompress the chart library. The tables of this page show the same numbers.");
        return;
      }
      Plotly = Plotly || await library();
      for (const place of waiting) await drawOne(place);
    }).catch(() => explain("The interactive chart could not be drawn. The tables of this page show the same numbers."));
  };

  const sortable = table => {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      if (head.classList.contains("unsorted")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = row => {
          const cell = row.cells[column], value = cell.dataset.value;
          return value === undefined ? cell.textContent.trim().toLowerCase() : value === "" ? null : Number(value);
        };
        const rows = [...body.rows].map((row, place) => [key(row), place, row]);
        rows.sort(([a, i], [b, j]) => {
          if (a === null || b === null) return (a === null) - (b === null) || i - j; // without a number: always last
          return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1) || i - j;
        });
        body.append(...rows.map(([, , row]) => row));
      });
    });
  };

  document.querySelectorAll("table.sortable").forEach(sortable);
  const all = () => [...document.querySelectorAll("details")];
  const button = document.getElementById("open-all");
  button.addEventListener("click", () => {
    const isOpening = all().some(part => !part.open);
    for (const part of all()) part.open = isOpening;
    button.textContent = isOpening ? "Close all details" : "Open all details";
  });
  const reveal = () => {
    let part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const target = part; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") { part.open = true; target.scrollIntoView(); }
    }
  };
  for (const part of all()) part.addEventListener("toggle", () => drawVisible(false));
  window.addEventListener("hashchange", reveal);
  screenDark.addEventListener("change", () => drawVisible(true));
  reveal();
  drawVisible(false);
})();
