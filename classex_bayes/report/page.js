(() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const root = document.documentElement;
  const figures = read("figures");
  const numbers = read("numbers");
  const hidden = {};
  const PRINTED = { width: 640, height: 320 };
  let printing = false;
  let asked = null;

  // Names of custom properties stand for their values in the present scheme.
  const resolved = (value, style) => {
    if (typeof value === "string") {
      return value.startsWith("--") ? style.getPropertyValue(value).trim() : value;
    }
    if (Array.isArray(value)) return value.map((one) => resolved(one, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, resolved(one, style)])
    );
  };

  const axis = (own) => ({
    gridcolor: "--grid", linecolor: "--muted", tickcolor: "--muted", zeroline: false,
    automargin: true, ticks: "outside", ticklen: 4, spikethickness: 1, spikecolor: "--muted", ...own,
    title: { ...own.title, standoff: 12 },
  });

  const draw = (key) => {
    const place = document.getElementById(key);
    const { traces, layout } = figures[key];
    const style = getComputedStyle(root);
    const precise = matchMedia("(pointer: fine)").matches;
    const size = printing
      ? PRINTED
      : { width: place.clientWidth, height: place.clientHeight };
    const whole = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      margin: { l: 52, r: 26, t: 10, b: 48 }, hovermode: "x unified",
      dragmode: precise ? "zoom" : false, uirevision: key,
      font: { family: style.getPropertyValue("--sans"), size: 13, color: "--ink" },
      hoverlabel: { bgcolor: "--raised", bordercolor: "--rule", font: { color: "--ink" } },
      ...layout, ...size, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    };
    if (key === "accuracy" && asked && !printing) whole.shapes = [...layout.shapes, asked];
    const shown = traces.map((trace) => ({ ...trace, visible: !hidden[key]?.has(trace.meta) }));
    return Plotly.react(place, resolved(shown, style), resolved(whole, style), {
      displayModeBar: false, staticPlot: printing,
    });
  };
  const drawAll = () => Object.keys(figures).forEach(draw);

  document.querySelectorAll("button[data-series]").forEach((button) => {
    const { chart, series } = button.dataset;
    button.addEventListener("click", () => {
      const off = (hidden[chart] ??= new Set());
      if (!off.delete(series)) off.add(series);
      button.setAttribute("aria-pressed", String(!off.has(series)));
      draw(chart);
    });
  });

  document.querySelectorAll("button[data-copy]").forEach((button) => {
    const text = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected: copy it with your keyboard";
      }
      setTimeout(() => { button.textContent = label; }, 2500);
    });
  });

  // The slider asks the curve, and marks the place in its chart.
  const slider = document.getElementById("at");
  const answer = document.getElementById("answer");
  const written = (value) => numbers.metric.startsWith("accuracy")
    ? `${(100 * value).toFixed(1)}%`
    : value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const ask = () => {
    const { k, mean, lower, upper } = numbers.curve[slider.value];
    const level = +(100 * numbers.ci_prob).toFixed(6);
    answer.textContent = `${k.toLocaleString("en")} classes: ${written(mean)}, `
      + `${level}% interval ${written(lower)} to ${written(upper)}`;
    slider.setAttribute("aria-valuetext", answer.textContent);
    const line = { color: "--posterior", width: 1 };
    asked = { type: "line", xref: "x", yref: "paper", x0: k, x1: k, y0: 0, y1: 1, line };
    draw("accuracy");
  };
  slider.value = numbers.curve.findIndex(({ k }) => k === +slider.dataset.k);
  slider.addEventListener("input", ask);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  const print = (now) => () => {
    printing = now;
    root.classList.toggle("printing", now);
    drawAll();
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));

  drawAll();
  ask();
  const resized = new ResizeObserver((entries) => {
    if (!printing) entries.forEach(({ target }) => draw(target.id));
  });
  Object.keys(figures).forEach((key) => resized.observe(document.getElementById(key)));
  root.dataset.ready = "";
})();
