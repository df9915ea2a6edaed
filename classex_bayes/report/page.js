(() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { curve } = read("numbers");
  const answers = read("answers");

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

  // The slider shows values of the curve and moves a line in its figure. So does a pointer there.
  const slider = document.getElementById("at");
  const answer = document.getElementById("answer");
  const [first, last] = [curve[0].k, curve.at(-1).k];
  const share = (k) => (first === last ? 1 : Math.log(k / first) / Math.log(last / first));
  const marks = document.querySelectorAll("#accuracy .chosen");
  const ask = () => {
    answer.textContent = answers[slider.value];
    slider.setAttribute("aria-valuetext", answer.textContent);
    const place = share(curve[slider.value].k);
    marks.forEach((mark) => {
      mark.setAttribute("transform", `translate(${(place - 1) * mark.dataset.span})`);
    });
  };
  marks.forEach((mark) => {
    const drawing = mark.ownerSVGElement;
    const point = ({ clientX }) => {
      const { left, width } = drawing.getBoundingClientRect();
      const x = ((clientX - left) / width) * drawing.viewBox.baseVal.width;
      const place = 1 + (x - mark.dataset.end) / mark.dataset.span;
      const far = curve.map(({ k }) => Math.abs(share(k) - place));
      slider.value = far.indexOf(Math.min(...far));
      ask();
    };
    drawing.addEventListener("pointermove", point);
    drawing.addEventListener("pointerdown", point);
  });
  slider.value = curve.findIndex(({ k }) => k === +slider.dataset.k);
  slider.addEventListener("input", ask);

  // Paper has no folds.
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
  });

  ask();
  document.documentElement.dataset.ready = "";
})();
