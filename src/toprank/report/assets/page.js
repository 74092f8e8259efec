// The page's state is four choices; everything below the toolbar is drawn from them.

const $ = (id) => document.getElementById(id);
const numbers = readNumbers();
const state = { measure: 0, a: numbers.challenger, b: numbers.baseline, sort: 'difference', down: true, limit: 25 };
const detailed = new Set();

/** An element with attributes (functions are listeners) and children; text stays text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const minus = (text) => text.replace('-', '−');
const fixed = (x) => (Number.isNaN(x) ? '–' : minus(x.toFixed(4)));
const signed = (x, digits = 4) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? '–' : x > 0 ? '+∞' : '−∞';
  const text = Math.abs(x).toFixed(digits);
  return Number(text) === 0 ? text : `${x > 0 ? '+' : '−'}${text}`;
};
const plain = (x) => minus(String(x));
const whole = (n) => n.toLocaleString('en');
const plural = (n, word, many) => `${whole(n)} ${n === 1 ? word : many}`;
const featureName = (f) => numbers.features[f];

/** How a and b compare on a measure, whichever way round the pair was tested. */
const pairs = new Map(numbers.pairs.map((row) => [row.slice(0, 3).join(), row]));
function compared(measure, a, b) {
  const straight = pairs.get([measure, a, b].join());
  const row = straight || pairs.get([measure, b, a].join());
  if (!row) return null;
  const [, , , difference, from, to, p, wins, ties, losses, shown] = row;
  const [low, high] = [from ?? -Infinity, to ?? Infinity];
  if (straight) return { difference, low, high, p, wins, ties, losses, shown };
  return { difference: -difference, low: -high, high: -low, p, wins: losses, ties, losses: wins, shown: -shown };
}
const markOf = (d) => (!d.shown ? '≈' : d.shown > 0 ? '▲' : '▼');
const kindOf = (x) => (x > 0 ? 'up' : x < 0 ? 'down' : 'quiet');
const chance = (p) => (p < 5e-5 ? 'p < 0.0001' : `p = ${p.toFixed(4)}`);

function sentence(measure, a, b) {
  const [row, column] = [numbers.systems[a], numbers.systems[b]];
  const d = compared(measure, a, b);
  if (!d) return `${row} and ${column} were not tested against each other.`;
  const verdict = !d.shown ? `not ${numbers.shown}` : `${d.shown > 0 ? row : column} is better, ${numbers.shown}`;
  const range = `[${signed(d.low)}, ${signed(d.high)}]`;
  return `${row} − ${column} on ${numbers.measures[measure]}: ${signed(d.difference)} ${range}, ${chance(d.p)}: ${verdict}.`;
}

// Toolbar

function fill(select, options, chosen, listen) {
  select.replaceChildren(...options.map(([value, text]) => el('option', { value }, text)));
  select.value = chosen;
  select.addEventListener('change', () => listen(Number(select.value)));
}

function choosePair(a, b) {
  if (a === b) [a, b] = a === state.a ? [state.b, a] : [b, state.a];
  Object.assign(state, { a, b });
  $('challenger').value = a;
  $('baseline').value = b;
  drawQueries();
}

function drawMeasure() {
  document.querySelectorAll('[data-measure]').forEach((panel) => {
    panel.hidden = Number(panel.dataset.measure) !== state.measure;
  });
  drawMatrix();
  drawQueries();
}

// Significance

function drawMatrix() {
  const order = numbers.standing;
  const titled = (scope, system, ...text) => el('th', { scope, title: numbers.systems[system] }, ...text);
  const head = el('tr', {}, el('th', { scope: 'col' }, 'row − column'), ...order.map((j, place) => titled('col', j, String(place + 1))));
  const rows = order.map((i, place) => el('tr', {}, titled('row', i, el('span', { class: 'number' }, String(place + 1)), numbers.systems[i]), ...order.map((j) => cell(i, j))));
  $('matrix').replaceChildren(el('thead', {}, head), el('tbody', {}, ...rows));
  const first = $('matrix').querySelector('button');
  if (first) first.tabIndex = 0;
  $('pair').textContent = sentence(state.measure, state.a, state.b);
}

