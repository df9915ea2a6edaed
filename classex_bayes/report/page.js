(() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const readings = read("readings");
  const numbers = read("numbers");
  const answers = read("answers");
  const hidden = Object.fromEntries(Object.keys(readings).map((chart) => [chart, new Set()]));
  const SAME_PLACE = 1.5; // percent of the axis

  document.querySelectorAll("button[data-series]").forEach((button) => {
    const { chart, series } = button.dataset;
    button.addEventListener("click", () => {
      const off = !hidden[chart].delete(series);
      if (off) hidden[chart].add(series);
      button.setAttribute("aria-pressed", String(!off));
      document.querySelectorAll(`#${chart} g[data-series="${series}"]`).forEach((drawn) => {
        drawn.style.display = off ? "none" : "";
      });
    });
  });

  // Values under the pointer, of all series that have a point at the same place.
  const nearest = (places, at) => places.reduce(
    (best, place, number) => Math.abs(place - at) < Math.abs(places[best] - at) ? number : best, 0
  );
  const distance = ({ at }, place) => Math.abs(at[nearest(at, place)] - place);
  Object.keys(readings).forEach((chart) => {
    const plot = document.querySelector(`#${chart} .plot`);
    const [cursor, box] = plot.querySelectorAll(".cursor, .reading");
    const close = () => { cursor.hidden = box.hidden = true; };
    const open = ({ clientX }) => {
      const shown = readings[chart].filter(({ series }) => !hidden[chart].has(series));
      if (!shown.length) return close();
      const { left, width } = plot.getBoundingClientRect();
      const pointer = (100 * (clientX - left)) / width;
      const first = shown.find((series) => distance(series, pointer) <= SAME_PLACE) ?? shown[0];
      const number = nearest(first.at, pointer);
      const at = first.at[number];
      const lines = shown
        .filter((series) => distance(series, at) <= SAME_PLACE)
        .map((series) => `${series.name}: ${series.y[nearest(series.at, at)]}`);
      box.replaceChildren(...[first.x[number], ...lines].map((text) => {
        const line = document.createElement("p");
        line.textContent = text;
        return line;
      }));
      cursor.style.left = `${at}%`;
      // The box stands on the side that has more room.
      const room = `${Math.max(at, 100 - at)}%`;
      Object.assign(box.style, at < 50
        ? { left: `${at}%`, right: "auto", maxWidth: room }
        : { left: "auto", right: `${100 - at}%`, maxWidth: room });
      cursor.hidden = box.hidden = false;
    };
    plot.addEventListener("pointermove", open);
    plot.addEventListener("pointerdown", open);
    plot.addEventListener("pointerleave", close);
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

  // The slider shows values of the curve and marks them in its chart.
  const slider = document.getElementById("at");
  const answer = document.getElementById("answer");
  const { at: places } = readings.accuracy.find(({ series }) => series === "posterior");
  const mark = document.createElement("i");
  mark.className = "chosen";
  document.querySelector("#accuracy .plot").append(mark);
  const ask = () => {
    answer.textContent = answers[slider.value];
    slider.setAttribute("aria-valuetext", answer.textContent);
    mark.style.left = `${places[slider.value]}%`;
  };
  slider.value = numbers.curve.findIndex(({ k }) => k === +slider.dataset.k);
  slider.addEventListener("input", ask);

  // Paper has no folds.
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
  });

  ask();
  document.documentElement.dataset.ready = "";
})();
