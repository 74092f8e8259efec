// One query: two rankings side by side, what their scores are made of, and which features make the difference.

let opened = null;
let opener = null;

/** What is looked at, as the end of an address: to keep, to send, and for Back. */
let entered = false;
function address(query) {
  const named = { query: numbers.ids[query], measure: numbers.measures[state.measure], a: numbers.systems[state.a], b: numbers.systems[state.b] };
  return '#' + new URLSearchParams(named).toString();
}
function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const query = wanted.has('query') ? numbers.ids.indexOf(wanted.get('query')) : -1;
  if (query < 0 || !detailed.has(query)) {
    if ($('view').open) $('view').close();
    return;
  }
  if ($('view').open && opened === query) return;
  const chosen = ['a', 'b'].map((key) => numbers.systems.indexOf(wanted.get(key)));
  const measure = numbers.measures.indexOf(wanted.get('measure'));
  if (measure >= 0 && measure !== state.measure) {
    state.measure = measure;
    $('measure').value = measure;
    drawMeasure();
  }
  if (chosen.every((system) => system >= 0) && chosen[0] !== chosen[1]) choosePair(...chosen);
  openQuery(query, false);
}
window.addEventListener('hashchange', follow);

function openQuery(query, enter = true) {
  if (!$('view').open) opener = document.activeElement;
  opened = query;
  drawQuery(query);
  if (!$('view').open) $('view').showModal();
  if (enter) {
    entered = true;
    location.hash = address(query);
  }
  $('view').scrollTop = 0;
  $('close').focus();
}

/** The neighbours among the queries with rankings, in the order of the list. */
function neighbour(step) {
  const order = sorted(rowsNow(), state.sort, state.down).map((row) => row.query).filter((query) => detailed.has(query));
  return order[order.indexOf(opened) + step];
}

function drawQuery(query) {
  const found = readRankings().get(query);
  const { a, b, measure } = state;
  const known = numbers.has(measure);
  const values = [a, b].map((system) => (known ? numbers.value(measure, system, query) : NaN));
  $('view-title').textContent = `Query: ${numbers.ids[query]}`;
  const fold = numbers.folds ? `fold ${numbers.folds[query] + 1}, ` : '';
  const gap = known ? `; ${numbers.measures[measure]} ${signed(values[0] - values[1])}` : '';
  const facts = `${fold}${plural(numbers.docs[query], 'document', 'documents')}, ${whole(numbers.relevant[query])} relevant${gap}`;
  const columns = [[a, b], [b, a]].map(([system, other], i) => ranking(found, system, other, values[i], numbers.relevant[query]));
  $('view-body').replaceChildren(el('p', { class: 'note' }, facts), el('div', { class: 'pair' }, ...columns), why(found, a, b));
  $('previous').disabled = neighbour(-1) === undefined;
  $('next').disabled = neighbour(1) === undefined;
}

function ranking(found, system, other, value, relevant) {
  const mine = found.systems[system];
  const theirs = found.systems[other];
  const reach = Math.max(...(mine.parts || []).map((flat) => Math.max(...sides(partsOf(flat)))), 0);
  const items = mine.order.map((doc, i) => document_(found, doc, i, mine, theirs.order.indexOf(doc), reach));
  const more = relevant > mine.hits.length ? ', …' : '';
  const hits = mine.hits.length ? `relevant at rank${mine.hits.length > 1 ? 's' : ''} ${mine.hits.join(', ')}${more}` : 'nothing relevant';
  const name = el('h3', {}, numbers.systems[system], Number.isNaN(value) ? '' : el('span', { class: 'quiet' }, ` ${fixed(value)}`));
  const made = mine.parts ? null : el('p', { class: 'note' }, 'What these scores are made of is not known: they are no sum over the features of this data.');
  return el('section', { class: 'ranking', 'aria-label': `Ranking by ${numbers.systems[system]}` }, name, el('p', { class: 'note' }, hits), el('ol', {}, ...items), made);
}

/** Names and contributions, in units of the last decimal shown, from: feature, value, …, and all the others last. */
function partsOf(flat) {
  const parts = [];
  for (let i = 0; i + 1 < flat.length; i += 2) parts.push([featureName(flat[i]), flat[i + 1]]);
  const rest = flat[flat.length - 1];
  return rest ? [...parts, ['all others', rest]] : parts;
}
/** How far the parts reach above zero and below. */
function sides(parts) {
  const values = parts.map(([, value]) => value);
  const total = (sign) => values.filter((x) => x * sign > 0).reduce((sum, x) => sum + x * sign, 0);
  return [total(1), total(-1)];
}

