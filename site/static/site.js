// The theme's arrows for opening a part of the navigation have no name of their own.
for (const summary of document.querySelectorAll("nav summary:not([aria-label])")) {
  const link = summary.closest("li")?.querySelector("a");
  summary.setAttribute("aria-label", `Pages below ${link?.textContent.trim() ?? "this one"}`);
}

// What is wider than its place scrolls, by keyboard too. Formulas have their width once they are set.
const scrollable = () => {
  const across = (part) => part.getBoundingClientRect().width;
  const wide = [...document.querySelectorAll(".bd-article :is(td, pre, div.math)")]
    .filter((part) => part.scrollWidth > part.clientWidth);
  for (const formula of document.querySelectorAll(".bd-article span.math:has(mjx-math)")) {
    // its own scrollWidth counts the hidden copy that is read aloud
    if (across(formula.querySelector("mjx-math")) > across(formula) + 1) wide.push(formula);
  }
  for (const part of wide) {
    part.classList.add("wide");
    part.tabIndex = 0;
  }
};
addEventListener("load", () => window.MathJax?.startup?.promise.then(scrollable) ?? scrollable());

// Filters, sorts and searches the dashboard's table, and folds it by paper as long as nothing is
// asked for. Without it the table stands as it is.
const table = document.querySelector("table#claims");
if (table) {
  const form = document.getElementById("filters");
  const groups = [...table.querySelectorAll(".group")];
  const rows = [...table.querySelectorAll("tr[data-paper]")];
  let sorted = false;
  const text = new Map(rows.map((row) => [row, (row.textContent + " " + row.dataset.text).toLowerCase()]));

  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const same = (row, key) => !wanted[key] || row.dataset[key] === wanted[key];
    const found = new Set(rows.filter((row) => ["paper", "verdict", "kind"].every((key) => same(row, key)) &&
      words.every((word) => text.get(row).includes(word))));
    const flat = sorted || words.length || wanted.paper || wanted.verdict || wanted.kind;
    for (const row of rows) {
      const heading = row.parentElement.querySelector(".group button");
      row.hidden = !found.has(row) || !(flat || heading.ariaExpanded === "true");
    }
    for (const group of groups) group.hidden = Boolean(flat);
    form.querySelector("output").textContent = `${found.size} of ${rows.length} claims`;
    const kept = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    history.replaceState(null, "", kept.size ? `#${kept}` : location.pathname + location.search);
  };

  const fromAddress = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of ["text", "paper", "verdict", "kind"]) form.elements[name].value = given.get(name) ?? "";
    filter();
  };

  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const sort = (header) => {
    const descending = header.ariaSort === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const order = [...rows].sort((a, b) =>
      key(a, header.cellIndex).localeCompare(key(b, header.cellIndex), "en", { numeric: true }));
    table.tBodies[0].append(...(descending ? order.reverse() : order));
    sorted = true;
    filter();
  };

  for (const header of table.tHead.querySelectorAll("[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }
  for (const group of groups) {
    const button = group.querySelector("button");
    button.addEventListener("click", () => {
      button.ariaExpanded = String(button.ariaExpanded !== "true");
      filter();
    });
  }
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  addEventListener("hashchange", fromAddress);
  fromAddress();
}

// One switch for all code of a claim's page.
const head = document.querySelector(".claim-head");
if (head) {
  const button = document.createElement("button");
  button.id = "code";
  button.type = "button";
  const label = () => {
    button.textContent = document.body.classList.contains("no-code") ? "Show the code" : "Hide the code";
  };
  button.addEventListener("click", () => { document.body.classList.toggle("no-code"); label(); });
  label();
  head.append(button);
}

// A figure opens as large as the window, on the page; Escape or a click closes it.
const figures = document.querySelectorAll(
  head ? "img.overview, .cell_output img:not(.slider img)" : ".bd-article :is(section, p) > img",
);
if (figures.length) {
  const dialog = document.createElement("dialog");
  dialog.id = "enlarged";
  dialog.innerHTML = '<form method="dialog"><button>Close</button></form><div tabindex="0" role="region"></div>';
  const frame = dialog.querySelector("div");
  dialog.addEventListener("click", ({ target }) => { if (target === dialog || target.tagName === "IMG") dialog.close(); });
  document.body.append(dialog);
  for (const figure of figures) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.ariaLabel = `Enlarge: ${figure.alt}`;
    button.addEventListener("click", () => {
      frame.replaceChildren(Object.assign(new Image(), { src: figure.src, alt: figure.alt }));
      dialog.ariaLabel = frame.ariaLabel = figure.alt;
      dialog.showModal();
    });
    (figure.closest("a") ?? figure).replaceWith(button);
    button.append(figure);
  }
}

// A formula that is wider than the page can be scrolled by keyboard.
addEventListener("load", () => window.MathJax?.startup?.promise.then(() => {
  for (const formula of document.querySelectorAll("div.math, mjx-container[display='true']")) {
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  }
}));