function cell(i, j) {
  if (i === j) return el('td', { class: 'self' }, '–');
  const d = compared(state.measure, i, j);
  const tell = () => { $('pair').textContent = sentence(state.measure, i, j); };
  const choose = () => choosePair(i, j);
  const label = sentence(state.measure, i, j);
  const text = d ? [el('span', { class: 'mark' }, markOf(d)), signed(d.difference, 3)] : ['·'];
  const kind = d && d.shown ? kindOf(d.shown) : 'quiet';
  return el('td', {}, el('button', { type: 'button', tabindex: -1, class: kind, 'aria-label': label, title: label, focus: tell, mouseenter: tell, click: choose }, ...text));
}

/** One stop for the Tab key, arrows inside. */
$('matrix').addEventListener('keydown', (event) => {
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [0, 0];
  const from = event.target.closest('td');
  if (!from || !(down || right)) return;
  event.preventDefault();
  let [i, j] = [from.parentNode.sectionRowIndex + down, from.cellIndex + right];
  const rows = $('matrix').tBodies[0].rows;
  if (i === j - 1) [i, j] = [i + down, j + right]; // step over the diagonal
  const button = rows[i] && rows[i].cells[j] && rows[i].cells[j].querySelector('button');
  if (!button) return;
  event.target.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
});

// Query by query

const COLUMNS = [
  ['id', 'query', ''], ...(numbers.docs ? [['docs', 'docs', 'n'], ['relevant', 'relevant', 'n']] : []),
  ['a', '', 'n'], ['b', '', 'n'], ['difference', 'difference', 'n'],
];
const collator = new Intl.Collator('en', { numeric: true });
let byDifference = [];
let pointed = 0;

function rowsNow() {
  if (!numbers.has(state.measure)) return [];
  return numbers.ids.map((id, query) => {
    const [a, b] = [numbers.value(state.measure, state.a, query), numbers.value(state.measure, state.b, query)];
    return { query, id, docs: numbers.docs && numbers.docs[query], relevant: numbers.docs && numbers.relevant[query], a, b, difference: a - b };
  });
}

const last = (x) => (Number.isNaN(x) ? -Infinity : x);
function sorted(rows, key, down) {
  const compare = key === 'id' ? (x, y) => collator.compare(x.id, y.id) : (x, y) => last(x[key]) - last(y[key]) || 0;
  return rows.slice().sort((x, y) => (down ? compare(y, x) : compare(x, y)) || x.query - y.query);
}

function drawQueries() {
  const rows = rowsNow();
  byDifference = sorted(rows.filter((row) => !Number.isNaN(row.difference)), 'difference', true);
  const [a, b] = [numbers.systems[state.a], numbers.systems[state.b]];
  const name = numbers.measures[state.measure];
  const wins = rows.filter((row) => row.difference > 0).length;
  const losses = rows.filter((row) => row.difference < 0).length;
  const ties = byDifference.length - wins - losses;
  $('tally').replaceChildren(...(rows.length
    ? [el('b', {}, a), ' against ', el('b', {}, b), ` on ${name}: `, el('span', { class: 'up' }, `▲ ${plural(wins, 'win', 'wins')}`), `, ${plural(ties, 'tie', 'ties')}, `,
      el('span', { class: 'down' }, `▼ ${plural(losses, 'loss', 'losses')}`), rows.length < numbers.queries ? ` among the ${whole(rows.length)} queries in this file.` : '.']
    : [`The values of ${name} per query are not in this file.`]));
  pointed = 0;
  drawChart();
  drawList();
}

