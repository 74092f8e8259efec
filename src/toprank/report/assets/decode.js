// From base64 to numbers. Deflate is undone here, since not every browser does it for a local file without waiting.

const EXTRA_LENGTH = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A canonical Huffman code: how many symbols have each length, and the symbols in order. */
function huffman(lengths) {
  const counts = new Uint16Array(16);
  for (const length of lengths) counts[length] += 1;
  counts[0] = 0;
  const next = new Uint16Array(16);
  for (let length = 1; length < 15; length += 1) next[length + 1] = next[length] + counts[length];
  const symbols = new Uint16Array(lengths.length);
  lengths.forEach((length, symbol) => {
    if (length) symbols[next[length]++] = symbol;
  });
  return { counts, symbols };
}

function inflate(input) {
  let at = 0;
  let held = 0;
  let bits = 0;
  let out = new Uint8Array(input.length * 4 + 1024);
  let n = 0;

  function take(k) {
    while (held < k) {
      bits |= input[at++] << held;
      held += 8;
    }
    const value = bits & ((1 << k) - 1);
    bits >>>= k;
    held -= k;
    return value;
  }

  function symbol(code) {
    let word = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length += 1) {
      word |= take(1);
      const count = code.counts[length];
      if (word - first < count) return code.symbols[index + word - first];
      index += count;
      first = (first + count) << 1;
      word <<= 1;
    }
    throw new Error('the embedded numbers are damaged');
  }

  function room(k) {
    if (n + k <= out.length) return;
    const wider = new Uint8Array(2 * (n + k));
    wider.set(out);
    out = wider;
  }

  function stored() {
    bits = held = 0;
    const length = input[at] | (input[at + 1] << 8);
    room(length);
    out.set(input.subarray(at + 4, at + 4 + length), n);
    at += 4 + length;
    n += length;
  }

  function tables(dynamic) {
    if (!dynamic) {
      const fixed = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
      return [huffman(fixed), huffman(new Array(30).fill(5))];
    }
    const [literals, distances, codes] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const lengths = new Array(19).fill(0);
    for (let i = 0; i < codes; i += 1) lengths[CODE_ORDER[i]] = take(3);
    const code = huffman(lengths);
    const all = [];
    while (all.length < literals + distances) {
      const next = symbol(code);
      if (next < 16) all.push(next);
      else {
        const value = next === 16 ? all[all.length - 1] : 0;
        let times = next === 16 ? 3 + take(2) : next === 17 ? 3 + take(3) : 11 + take(7);
        while (times--) all.push(value);
      }
    }
    return [huffman(all.slice(0, literals)), huffman(all.slice(literals))];
  }

  const lengthStart = [];
  EXTRA_LENGTH.reduce((start, extra, i) => {
    lengthStart[i] = i === 28 ? 258 : start;
    return start + (1 << extra);
  }, 3);
  const extraDistance = (i) => (i < 2 ? 0 : (i >> 1) - 1);
  const distanceStart = [];
  for (let i = 0, start = 1; i < 30; i += 1) {
    distanceStart[i] = start;
    start += 1 << extraDistance(i);
  }

  let last = 0;
  while (!last) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) {
      stored();
      continue;
    }
    const [literal, distance] = tables(kind === 2);
    for (let code = symbol(literal); code !== 256; code = symbol(literal)) {
      if (code < 256) {
        room(1);
        out[n++] = code;
        continue;
      }
      const length = lengthStart[code - 257] + take(EXTRA_LENGTH[code - 257]);
      const d = symbol(distance);
      const back = distanceStart[d] + take(extraDistance(d));
      room(length);
      for (let i = 0; i < length; i += 1, n += 1) out[n] = out[n - back];
    }
  }
  return out.subarray(0, n);
}

function bytesOf(id) {
  const packed = atob(document.getElementById(id).textContent);
  return inflate(Uint8Array.from(packed, (c) => c.charCodeAt(0)));
}

/** The header of the page's numbers, with `value(measure, system, query)`: NaN where a query does not count. */
function readNumbers() {
  const bytes = bytesOf('numbers');
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const planes = bytes.subarray(4 + size);
  const [systems, queries] = [header.systems.length, header.ids.length];
  const coded = new Map(header.values.map((one) => [one.measure, one]));
  header.has = (measure) => coded.has(measure);
  header.value = (measure, system, query) => {
    const { at, width, low, step, table } = coded.get(measure);
    let code = 0;
    for (let i = width - 1; i >= 0; i -= 1) code = code * 256 + planes[at + i * systems * queries + query * systems + system];
    if (code === 256 ** width - 1) return NaN;
    return table ? table[code] : low + step * code;
  };
  return header;
}

/** The rankings by query; read when the first one is wanted. */
let rankings = null;
function readRankings() {
  if (!rankings) {
    const text = new TextDecoder().decode(bytesOf('rankings'));
    rankings = new Map(JSON.parse(text).map((one) => [one.query, one]));
  }
  return rankings;
}
