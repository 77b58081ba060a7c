// The panel: GET /stats once a second while somebody looks.

const EVERY_MS = 1000;
const shown = {};  // what was last known of a round: kept, greyed, while none runs

function drawSpark(bySecond) {
  const most = Math.max(...bySecond, 1);
  const x = (i) => (i / (bySecond.length - 1) * 240).toFixed(1);
  const y = (tokens) => (43 - tokens / most * 41).toFixed(1);
  const line = bySecond.map((tokens, i) => `${i ? 'L' : 'M'}${x(i)} ${y(tokens)}`).join('');
  $('spark-line').setAttribute('d', line);
  $('spark-area').setAttribute('d', `${line}L240 43L0 43Z`);
  $('spark-now').textContent = most > 1 ? `peak ${most.toLocaleString('en')} · now` : 'now';
}

function drawSlots({running, filling, queued, max}) {
  const cells = [];
  for (let i = 0; i < Math.min(max, 64); ++i) {
    cells.push(el('i', {class: i < running - filling ? 'on' : i < running ? 'filling' : ''}));
  }
  $('slots').replaceChildren(...cells);
  const words = `${running} of ${max} running${filling ? `, ${filling} reading` : ''}${queued ? `, ${queued} waiting` : ''}`;
  $('slots').setAttribute('aria-label', words);
  $('streams-note').textContent = words;
}

const bar = () => el('div', {}, el('dt'), el('dd', {class: 'track'}, el('i')), el('dd', {class: 'value'}));

// Bars are made once and then only change: width and words.
function drawBars(list, rows) {
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach(({name, share, value, title}, i) => {
    if (!list.children[i]) list.append(bar());
    const [term, track, number] = list.children[i].children;
    term.textContent = name;
    track.firstChild.style.width = `${100 * share}%`;
    number.textContent = value;
    list.children[i].title = title ?? '';
  });
}

function drawDrafts(recent, total) {
  const lately = recent.drafted.some((drafted) => drafted > 0);
  const {drafted, accepted} = lately ? recent : total;
  const rows = drafted.map((made, depth) => ({
    name: `depth ${depth + 1}`, share: made ? accepted[depth] / made : 0,
    value: made ? `${Math.round(100 * accepted[depth] / made)} %` : '–', title: `${accepted[depth]} of ${made} kept`,
  }));
  drawBars($('drafts'), rows);
  $('no-drafts').hidden = rows.length > 0;
  $('drafts-note').textContent = rows.length ? (lately ? `last ${recent.seconds} s` : 'since the start') : '';
}

function drawRound(recent) {
  if (recent.rounds > 0) shown.round = recent;
  const round = shown.round ?? recent;
  $('rows').textContent = rounded(round.rows_a_round);
  $('streams').textContent = rounded(round.streams_a_round);
  $('planned').textContent = inMs(round.planned_ms);
  $('real').textContent = inMs(round.real_ms);
  const longer = Math.max(round.planned_ms ?? 0, round.real_ms ?? 0) || 1;
  $('planned-bar').style.width = `${100 * (round.planned_ms ?? 0) / longer}%`;
  $('real-bar').style.width = `${100 * (round.real_ms ?? 0) / longer}%`;
  $('rounds-note').textContent = recent.rounds ? `${recent.rounds.toLocaleString('en')} in ${recent.seconds} s` : 'none just now';
}

function drawSpeed(speed) {
  if (isNumber(speed.together)) shown.speed = speed;
  $('together').textContent = rounded((shown.speed ?? speed).together);
  $('each').textContent = rounded((shown.speed ?? speed).each);
  $('alone').textContent = rounded(speed.alone);
  drawSpark(speed.by_second);
}

function drawMemory(lines) {
  const list = $('memory');
  const most = Math.max(...lines.map((line) => line.bytes), 1);
  const sum = (pick) => lines.filter((line) => !line.mapped).reduce((bytes, line) => bytes + pick(line), 0);
  while (list.children.length > lines.length) list.lastChild.remove();
  lines.forEach((line, i) => {
    if (!list.children[i]) list.append(el('div', {}, el('dt'), el('dd'), el('dd', {class: 'track'}, el('i'))));
    const [what, size, track] = list.children[i].children;
    what.textContent = line.what;
    size.textContent = line.used_bytes < line.bytes ? `${inBytes(line.used_bytes)} of ${inBytes(line.bytes)}`
                                                    : `${inBytes(line.bytes)}${line.mapped ? ' mapped' : ''}`;
    track.style.width = `${Math.max(2, 100 * line.bytes / most)}%`;
    track.firstChild.style.width = `${line.bytes ? 100 * line.used_bytes / line.bytes : 0}%`;
    track.firstChild.classList.toggle('mapped', line.mapped);
  });
  $('memory-note').textContent = `${inBytes(sum((line) => line.used_bytes))} of ${inBytes(sum((line) => line.bytes))} reserved`;
}

function drawStats(stats) {
  document.title = `${stats.model} · Rondo`;
  $('welcome-title').textContent = `Ask ${stats.model}`;
  $('model').textContent = `${stats.model} · ${stats.arithmetic}`;
  $('panel').classList.toggle('idle', stats.streams.running === 0);
  drawSlots(stats.streams);
  drawSpeed(stats.tokens_per_s);
  drawRound(stats.recent);
  drawDrafts(stats.recent, stats.total);
  drawMemory(stats.memory);
  $('facts').textContent = `${stats.model} on ${stats.arithmetic}, context ${stats.context_tokens.toLocaleString('en')} tokens. ` +
      `Since the start: ${stats.total.requests.toLocaleString('en')} requests, ${stats.total.completion_tokens.toLocaleString('en')} tokens.`;
}

async function watchStats() {
  while (true) {
    try {
      if (!document.hidden) drawStats(await (await ask('/stats')).json());
    } catch (error) {
      $('streams-note').textContent = error instanceof Trouble && error.status ? error.message : 'server not reached';
      if (error.status === 401) return;  // asked, and no key was given: no more asking until the page is loaded again
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
