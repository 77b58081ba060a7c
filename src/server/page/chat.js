// The conversation: what was said, the reply that is coming, and what became of it.

let turns = [];       // {role, content}: what goes to the server with the next message
let running = null;   // the AbortController of the reply that is coming

function requestFor(history) {
  const settings = readSettings();
  const messages = history.map(({role, content}) => ({role, content}));
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

// The reply on the page while it comes. Drawn once a frame at most, however many events there were.
class ReplyView {
  constructor() {
    this.reasoning = '';
    this.content = '';
    this.prose = el('div', {class: 'prose'}, el('span', {class: 'waiting', 'aria-label': 'Waiting'}));
    this.after = el('div', {class: 'after'});
    this.thought = el('div');
    this.summary = el('summary', {}, 'Thinking …');
    this.thinking = el('details', {class: 'thinking', hidden: true}, this.summary, this.thought);
    this.root = el('article', {class: 'said model-said', 'aria-label': 'Reply'}, this.thinking, this.prose, this.after);
    this.began = performance.now();
    this.frame = 0;
  }
  add(delta) {
    if (delta.reasoning_content) this.reasoning += delta.reasoning_content;
    if (delta.content) {
      if (!this.content && this.reasoning) this.summary.textContent = this.thoughtFor();
      this.content += delta.content;
    }
    this.frame ||= requestAnimationFrame(() => this.draw());
  }
  thoughtFor() { return `Thought for ${((performance.now() - this.began) / 1000).toFixed(1)} s`; }
  draw() {
    this.frame = 0;
    const follows = isAtEnd();
    this.thinking.hidden = !this.reasoning;
    this.thought.textContent = this.reasoning;
    this.prose.replaceChildren(markdown(this.content));
    if (running && !this.content) this.prose.append(el('span', {class: 'waiting', 'aria-label': 'Waiting'}));
    if (follows) scrollToEnd();
  }
  // words: of how it went, as text or as an element.
  end(words) {
    cancelAnimationFrame(this.frame);
    if (this.reasoning && !this.content) this.summary.textContent = 'A thought that was cut short';
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
    if (choice?.delta.content || choice?.delta.reasoning_content) view.add(choice.delta);
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
    if (view.content) conversation.push({role: 'assistant', content: view.content});
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
      if (view.content || view.reasoning) view.end('broken off');
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
