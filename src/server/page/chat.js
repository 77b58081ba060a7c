// The conversation: what was said, the reply that is coming, and what became of it.

let turns = [];       // {role, content, tool_calls}: what goes to the server with the next message
let running = null;   // the AbortController of the reply that is coming

function requestFor(history) {
  const settings = readSettings();
  const messages = [...history];
  if (settings.system) messages.unshift({role: 'system', content: settings.system});
  const body = {
    messages, stream: true, stream_options: {include_usage: true},
    chat_template_kwargs: {enable_thinking: settings.thinking},
  };
  for (const name of ['temperature', 'top_p', 'max_tokens', 'seed']) {
    if (settings[name] !== null) body[name] = settings[name];
  }
  if (!settings.drafts) body.draft = false;
  return body;
}

// The arguments of a tool call, easy to read; null: not whole yet.
function prettyArguments({function: {arguments: given}}) {
  try { return JSON.stringify(JSON.parse(given), null, 2); } catch { return null; }
}

function callBlock(call) {
  const {name, arguments: given} = call.function;
  const block = codeBlock(['Tool call ', el('b', {}, name)], prettyArguments(call) ?? given);
  block.setAttribute('role', 'group');
  block.setAttribute('aria-label', `Tool call ${name}`);
  return block;
}

// The reply on the page while it comes. Drawn once a frame at most, however many events there were.
class ReplyView {
  constructor() {
    this.reasoning = '';
    this.content = '';
    this.calls = [];  // as the API has them: {id, type, function: {name, arguments}}
    this.prose = el('div', {class: 'prose'}, el('span', {class: 'waiting', 'aria-label': 'Waiting'}));
    this.called = el('div', {class: 'calls'});
    this.after = el('div', {class: 'after'});
    this.thought = el('div');
    this.summary = el('summary', {}, 'Thinking …');
    this.thinking = el('details', {class: 'thinking', hidden: true}, this.summary, this.thought);
    this.root = el('article', {class: 'said model-said', 'aria-label': 'Reply'}, this.thinking, this.prose, this.called,
                   this.after);
    this.began = performance.now();
    this.frame = 0;
  }
  get isAnswered() { return this.content !== '' || this.calls.length > 0; }
  add(delta) {
    if (delta.reasoning_content) this.reasoning += delta.reasoning_content;
    const pieces = delta.tool_calls ?? [];
    if (this.reasoning && !this.isAnswered && (delta.content || pieces.length)) this.summary.textContent = this.thoughtFor();
    this.content += delta.content ?? '';
    for (const piece of pieces) this.addCall(piece);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }
  addCall({index, id, function: {name = '', arguments: given = ''}}) {
    const call = this.calls[index] ??= {id, type: 'function', function: {name: '', arguments: ''}};
    call.function.name += name;
    call.function.arguments += given;
  }
  thoughtFor() { return `Thought for ${((performance.now() - this.began) / 1000).toFixed(1)} s`; }
  draw() {
    this.frame = 0;
    const follows = isAtEnd();
    this.thinking.hidden = !this.reasoning;
    this.thought.textContent = this.reasoning;
    this.prose.replaceChildren(markdown(this.content));
    this.called.replaceChildren(...this.calls.map(callBlock));
    if (running && !this.isAnswered) this.prose.append(el('span', {class: 'waiting', 'aria-label': 'Waiting'}));
    if (follows) scrollToEnd();
  }
  // words: of how it went, as text or as an element.
  end(words) {
    cancelAnimationFrame(this.frame);
    if (this.reasoning && !this.isAnswered) this.summary.textContent = 'A thought that was cut short';
    this.draw();
    const button = el('button', {type: 'button', class: 'quiet', onclick: () => copy(this.content, button)}, 'Copy');
    this.after.replaceChildren(...(this.content ? [button] : []), typeof words === 'string' ? el('span', {}, words) : words);
    scrollToEnd();
  }
}

