// What five theorems ask for, in decimal logarithms: `requirements` of overparam.bounds.requirements with the formulas
// that it calls, in the same order and letters, all constants 1. m is the width, eta the step size.
function requirements(setting) {
  return [arora2019, allenzhu2019, frei2019, noy2021, guo2024].map((theorem) => theorem(setting));
}

function arora2019({ n, eps, d, lam0, p }) {
  const m = n ** 6 / (lam0 ** 4 * p ** 3);
  const eta = lam0 / n ** 2;
  const share = eta * lam0 / 2;
  return inLogs("Arora et al. 2019, Theorem 3.1", "two-layer ReLU", m, eta, stepsTo(eps, n / 2, share), share, [d]);
}

function allenzhu2019({ n, L, delta, eps }) {
  const m = widthOf(24 * Math.log(n) + 12 * Math.log(L) - 8 * Math.log(delta), 5);
  const eta = delta / (n ** 4 * L ** 2 * m);
  const steps = n ** 6 * L ** 2 / delta ** 2 * Math.log(n * Math.log(m) / eps);
  const share = eta * delta * m / n ** 2;
  return inLogs("Allen-Zhu et al. 2019, Theorem 1", "deep ReLU", m, eta, steps, share, [L, m]);
}

function frei2019({ n, L, eps, d, gamma, p }) {
  const radius = (m) => gamma ** 12 * Math.log(m) ** -1.5;
  const needed = (m) => {
    const tau = radius(m);
    return Math.max(
      tau ** (-4 / 3) * d * Math.log(m / (tau * p)),
      d * Math.log(m * L / p),
      tau ** (-2 / 3) * Math.log(L / p) / Math.log(m),
      gamma ** -2 * d * Math.log(1 / gamma),
      gamma ** -2 * Math.log(L / p),
      Math.log(n / p),
      Math.log(n / p) / (eps * gamma ** 4 * tau) ** 2,
    );
  };
  let m = 100;
  for (let before = 0; Math.abs(m - before) > 1e-12 * m; ) [before, m] = [m, needed(m)];
  const tau = radius(m);
  const eta = Math.min(tau / Math.sqrt(m), gamma ** 4 / m);
  const steps = tau ** 2 * gamma ** 4 / Math.sqrt(Math.log(n / p)) / eta;
  return inLogs("Frei et al. 2019, Theorem 3.5", "residual ReLU", m, eta, steps, NaN, [L + d / m, m]);
}

function noy2021({ n, L, eps, d }) {
  const m = n ** 2 * L;
  const eta = d / (n ** 4 * L ** 3);
  const steps = Math.log(n ** 3 * L / (d * eps));
  const share = eta * (m ** 2 / (144 * d)) * L / 2;
  return inLogs("Noy et al. 2021, Theorem 1", "gated ReLU", m, eta, steps, share, [L, m]);
}

function guo2024({ n, L, delta, eps, alpha }) {
  const c = (1 - alpha) ** 2 / (1 + alpha ** 2);
  const m = widthOf(5 * Math.log(n) + 15 * Math.log(L) - Math.log(c) - 4 * Math.log(delta), 4);
  const eta = 1 / (n * L ** 2 * m);
  const share = c * eta * delta * m / n;
  return inLogs("Guo et al. 2024, Theorem 3.1", "deep leaky ReLU", m, eta, stepsTo(eps, n, share), share, [L, m]);
}

// The larger m with m / ln(m)^power = e^a: Newton's method for x = ln m, which comes to it from above.
function widthOf(a, power) {
  let x = 2 * power + a;
  for (let k = 0; k < 50; k++) x *= (a - power + power * Math.log(x)) / (x - power);
  return Math.exp(x);
}

// The steps until (1 - share)^T loss = eps.
function stepsTo(eps, loss, share) {
  return Math.log(eps / loss) / Math.log1p(-share);
}

function inLogs(theorem, net, m, eta, steps, share, perNeuron) {
  const [width, step, atLeast1, part] = [m, eta, Math.max(steps, 1), share].map(Math.log10);
  const parameters = [m, ...perNeuron].reduce((sum, factor) => sum + Math.log10(factor), 0);
  return { theorem, net, width, step, steps: atLeast1, share: part, parameters };
}

