// The theme's arrows for opening a part of the navigation have no name of their own.
for (const summary of document.querySelectorAll("nav summary:not([aria-label])")) {
  const link = summary.closest("li")?.querySelector("a");
  summary.setAttribute("aria-label", `Pages below ${link?.textContent.trim() ?? "this one"}`);
}

// Filters, sorts and searches the dashboard's table. Without it the table stands as it is.
const table = document.querySelector("table#claims");
if (table) {
  const form = document.getElementById("filters");
  const rows = [...table.tBodies[0].rows];
  const text = new Map(rows.map((row) => [row, (row.textContent + " " + row.dataset.text).toLowerCase()]));

  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const same = (row, key) => !wanted[key] || row.dataset[key] === wanted[key];
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(["paper", "verdict", "kind"].every((key) => same(row, key)) &&
        words.every((word) => text.get(row).includes(word)));
      shown += !row.hidden;
    }
    form.querySelector("output").textContent = `${shown} of ${rows.length} claims`;
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
  };

  for (const header of table.tHead.querySelectorAll("[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
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