const isAtEnd = () => $('scroll').scrollHeight - $('scroll').scrollTop - $('scroll').clientHeight < 80;
const scrollToEnd = () => { $('scroll').scrollTop = $('scroll').scrollHeight; };

const ENDS = {length: 'cut at the token limit', tool_calls: 'ends in a tool call'};

// Time is the reader's: from sending to the last piece, prompt and wire included.
function howItWent({usage, rondo, reason}, ms) {
  const words = [];
  if (usage) words.push(`${usage.completion_tokens} token${usage.completion_tokens === 1 ? '' : 's'} in ${inMs(ms)}`);
  if (rondo?.drafted) words.push(`${rondo.accepted} of ${rondo.drafted} drafts kept`);
  if (ENDS[reason]) words.push(ENDS[reason]);
  return el('span', {title: rondo ? `seed ${rondo.seed}` : null}, words.join(' · '));
}

async function follow(reply, view) {
  const end = {};
  for await (const data of serverSentEvents(reply.body)) {
    if (data === '[DONE]') return end;
    const event = JSON.parse(data);
    if (event.error) throw new Trouble(event.error.message);
    const choice = event.choices[0];
    if (choice) view.add(choice.delta);
    end.reason = choice?.finish_reason ?? end.reason;
    end.usage = event.usage ?? end.usage;
    end.rondo = event.rondo ?? end.rondo;
  }
  throw new Trouble('The connection ended before the reply did.');
}

function showTrouble(message) {
  const again = el('button', {type: 'button', class: 'quiet', onclick: () => { box.remove(); answer(); }}, 'Try again');
  const box = el('div', {class: 'trouble', role: 'alert'}, message, again);
  $('thread').append(box);
  scrollToEnd();
}

function setRunning(controller) {
  running = controller;
  $('send').hidden = running !== null;
  $('stop').hidden = running === null;
  $('thread').setAttribute('aria-busy', running !== null);
  document.body.classList.toggle('busy', running !== null);
}

// Answers the conversation as it stands: its last turn is the user's.
async function answer() {
  const controller = new AbortController();
  const conversation = turns;  // a new one may be begun before this answer ends
  const view = new ReplyView();
  setRunning(controller);
  $('thread').append(view.root);
  scrollToEnd();
  const keep = () => {
    const calls = view.calls.filter((call) => prettyArguments(call) !== null);
    if (!view.content && !calls.length) return;
    conversation.push({role: 'assistant', content: view.content, ...(calls.length && {tool_calls: calls})});
  };
  try {
    const reply = await ask('/v1/chat/completions', {
      method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(requestFor(conversation)),
      signal: controller.signal,
    });
    const end = await follow(reply, view);
    setRunning(null);
    keep();
    view.end(howItWent(end, performance.now() - view.began));
  } catch (error) {
    if (running === controller) setRunning(null);
    if (conversation !== turns) return;
    if (error.name === 'AbortError') {
      keep();
      view.end('stopped');
    } else {
      if (view.isAnswered || view.reasoning) view.end('broken off');
      else view.root.remove();
      if (!(error instanceof Trouble)) console.error(error);
      showTrouble(error instanceof Trouble ? error.message : `The page stumbled: ${error.message}`);
    }
  }
}

function say(text) {
  if (running || !text.trim()) return;
  $('welcome').hidden = true;
  for (const box of $('thread').querySelectorAll('.trouble')) box.remove();
  // A turn that was never answered is asked again together with this one: two user turns in a row suit no template.
  const last = turns.at(-1);
  if (last?.role === 'user') last.content += `\n\n${text}`;
  else turns.push({role: 'user', content: text});
  $('thread').append(el('article', {class: 'said user prose', 'aria-label': 'You'}, markdown(text)));
  answer();
}

function stop() { running?.abort(); }

function startOver() {
  stop();
  setRunning(null);
  turns = [];
  $('thread').replaceChildren();
  $('welcome').hidden = false;
  $('input').focus();
}
