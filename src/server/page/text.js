// What the rest of the page is built from: elements, numbers in words, and a reply's Markdown as elements. Nothing here
// ever becomes HTML by being parsed as such: text goes in as text.

const $ = (id) => document.getElementById(id);

// el('p', {class: 'quietly', onclick: f}, 'text', child, ...)
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const isNumber = (value) => typeof value === 'number';

function rounded(value) {
  if (!isNumber(value)) return '–';
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(value >= 10 ? 1 : 2);
}

function inMs(value) {
  if (!isNumber(value)) return '–';
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${rounded(value)} ms`;
}

function inBytes(value) {
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return `${value} B`;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // a page from another machine, without TLS, has no clipboard of that kind
    const field = el('textarea', {readonly: true});
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
    button.focus();
  }
  const before = button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = before; }, 1500);
}

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/g;

function inline(text) {
  const out = [];
  let done = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > done) out.push(text.slice(done, match.index));
    const [all, code, bold, italic, label, address] = match;
    if (code) out.push(el('code', {}, code));
    else if (bold) out.push(el('strong', {}, bold));
    else if (italic) out.push(el('em', {}, italic));
    else out.push(el('a', {href: address, rel: 'noopener noreferrer', target: '_blank'}, label));
    done = match.index + all.length;
  }
  out.push(text.slice(done));
  return out;
}

// label: what stands above it, as text or elements.
function codeBlock(label, text) {
  const button = el('button', {type: 'button', class: 'quiet', onclick: () => copy(text, button)}, 'Copy');
  return el('div', {class: 'codeblock'}, el('header', {}, el('span', {}, ...[label].flat()), button),
            el('pre', {tabindex: '0'}, el('code', {}, text)));
}

const FENCE = /^\s*```+\s*([\w+#.-]*)\s*$/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const HEADING = /^#{1,6}\s+(.*)$/;
const RULE = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/;  // between a table's head and its rows

function cellsOf(line) {
  const cells = line.trim().replaceAll('\\|', '\0').replace(/^\|/, '').replace(/\|$/, '').split('|');
  return cells.map((cell) => cell.trim().replaceAll('\0', '|'));
}

const sideOf = (rule) => (!rule.endsWith(':') ? null : rule.startsWith(':') ? 'centred' : 'to-right');

// Whether lines[at] is the head of a table: a rule with as many cells comes after it.
function isTable(lines, at) {
  return lines[at].includes('|') && RULE.test((lines[at + 1] ?? '').trim()) &&
         cellsOf(lines[at]).length === cellsOf(lines[at + 1]).length;
}

// A row with too few cells is filled up with empty ones; what is too many is left out, as GitHub does.
function table([head, rule, ...rows]) {
  const sides = cellsOf(rule).map(sideOf);
  const row = (tag, line) => {
    const cells = cellsOf(line);
    const scope = tag === 'th' ? 'col' : null;
    return el('tr', {}, ...sides.map((side, i) => el(tag, {class: side, scope}, ...inline(cells[i] ?? ''))));
  };
  return el('div', {class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table'},
            el('table', {}, el('thead', {}, row('th', head)), el('tbody', {}, ...rows.map((line) => row('td', line)))));
}

const goesOn = (line) => line.trim() !== '' && ![FENCE, ITEM, HEADING].some((other) => other.test(line));

// Paragraphs, fenced code, lists, headings and tables. An open fence is code to the end: that is how it looks while it comes.
function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.split('\n');
  let paragraph = [];
  let list = null;
  const close = () => {
    if (paragraph.length) out.append(el('p', {}, ...inline(paragraph.join('\n'))));
    paragraph = [];
    list = null;
  };
  for (let i = 0; i < lines.length; ++i) {
    const fence = FENCE.exec(lines[i]);
    const item = ITEM.exec(lines[i]);
    const heading = HEADING.exec(lines[i]);
    if (fence) {
      close();
      const code = [];
      while (++i < lines.length && !FENCE.test(lines[i])) code.push(lines[i]);
      out.append(codeBlock(fence[1] || 'text', code.join('\n')));
    } else if (heading) {
      close();
      out.append(el('h3', {}, ...inline(heading[1])));
    } else if (item) {
      const tag = item[1] ? 'ol' : 'ul';
      if (paragraph.length || list?.localName !== tag) {
        close();
        list = el(tag, item[1] ? {start: item[1]} : {});
        out.append(list);
      }
      list.append(el('li', {}, ...inline(item[2])));
    } else if (isTable(lines, i)) {
      close();
      const begin = i++;
      while (i + 1 < lines.length && goesOn(lines[i + 1])) ++i;
      out.append(table(lines.slice(begin, i + 1)));
    } else if (!lines[i].trim()) {
      close();
    } else {
      list = null;
      paragraph.push(lines[i]);
    }
  }
  close();
  return out;
}
