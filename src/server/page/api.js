// The server, as the page speaks to it: one key, errors in words, and server-sent events.

class Trouble extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

const keyed = {
  get key() { try { return sessionStorage.getItem('rondo-key') || ''; } catch { return this.held || ''; } },
  set key(value) {
    this.held = value;
    try { sessionStorage.setItem('rondo-key', value); } catch { /* private windows may refuse; it is held for as long as the page is */ }
  },
};

// Whoever needs a key waits here for the same answer. False: not given.
let asking = null;
function askForKey(wrong) {
  asking ??= new Promise((resolve) => {
    const dialog = $('key');
    const form = $('key-form');
    let given = false;
    $('key-wrong').textContent = wrong ? 'That key is not known here.' : '';
    form.elements.key.value = '';
    form.onsubmit = (event) => {
      event.preventDefault();
      keyed.key = form.elements.key.value.trim();
      given = keyed.key !== '';
      dialog.close();
    };
    $('key-cancel').onclick = () => dialog.close();
    dialog.onclose = () => { asking = null; resolve(given); };
    dialog.showModal();
  });
  return asking;
}

async function wordsOf(reply) {
  const text = await reply.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text || `The server answered ${reply.status} ${reply.statusText}.`;
  }
}

async function ask(path, options = {}) {
  for (let tried = false; ; tried = true) {
    const key = keyed.key;
    let reply;
    try {
      reply = await fetch(path, {...options, headers: {...options.headers, ...(key && {Authorization: `Bearer ${key}`})}});
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Trouble('The server cannot be reached. Is it still running?');
    }
    if (reply.ok) return reply;
    if (reply.status === 401 && await askForKey(key !== '' || tried)) continue;
    throw new Trouble(await wordsOf(reply), reply.status);
  }
}

// The data of each event, in order, whatever pieces the bytes come in.
async function* serverSentEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  while (true) {
    const {done, value} = await reader.read();
    if (done) return;
    held += value;
    const events = held.split('\n\n');
    held = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join('\n');
    }
  }
}