function svgEl(parent, tag, attributes) {
  const node = document.createElementNS(parent.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.append(node);
}

function drawChart() {
  const svg = $('chart').firstElementChild;
  const n = byDifference.length;
  svg.replaceChildren();
  $('chart').hidden = !n;
  $('pointed').textContent = '';
  if (!n) return;
  const top = Math.max(byDifference[0].difference, 0);
  const span = top - Math.min(byDifference[n - 1].difference, 0) || 1;
  const zero = top ? (100 * top) / span : 1;
  svg.setAttribute('viewBox', `0 0 ${n} 112`);
  const ticks = detailed.size < numbers.ids.length;
  const paths = { up: '', down: '', dot: '' };
  byDifference.forEach(({ difference, query }, i) => {
    const height = ((-100 * difference) / span).toFixed(2);
    if (difference) paths[kindOf(difference)] += `M${i} ${zero.toFixed(2)}h1v${height}h-1z`;
    if (ticks && detailed.has(query)) paths.dot += `M${i} 106h1v6h-1z`;
  });
  for (const [kind, d] of Object.entries(paths)) svgEl(svg, 'path', { d, class: kind });
  svgEl(svg, 'path', { d: `M0 ${zero.toFixed(2)}h${n}`, class: 'zero' });
  svgEl(svg, 'rect', { class: 'cursor', x: 0, y: 0, width: 1, height: 112 });
  $('chart').setAttribute('aria-valuemin', 1);
  $('chart').setAttribute('aria-valuemax', n);
  point(pointed, false);
}

function point(i, visible = true) {
  const n = byDifference.length;
  pointed = Math.max(0, Math.min(n - 1, i));
  const row = byDifference[pointed];
  const rankings = detailed.has(row.query) ? '; Enter or a click shows the rankings' : '';
  const text = `${pointed + 1} of ${whole(n)}: query ${row.id}, ${fixed(row.a)} against ${fixed(row.b)}, ${signed(row.difference)}${rankings}`;
  const cursor = $('chart').querySelector('.cursor');
  cursor.setAttribute('x', pointed);
  cursor.style.visibility = visible ? 'visible' : 'hidden';
  $('chart').setAttribute('aria-valuenow', pointed + 1);
  $('chart').setAttribute('aria-valuetext', text);
  $('pointed').textContent = visible ? text : `${plural(n, 'query', 'queries')} in the order of the difference${detailed.size < numbers.ids.length ? '; the ticks below mark those with rankings' : ''}.`;
}

const under = (event) => {
  const box = $('chart').getBoundingClientRect();
  return Math.floor(((event.clientX - box.left) / box.width) * byDifference.length);
};
const openPointed = () => detailed.has(byDifference[pointed].query) && openQuery(byDifference[pointed].query);
$('chart').addEventListener('pointermove', (event) => point(under(event)));
$('chart').addEventListener('pointerleave', () => point(pointed, document.activeElement === $('chart')));
$('chart').addEventListener('click', (event) => { point(under(event)); openPointed(); });
$('chart').addEventListener('focus', () => point(pointed));
$('chart').addEventListener('blur', () => point(pointed, false));
$('chart').addEventListener('keydown', (event) => {
  const page = Math.ceil(byDifference.length / 10);
  const to = { ArrowRight: pointed + 1, ArrowUp: pointed + 1, ArrowLeft: pointed - 1, ArrowDown: pointed - 1, PageUp: pointed + page, PageDown: pointed - page, Home: 0, End: byDifference.length - 1 }[event.key];
  if (to !== undefined) point(to);
  else if (event.key === 'Enter') openPointed();
  else return;
  event.preventDefault();
});

function listed() {
  const wanted = $('find').value.trim().toLowerCase();
  const rows = rowsNow().filter((row) => row.id.toLowerCase().includes(wanted) && (!$('only').checked || detailed.has(row.query)));
  return sorted(rows, state.sort, state.down);
}

function drawList() {
  const titles = { a: numbers.systems[state.a], b: numbers.systems[state.b] };
  const head = COLUMNS.map(([key, title, kind]) => {
    const active = key === state.sort;
    const arrow = el('span', { class: 'arrow', 'aria-hidden': 'true' }, active ? (state.down ? '▼' : '▲') : '');
    const resort = () => {
      Object.assign(state, { sort: key, down: active ? !state.down : key !== 'id' });
      drawList();
      $('list').querySelector(`[data-key=${key}]`).focus();
    };
    return el('th', { scope: 'col', role: 'columnheader', class: kind, 'aria-sort': active ? (state.down ? 'descending' : 'ascending') : null },
      el('button', { type: 'button', 'data-key': key, click: resort }, el('span', {}, title || titles[key]), arrow));
  });
  const rows = listed();
  const body = rows.slice(0, state.limit).map((row) => {
    const open = detailed.has(row.query) ? () => openQuery(row.query) : null;
    const id = open ? el('button', { type: 'button', class: 'open', 'data-query': row.query, 'aria-label': `Show the rankings of query ${row.id}` }, row.id) : row.id;
    const cell = (text, kind = '') => el('td', { role: 'cell', class: `n ${kind}` }, text);
    return el('tr', { role: 'row', ...(open ? { class: 'openable', click: open } : {}) }, el('th', { scope: 'row', role: 'rowheader' }, id), ...(numbers.docs ? [cell(whole(row.docs)), cell(whole(row.relevant))] : []),
      cell(fixed(row.a)), cell(fixed(row.b)), cell(signed(row.difference), kindOf(row.difference)));
  });
  // On a phone a long name gets a line of its own; the roles keep it a table for those who hear it.
  $('list').classList.toggle('stacked', numbers.ids.some((id) => id.length > 12));
  $('list').replaceChildren(el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...head)), el('tbody', { role: 'rowgroup' }, ...body));
  $('count').textContent = rows.length ? `${whole(Math.min(state.limit, rows.length))} of ${plural(rows.length, 'query', 'queries')}` : 'no such query';
  $('more').hidden = rows.length <= state.limit;
}