// The sliders. Without this script their form stays hidden, and the line before it says why.
const explorer = document.getElementById("explorer");
if (explorer) {
  const [LEFT, RIGHT] = [21, 92]; // of a panel's axis, in percent; the theorems' names stand before it
  const [FIRST, BETWEEN] = [14, 20]; // pixels from the top of the rows to the first, and from row to row
  const scale = JSON.parse(explorer.dataset.scale);
  const body = explorer.querySelector("tbody");
  const sliders = [...explorer.querySelectorAll("input")];
  const minus = (text) => text.replace("-", "−");

  // A slider's input is the place in a list: twenty numbers a decade of two digits each, and the one at the start.
  const values = new Map(sliders.map((slider) => {
    const [start, min, max] = ["start", "min", "max"].map((name) => Number(slider.dataset[name]));
    const list = [start];
    for (let x = min; x < max + 0.01; x += 0.05) {
      const value = Number("log" in slider.dataset ? (10 ** x).toPrecision(2) : x.toFixed(2)) + 0; // never -0
      list.push("whole" in slider.dataset ? Math.round(value) : value);
    }
    return [slider, [...new Set(list)].sort((a, b) => a - b)];
  }));
  const place = (slider, value) => {
    const far = values.get(slider).map((x) => Math.abs(x - value));
    return far.indexOf(Math.min(...far));
  };
  const start = Object.fromEntries(sliders.map((slider) => [slider.name, +slider.dataset.start]));
  const setting = () => Object.fromEntries(sliders.map((slider) => [slider.name, values.get(slider)[slider.value]]));

  const add = (parent, name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return parent.appendChild(made);
  };

  // The smallest of these round ends, four intervals each, that leaves room to the right of the largest value.
  const ENDS = [4, 6, 8, 12, 16, 20, 24, 32, 40, 60, 80, 120, 160, 200, 240, 320, 400, 600];
  const linear = (largest) => {
    const end = ENDS.find((x) => x >= 1.05 * largest);
    return { ticks: [0, 1, 2, 3, 4].map((k) => k * end / 4), place: (x) => x / end };
  };
  const logarithmic = { ticks: [5, 10, 20, 50, 100, 200], place: (x) => Math.log(x / 3.9) / Math.log(450 / 3.9) };

  const draw = (svg, rows, before) => {
    const name = svg.dataset.name;
    const counts = name === "parameters" ? Object.entries(scale) : [];
    const axis = counts.length ? logarithmic : linear(Math.max(...[...rows, ...before].map((row) => row[name])));
    const x = (value) => `${LEFT + (RIGHT - LEFT) * axis.place(value)}%`;
    const top = counts.length ? 124 : 0;
    const bottom = top + FIRST + BETWEEN * rows.length - 6;
    svg.replaceChildren();
    svg.setAttribute("height", bottom + 20);
    for (const tick of axis.ticks) {
      add(svg, "line", { x1: x(tick), x2: x(tick), y1: top, y2: bottom });
      add(svg, "text", { x: x(tick), y: bottom + 15, class: "tick" }, tick);
    }
    for (const [of, count] of counts) {
      add(svg, "line", { x1: x(Math.log10(count)), x2: x(Math.log10(count)), y1: top, y2: bottom, class: "known" });
      const label = add(add(svg, "svg", { x: x(Math.log10(count)), y: top - 3, overflow: "visible" }), "text", {}, of);
      label.setAttribute("class", "known");
    }
    rows.forEach((row, i) => {
      const y = top + FIRST + BETWEEN * i;
      const [now, then] = [row, before[i]].map((one) => axis.place(one[name]));
      const late = now > 0.85 || (now < then && now > 0.18); // the number stands away from the open circle
      add(svg, "text", { x: 0, y: y + 4 }, row.theorem.split(" ")[0]);
      add(svg, "circle", { cx: x(before[i][name]), cy: y, r: 4.5, class: "before" });
      add(svg, "circle", { cx: x(row[name]), cy: y, r: 4.5 });
      const number = { x: x(row[name]), y: y + 4, dx: late ? -9 : 9, class: late ? "late number" : "number" };
      add(svg, "text", number, row[name].toFixed(1));
    });
  };

  const show = () => {
    const [rows, before] = [requirements(setting()), requirements(start)];
    for (const svg of explorer.querySelectorAll("svg[data-name]")) draw(svg, rows, before);
    body.replaceChildren();
    for (const row of rows) {
      const line = body.insertRow();
      const head = line.appendChild(document.createElement("th"));
      head.scope = "row";
      head.append(row.theorem, Object.assign(document.createElement("small"), { textContent: row.net }));
      for (const name of ["width", "step", "steps", "share", "parameters"]) {
        const cell = line.insertCell();
        cell.className = "number";
        cell.textContent = Number.isNaN(row[name]) ? "none" : minus(row[name].toFixed(1));
      }
    }
    for (const slider of sliders) {
      const value = minus(values.get(slider)[slider.value].toLocaleString("en", { maximumSignificantDigits: 6 }));
      slider.setAttribute("aria-valuetext", value);
      slider.previousElementSibling.lastElementChild.textContent = value;
    }
  };

  for (const slider of sliders) {
    slider.max = values.get(slider).length - 1;
    slider.defaultValue = place(slider, start[slider.name]);
  }
  const given = new URLSearchParams(location.hash.slice(1));
  for (const slider of sliders) slider.value = place(slider, given.get(slider.name) ?? start[slider.name]);
  const keep = () => {
    const moved = Object.entries(setting()).filter(([name, value]) => value !== start[name]);
    history.replaceState(null, "", moved.length ? `#${new URLSearchParams(moved)}` : location.pathname);
    show();
  };
  explorer.addEventListener("input", keep);
  explorer.addEventListener("reset", () => setTimeout(keep));
  explorer.hidden = false;
  explorer.previousElementSibling.hidden = true;
  show();
}
