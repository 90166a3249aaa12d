// Of the search's results those come first whose title has the words in the order asked for.
const spelled = (text) => text.toLowerCase().replace(/\bfigs?\. /g, "figure ").replace(/\s+/g, " ").trim();
const asked = spelled(new URLSearchParams(location.search).get("q") ?? "")
  .replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const whole = new RegExp(`(^|[^\\w.])${asked}(?![\\w]|\\.\\d)`);

var Scorer = { // one that Sphinx has declared already
  score: ([, title, , , score]) => score + (asked && whole.test(spelled(title)) ? 100 : 0),
  // The rest is Sphinx's own.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