function document_(found, doc, i, mine, elsewhere, reach) {
  const grade = found.grades[doc];
  const moved = elsewhere < 0 ? 'not in the other top 10' : elsewhere === i ? 'same place' : `${elsewhere > i ? '▲' : '▼'} ${Math.abs(elsewhere - i)}`;
  const where = elsewhere < 0 || elsewhere === i ? moved : `${Math.abs(elsewhere - i)} places ${elsewhere > i ? 'higher' : 'lower'} than in the other ranking`;
  const line = [
    el('span', { class: 'rank' }, String(i + 1)),
    el('span', { class: `grade g${Math.max(0, Math.min(4, Math.round(grade)))}`, title: `grade ${plain(grade)}` }, plain(grade)),
    el('span', { class: 'doc', title: found.docs[doc] }, found.docs[doc]),
    el('span', { class: 'score' }, minus(mine.scores[i])),
  ];
  const move = el('span', { class: `moved ${elsewhere > i || elsewhere < 0 ? 'up' : elsewhere < i ? 'down' : 'quiet'}`, title: where }, elsewhere < 0 ? 'only in this top 10' : elsewhere === i ? '=' : moved);
  const mark = (on) => () => document.querySelectorAll(`[data-doc="${doc}"]`).forEach((item) => item.classList.toggle('same', on));
  const listeners = { mouseenter: mark(true), mouseleave: mark(false), focusin: mark(true), focusout: mark(false) };
  if (!mine.parts) return el('li', { 'data-doc': doc, ...listeners }, el('div', { class: 'row' }, ...line, move));
  const parts = partsOf(mine.parts[i]);
  const told = (units) => minus((units / 10 ** mine.decimals).toFixed(mine.decimals));
  const list = el('dl', { hidden: true }, ...parts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', { class: kindOf(value) }, told(value))]));
  const unfold = (event) => {
    list.hidden = !list.hidden;
    event.currentTarget.setAttribute('aria-expanded', String(!list.hidden));
  };
  return el('li', { 'data-doc': doc, ...listeners },
    el('button', { type: 'button', class: 'row', 'aria-expanded': 'false', title: 'Show the contributions of the features', click: unfold }, ...line, move), stack(parts, reach, told), list);
}

/** Contributions as segments: above zero to the right, below zero to the left. */
function stack(parts, reach, told) {
  const place = { 1: 50, '-1': 50 };
  const segments = parts.filter(([, value]) => value).map(([name, value], i) => {
    const width = reach ? (50 * Math.abs(value)) / reach : 0;
    const segment = el('i', { class: kindOf(value), title: `${name} ${told(value)}` });
    if (value < 0) place[-1] -= width;
    segment.style.left = `${value > 0 ? place[1] : place[-1]}%`;
    segment.style.width = `${width}%`;
    segment.style.opacity = name === 'all others' ? 0.3 : 1 - 0.13 * i;
    if (value > 0) place[1] += width;
    return segment;
  });
  return el('div', { class: 'diverging stack', 'aria-hidden': 'true' }, ...segments);
}

function why(found, a, b) {
  const known = found.why && found.why.shares[a] && found.why.shares[b];
  const title = el('h3', {}, 'Features behind the difference');
  if (!known) return el('div', {}, title, el('p', { class: 'note' }, 'Only told where both scores are sums over features and both grades and scores vary.'));
  const { features, shares, total } = found.why;
  const rows = features.map((f, i) => [featureName(f), shares[a][i], shares[b][i]]);
  rows.sort((x, y) => Math.abs(y[1] - y[2]) - Math.abs(x[1] - x[2]));
  rows.push(['all others', shares[a][features.length], shares[b][features.length]]);
  const largest = Math.max(...rows.map(([, x, y]) => Math.abs(x - y))) || 1;
  const three = (x) => minus(x.toFixed(3));
  const head = ['feature', numbers.systems[a], numbers.systems[b], 'difference', ''].map((text, i) => el('th', { scope: 'col', class: i ? 'n' : '' }, text));
  const body = rows.map(([name, x, y]) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', { class: 'n' }, three(x)), el('td', { class: 'n' }, three(y)),
    el('td', { class: `n ${kindOf(x - y)}` }, three(x - y)), el('td', { class: 'picture' }, diverging(x - y, largest))));
  const sums = `Correlation of scores with grades over the query's documents: ${three(total[a])} for ${numbers.systems[a]}, ${three(total[b])} for ${numbers.systems[b]}. Each feature's share in it:`;
  return el('div', { class: 'why' }, title, el('p', { class: 'note' }, sums), el('div', { class: 'scroll' }, el('table', { class: 'bars' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body))));
}

function step(by) {
  const to = neighbour(by);
  if (to === undefined) return;
  const focused = document.activeElement;
  opened = to;
  drawQuery(to);
  location.replace(address(to));
  if (!focused.disabled && $('view').contains(focused)) focused.focus();
  else $('close').focus();
}

$('close').addEventListener('click', () => $('view').close());
$('previous').addEventListener('click', () => step(-1));
$('next').addEventListener('click', () => step(1));
$('view').addEventListener('click', (event) => event.target === $('view') && $('view').close());
$('view').addEventListener('keydown', (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by && !event.altKey && !event.ctrlKey && !event.metaKey) step(by);
});
$('view').addEventListener('close', () => {
  // Back to the entry before the query, where it was opened here; else the address is only cleared.
  if (location.hash.startsWith('#query=')) {
    if (entered) history.back();
    else location.replace('#');
  }
  entered = false;
  const again = document.querySelector(`[data-query="${opened}"]`);
  const back = opener && opener.isConnected && opener !== document.body ? opener : again;
  if (back) back.focus();
});

start();
follow();
