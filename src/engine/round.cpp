#include "engine/round.h"

namespace rondo {

Round::Round(Model& model, CostTables costs, const Clock& clock, int logged_rounds)
    : model_(model),
      clock_(clock),
      speculator_(model, std::move(costs)),
      log_(logged_rounds, model.facts().max_streams, model.facts().max_drafts) {
  const auto streams = static_cast<std::size_t>(model.facts().max_streams);
  slices_.reserve(streams);
  windows_.reserve(streams);
  kept_.reserve(streams);
  going_on_.reserve(streams);
}

namespace {

// What one request's own parts throw (its rule, its sink) ends that request alone.
template <class Call>
bool runs(Sequence& sequence, Call call) {
  try {
    call();
    return true;
  } catch (const std::exception& error) {
    sequence.break_off({ErrorCode::Internal, error.what()});
    return false;
  }
}

}  // namespace

double Round::fill(const RoundPlan& plan) {
  const Clock::Time begin = clock_.now();
  slices_.clear();
  for (const RoundPlan::Rows& rows : plan.slices) {
    const Sequence& sequence = *rows.sequence;
    slices_.push_back({.slot = sequence.slot(),
                       .start_pos = sequence.next_pos(),
                       .ids = sequence.pending_rows().first(static_cast<std::size_t>(rows.count)),
                       .blocks = sequence.blocks(),
                       .feeds_head = sequence.drafts()});
  }
  model_.prefill(slices_);
  for (const RoundPlan::Rows& rows : plan.slices) {
    rows.sequence->commit(rows.count);
    counters_.prompt_tokens += static_cast<std::uint64_t>(rows.count);
  }
  const double ms = ms_between(begin, clock_.now());
  counters_.fill_ms += ms;
  return ms;
}

void Round::run(RoundPlan& plan) {
  const Clock::Time begin = clock_.now();
  RoundRecord& record = log_.begin(++counters_.rounds);
  speculator_.trim(plan, record);                  // windows: how many held drafts are worth a row
  const Verified verified = verify(plan, record);  // one forward for every window
  walk(plan, verified, record);              // what each sequence keeps: a draft stays while it is what the model drew
  if (!kept_.empty()) model_.commit(kept_);  // state, caches and the head's waiting rows follow
  for (const RoundPlan::Rows& rows : plan.windows) runs(*rows.sequence, [&] { rows.sequence->send_text(); });
  // The next drafts, for who goes on: the head absorbs the kept rows, then goes level by level as long as it pays.
  speculator_.draft(going_on_, ms_between(begin, clock_.now()), record);
  speculator_.end_round(record, ms_between(begin, clock_.now()));
  count(plan, record);
}

void Round::count(const RoundPlan& plan, const RoundRecord& record) {
  counters_.head_passes += static_cast<std::uint64_t>(record.head_passes);
  counters_.planned_ms += record.planned_ms;
  counters_.real_ms += record.real_ms;
  const std::size_t streams = plan.windows.size();
  counters_.windows += streams;
  for (const RoundPlan::Rows& rows : plan.windows) {
    if (rows.count > 1) return;  // prompt rows: not a round that decodes and no more
  }
  const std::uint64_t tokens = streams + static_cast<std::uint64_t>(record.accepted);
  counters_.decode_tokens += tokens;
  counters_.decode_ms += record.real_ms;
  counters_.decode_stream_ms += record.real_ms * static_cast<double>(streams);
  if (streams == 1 && plan.slices.empty()) {
    counters_.lone_tokens += tokens;
    counters_.lone_ms += record.real_ms;
  }
}

Verified Round::verify(RoundPlan& plan, RoundRecord& record) {
  windows_.clear();
  for (const RoundPlan::Rows& rows : plan.windows) {
    Sequence& sequence = *rows.sequence;
    std::span<const std::int32_t> ids;
    if (!runs(sequence, [&] { ids = sequence.window(rows.drafts); })) continue;
    record.rows += static_cast<int>(ids.size());
    windows_.push_back({.slot = sequence.slot(),
                        .start_pos = sequence.next_pos(),
                        .ids = ids,
                        .certain = rows.count,
                        .blocks = sequence.blocks(),
                        .draw = &sequence.draw(),
                        .generated = sequence.generated(),
                        .masks = sequence.masks(),
                        .num_top_logprobs = sequence.num_top_logprobs()});
  }
  std::erase_if(plan.windows, [](const RoundPlan::Rows& rows) { return rows.sequence->is_finished(); });
  if (windows_.empty()) return {};
  ++counters_.verify_passes;
  counters_.rows += static_cast<std::uint64_t>(record.rows);
  return model_.verify(windows_);
}

void Round::walk(const RoundPlan& plan, const Verified& verified, RoundRecord& record) {
  kept_.clear();
  going_on_.clear();
  std::size_t first_drawn = 0;
  for (std::size_t i = 0; i < plan.windows.size(); ++i) {
    Sequence& sequence = *plan.windows[i].sequence;
    if (sequence.generated().empty()) counters_.prompt_tokens += static_cast<std::uint64_t>(plan.windows[i].count);
    const int num_drafts = static_cast<int>(windows_[i].ids.size()) - plan.windows[i].count;
    const int accepted = walk_window(plan.windows[i], num_drafts, first_drawn, verified);
    record.accepted += accepted;
    const int rows = plan.windows[i].count + accepted;
    kept_.push_back({.slot = sequence.slot(),
                     .rows = rows,
                     .next_token = verified.tokens[first_drawn + static_cast<std::size_t>(accepted)],
                     .feeds_head = sequence.drafts()});
    sequence.commit(rows);
    first_drawn += static_cast<std::size_t>(num_drafts) + 1;
    if (!sequence.is_finished()) going_on_.push_back(&sequence);
  }
}

// Accepts the model's tokens one by one: after the pending row, then after each draft that is the token the model drew
// at its parent. Ends where a draft differs, or where the sequence does. Returns how many drafts stay.
int Round::walk_window(const RoundPlan::Rows& rows, int num_drafts, std::size_t first_drawn, const Verified& verified) {
  Sequence& sequence = *rows.sequence;
  const Clock::Time now = clock_.now();
  const bool has_first = sequence.generated().empty();
  int accepted = 0;
  while (true) {
    const std::size_t at = first_drawn + static_cast<std::size_t>(accepted);
    const std::int32_t token = verified.tokens[at];
    const RowLogprobs* logprobs = sequence.num_top_logprobs() >= 0 ? &verified.logprobs[at] : nullptr;
    if (!runs(sequence, [&] { sequence.accept(token, logprobs, now); })) break;
    ++counters_.completion_tokens;
    if (sequence.is_finished() || accepted == num_drafts) break;
    if (sequence.held.tokens[static_cast<std::size_t>(accepted)] != token) break;
    ++accepted;
  }
  const bool cut_short = sequence.is_finished() && accepted < num_drafts;  // the drafts after an end were not judged
  sequence.count_round(num_drafts, accepted);
  count_times(sequence, has_first, accepted + 1, now);
  speculator_.observe(sequence, cut_short ? accepted : num_drafts, accepted);
  for (int depth = 0; depth < num_drafts && depth < kMaxDepth; ++depth) {
    ++counters_.drafted[depth];
    if (depth < accepted) ++counters_.accepted[depth];
  }
  return accepted;
}

void Round::count_times(Sequence& sequence, bool has_first, int num_tokens, Clock::Time now) {
  if (has_first) counters_.first_token.see(ms_between(sequence.arrived(), now) / 1000);
  const int later = has_first ? num_tokens - 1 : num_tokens;
  const double gap_s = has_first ? 0 : ms_between(sequence.last_token_time, now) / 1000;
  if (later > 0) counters_.between_tokens.see(gap_s / later, static_cast<std::uint64_t>(later));
  sequence.last_token_time = now;
}

}  // namespace rondo
