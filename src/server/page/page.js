// Settings, keys, and what the page does when it opens.

const DEFAULTS = {system: '', temperature: '', top_p: '', max_tokens: '', seed: '', thinking: false, drafts: true};
const LIMITS = {  // [least, most, whole, name]
  temperature: [0, 2, false, 'Temperature'], top_p: [0, 1, false, 'Top-p'], max_tokens: [1, 2 ** 31 - 1, true, 'Max tokens'],
  seed: [-(2 ** 53) + 1, 2 ** 53 - 1, true, 'Seed'],
};
let kept = {...DEFAULTS};
try { kept = {...DEFAULTS, ...JSON.parse(localStorage.getItem('rondo-settings') ?? '{}')}; } catch { /* as if none were kept */ }

// Numbers where numbers are meant; null = left to the server.
function readSettings() {
  const out = {...kept, system: kept.system.trim()};
  for (const name of Object.keys(LIMITS)) out[name] = kept[name] === '' ? null : Number(kept[name]);
  return out;
}

function wrongWith(name, text) {
  const [least, most, whole, label] = LIMITS[name];
  const value = Number(text);
  if (text === '' || (Number.isFinite(value) && value >= least && value <= most && (!whole || Number.isInteger(value)))) return '';
  const range = name === 'max_tokens' ? 'at least 1' : name === 'seed' ? 'at most 53 bits' : `from ${least} to ${most}`;
  return `${label} must be a ${whole ? 'whole number' : 'number'}, ${range}.`;
}

function fillSettings(values) {
  const fields = $('settings-form').elements;
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === 'boolean') fields[name].checked = value;
    else fields[name].value = value;
  }
  $('settings-wrong').textContent = '';
  for (const name of Object.keys(LIMITS)) fields[name].removeAttribute('aria-invalid');
}

function openSettings() {
  fillSettings(kept);
  $('settings').showModal();
}

function keepSettings(event) {
  event.preventDefault();
  const fields = $('settings-form').elements;
  const given = {};
  for (const [name, value] of Object.entries(DEFAULTS)) given[name] = typeof value === 'boolean' ? fields[name].checked : fields[name].value;
  const wrongs = [];
  for (const name of Object.keys(LIMITS)) {
    given[name] = given[name].trim();
    const wrong = wrongWith(name, given[name]);
    if (wrong) wrongs.push([fields[name], wrong]);
    fields[name].setAttribute('aria-invalid', wrong !== '');
  }
  $('settings-wrong').textContent = wrongs.map(([, wrong]) => wrong).join(' ');
  if (wrongs.length) return wrongs[0][0].focus();
  kept = given;
  try { localStorage.setItem('rondo-settings', JSON.stringify(kept)); } catch { /* they hold for as long as the page is open */ }
  $('settings').close();
}

const SUGGESTIONS = [
  'Rename value to item in this function and change nothing else.\n\n```python\ndef total(values):\n    result = 0\n' +
      '    for value in values:\n        result += value\n    return result\n```',
  'What does the command grep do?', 'What is 23 + 45?', 'Who are you?',
];

function fitInput() {
  const input = $('input');
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight}px`;
  $('send').disabled = !input.value.trim();
}

function sendInput(event) {
  event?.preventDefault();
  const text = $('input').value;
  if (running || !text.trim()) return;
  $('input').value = '';
  fitInput();
  say(text);
}

$('suggestions').append(...SUGGESTIONS.map((text) => el('li', {}, el('button', {type: 'button', onclick: () => say(text)}, text.split('\n')[0]))));
$('composer').addEventListener('submit', sendInput);
$('input').addEventListener('input', fitInput);
$('input').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) sendInput(event);
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !document.querySelector('dialog[open]')) stop();
});
$('stop').addEventListener('click', () => { stop(); $('input').focus(); });
$('new-chat').addEventListener('click', startOver);
$('open-settings').addEventListener('click', openSettings);
$('settings-form').addEventListener('submit', keepSettings);
$('settings-reset').addEventListener('click', () => fillSettings(DEFAULTS));
$('toggle-panel').addEventListener('click', () => {
  const open = $('panel').classList.toggle('open');
  $('toggle-panel').setAttribute('aria-expanded', open);
});
for (const dialog of document.querySelectorAll('dialog')) {
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
}
fitInput();
watchStats();
