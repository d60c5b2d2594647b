// Scores of Sphinx's search: pages of the manual before tables of results and the log.
var Scorer = {
  score: ([page, , , , score]) => (/^(results\/|log$)/.test(page) ? score / 4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