$('find').addEventListener('input', drawList);
$('only').addEventListener('change', drawList);
$('more').addEventListener('click', () => { state.limit *= 4; drawList(); });

// Weights

/** A bar to the right or left of the middle, with the range over folds as a line. */
function diverging(value, largest, low = value, high = value) {
  const place = (x) => 50 + (50 * x) / largest;
  const bar = el('i', { class: kindOf(value) });
  bar.style.left = `${Math.min(50, place(value))}%`;
  bar.style.width = `${Math.abs(place(value) - 50)}%`;
  const range = el('u');
  range.style.left = `${place(low)}%`;
  range.style.width = `${place(high) - place(low)}%`;
  return el('div', { class: 'diverging', 'aria-hidden': 'true' }, bar, high > low ? range : null);
}

function drawWeights() {
  const found = numbers.weights.find((one) => one.system === Number($('weighed').value));
  const key = $('by').value;
  const order = found.features.map((_, i) => i).sort((x, y) => Math.abs(found[key][y]) - Math.abs(found[key][x]) || x - y).slice(0, 30);
  const ranged = key === 'mean' && found.folds > 1;
  const largest = Math.max(...order.map((i) => Math.max(Math.abs(found[key][i]), ranged ? Math.max(Math.abs(found.low[i]), Math.abs(found.high[i])) : 0))) || 1;
  const head = ['feature', '', key === 'mean' ? 'weight' : 'effect', ...(ranged ? ['range over folds'] : [])];
  const rows = order.map((i) => el('tr', {}, el('th', { scope: 'row' }, featureName(found.features[i])),
    el('td', { class: 'picture' }, ranged ? diverging(found.mean[i], largest, found.low[i], found.high[i]) : diverging(found[key][i], largest)),
    el('td', { class: 'n' }, plain(found[key][i])), ranged ? el('td', { class: 'n quiet' }, `${plain(found.low[i])} … ${plain(found.high[i])}`) : null));
  $('coefficients').replaceChildren(el('thead', {}, el('tr', {}, ...head.map((text, i) => el('th', { scope: 'col', class: ['', '', 'n', 'n quiet'][i] }, text)))), el('tbody', {}, ...rows));
  const mean = found.folds > 1 ? `Means over ${found.folds} folds. ` : '';
  $('weighed-note').textContent = `${mean}The ${rows.length} largest of ${whole(found.of)}. A weight depends on the unit of its feature; an effect does not.`;
}

// Start

function start() {
  for (const query of readRankings().keys()) detailed.add(query);
  document.documentElement.classList.add('script');
  const systems = numbers.systems.map((name, i) => [i, name]);
  fill($('measure'), numbers.measures.map((name, i) => [i, name]), 0, (measure) => { state.measure = measure; drawMeasure(); });
  fill($('challenger'), systems, state.a, (a) => choosePair(a, state.b));
  fill($('baseline'), systems, state.b, (b) => choosePair(state.a, b));
  $('toolbar').addEventListener('submit', (event) => event.preventDefault());
  $('theme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });
  $('only').parentNode.hidden = !detailed.size;
  $('weights').hidden = !numbers.weights.length;
  if (numbers.weights.length) {
    const best = numbers.weights.find((one) => one.system === numbers.challenger) || numbers.weights[0];
    fill($('weighed'), numbers.weights.map((one) => [one.system, numbers.systems[one.system]]), best.system, drawWeights);
    $('by').addEventListener('change', drawWeights);
    drawWeights();
  }
  drawMeasure();
}
