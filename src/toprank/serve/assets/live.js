'use strict';
const by = (id) => document.getElementById(id);
const made = (tag, text, name) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
};
const headers = () => {
  const key = sessionStorage.getItem('key');
  return key ? { authorization: `Bearer ${key}` } : {};
};
const post = async (path, body) => {
  const answer = await fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers() }, body: JSON.stringify(body),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
};
const digits = (x) => (x === null ? '–' : x.toFixed(4).replace('-', '−'));

function show(now) {
  by('search').hidden = !now.demo;
  by('version').textContent = `toprank ${now.toprank}`;
  const frozen = now.frozen ? ', frozen' : '';
  const again = now.same_as === null ? '' : ` (version ${now.same_as.toLocaleString('en')} again, after a rollback)`;
  by('about').textContent = `${now.ranker}, version ${now.version.toLocaleString('en')}${again}, learns from ${now.learns}${frozen}`;
  by('mean').textContent = now.events_judged
    ? `${now.measure}: ${digits(now.observed)} over ${now.events_judged.toLocaleString('en')} events, in [${digits(now.lower)}, ${digits(now.upper)}]; ${now.mistakes.toLocaleString('en')} could have been ranked better`
    : 'Nothing was learned yet.';
  by('curve').innerHTML = now.curve;
  const most = Math.max(...now.weights.map((w) => Math.abs(w[1])), 1e-300);
  by('weights').tBodies[0].replaceChildren(...now.weights.map(([name, weight, moved]) => {
    const row = made('tr');
    const bar = made('div', undefined, weight < 0 ? 'bar down' : 'bar');
    bar.style.width = `${(100 * Math.abs(weight)) / most}%`;
    const cell = made('td');
    cell.append(bar);
    row.append(made('td', name), made('td', digits(weight)), made('td', (moved >= 0 ? '+' : '') + digits(moved)), cell);
    return row;
  }));
  by('last').replaceChildren(...now.last.map((one) => {
    const part = made('section');
    const pair = made('div', undefined, 'pair');
    for (const side of ['before', 'after']) {
      const list = made('ol');
      list.setAttribute('aria-label', side);
      list.append(...one[side].map((id) => made('li', id)));
      const column = made('div');
      column.append(made('p', side, 'side'), list);
      pair.append(column);
    }
    part.append(made('h3', `event ${one.seq}${one.measure === null ? '' : `, ${digits(one.measure)}`}`), pair);
    return part;
  }));
}

async function follow() {
  try {
    const answer = await fetch('/v1/live', { headers: headers() });
    by('door').hidden = answer.status !== 401 && answer.status !== 403;
    if (!answer.ok) throw new Error((await answer.json()).error);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let held = '';;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (held + value).split('\n\n');
      held = parts.pop();
      const data = parts.filter((part) => part.startsWith('data: ')).pop();
      if (data) show(JSON.parse(data.slice(6)));
    }
    by('about').textContent = 'the server stopped; connecting …';
  } catch (error) {
    by('about').textContent = error.message;
    if (!by('door').hidden) return;
  }
  setTimeout(follow, 2000);
}

let asked = 0;
async function search(query, clicked) {
  const mine = ++asked;
  try {
    const found = await post('/demo/search', { query, explore: true });
    if (mine !== asked) return;
    by('found').replaceChildren(...found.items.map((item) => {
      const button = made('button', item.id, item.id === clicked ? 'clicked' : '');
      button.type = 'button';
      button.append(made('small', item.summary));
      button.addEventListener('click', () => click(query, found.ranking_id, item.id));
      const place = made('li');
      place.append(button);
      return place;
    }));
    if (clicked) (by('found').querySelector('.clicked') || by('query')).focus();
    else by('told').textContent = `${found.items.length} results, version ${found.version}`;
  } catch (error) {
    by('told').textContent = error.message;
  }
}

async function click(query, ranking, id) {
  const name = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('');
  try {
    const learned = await post('/v1/feedback', { event_id: name, ranking_id: ranking, clicks: [id] });
    by('told').textContent = `learned from your click: version ${learned.version}`;
    await search(query, id);
  } catch (error) {
    by('told').textContent = error.message;
  }
}

by('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (by('query').value.trim()) search(by('query').value.trim());
});
by('door').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('key', by('key').value.trim());
  follow();
});
follow();
