#include "device/cuda/graphs.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cuda/check.h"

namespace rondo {

namespace {

// More than any forward has; what goes beyond is queued kernel by kernel.
constexpr std::size_t kMostLaunches = 4096, kMostArguments = 1 << 16, kMostBytes = std::size_t{4} << 20;
constexpr std::size_t kMostGraphs = 512;
constexpr std::size_t kChangesFor = 8;  // launches that one changed node is worth
constexpr std::size_t kArgumentAlignment = 16;

// Of what a node keeps for good.
bool is_same_node(const KernelLaunch& a, const KernelLaunch& b) {
  return a.kernel == b.kernel && a.cluster == b.cluster;
}

bool is_same_shape(const KernelLaunch& a, const KernelLaunch& b) {
  return a.grid.x == b.grid.x && a.grid.y == b.grid.y && a.grid.z == b.grid.z && a.threads == b.threads &&
         a.shared_bytes == b.shared_bytes;
}

}  // namespace

Graphs::Graphs(cudaStream_t stream) : stream_(stream) {
  open_.launches.reserve(kMostLaunches);
  open_.argument_at.reserve(kMostArguments);
  open_.bytes.reserve(kMostBytes);
  pointers_.reserve(64);
  changed_.reserve(kMostLaunches);
}

Graphs::~Graphs() {
  for (const auto& each : graphs_) {
    if (each->runnable != nullptr) cudaGraphExecDestroy(each->runnable);
    if (each->graph != nullptr) cudaGraphDestroy(each->graph);
  }
}

void** Graphs::pointers_of(const Run& run, const Launch& launch) {
  pointers_.clear();
  for (std::size_t i = 0; i < launch.num_arguments; ++i) {
    pointers_.push_back(const_cast<std::byte*>(run.bytes.data()) + run.argument_at[launch.first_argument + i]);
  }
  return pointers_.data();
}

void Graphs::queue(const Run& run, const Launch& launch) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(launch.what.cluster);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = launch.what.grid;
  config.blockDim = dim3(static_cast<unsigned>(launch.what.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(launch.what.shared_bytes);
  config.stream = stream_;
  config.attrs = attributes;
  config.numAttrs = 2;
  check_cuda(cudaLaunchKernelExC(&config, launch.what.kernel, pointers_of(run, launch)), launch.what.name);
}

bool Graphs::has_room(std::span<const KernelArgument> arguments) const {
  std::size_t bytes = 0;
  for (const KernelArgument& each : arguments) bytes += each.bytes + kArgumentAlignment;
  return open_.launches.size() < kMostLaunches && open_.argument_at.size() + arguments.size() <= kMostArguments &&
         open_.bytes.size() + bytes <= kMostBytes;
}

void Graphs::launch(const KernelLaunch& launch, std::span<const KernelArgument> arguments) {
  if (!has_room(arguments)) queue_all();
  Launch written{launch, open_.argument_at.size(), arguments.size(), open_.bytes.size(), 0};
  for (const KernelArgument& each : arguments) {
    const std::size_t at = (open_.bytes.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
    open_.bytes.resize(at + each.bytes);  // what lies between is zero, as what is compared must be
    std::memcpy(open_.bytes.data() + at, each.at, each.bytes);
    open_.argument_at.push_back(at);
  }
  written.bytes_end = open_.bytes.size();
  open_.launches.push_back(written);
  if (!is_open_) queue_all();
}

void Graphs::queue_all() {
  for (const Launch& each : open_.launches) queue(open_, each);
  forget_all();
}

void Graphs::forget_all() {
  open_.launches.clear();
  open_.argument_at.clear();
  open_.bytes.clear();
}

void Graphs::begin(std::uint64_t shape) {
  forget_all();  // of a run that an error ended
  is_open_ = true;
  shape_ = shape;
}

void Graphs::end() {
  CHECK(is_open_);
  is_open_ = false;
  if (open_.launches.empty()) return;
  Graph* graph = shape_ != 0 ? find() : nullptr;
  if (graph == nullptr && shape_ != 0 && !is_sealed_ && graphs_.size() < kMostGraphs) {
    make();
    graph = graphs_.back().get();
  }
  if (graph == nullptr || !put_in(*graph)) return queue_all();
  RONDO_CUDA_CALL(cudaGraphLaunch(graph->runnable, stream_));
  forget_all();
}

Graphs::Graph* Graphs::find() const {
  for (const auto& graph : graphs_) {
    const std::vector<Launch>& of = graph->run.launches;
    if (graph->shape == shape_ &&
        std::equal(of.begin(), of.end(), open_.launches.begin(), open_.launches.end(),
                   [](const Launch& a, const Launch& b) { return is_same_node(a.what, b.what); })) {
      return graph.get();
    }
  }
  return nullptr;
}

// As the stream would run the launches, programmatic dependencies included: it says itself what that means.
void Graphs::make() {
  auto made = std::make_unique<Graph>();
  made->shape = shape_;
  RONDO_CUDA_CALL(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  for (const Launch& each : open_.launches) {
    queue(open_, each);
    cudaStreamCaptureStatus status{};
    const cudaGraphNode_t* last = nullptr;
    std::size_t num_last = 0;
    const cudaGraphEdgeData* edges = nullptr;  // asked for, as without it edges that have any are an error
    RONDO_CUDA_CALL(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &last, &edges, &num_last));
    CHECK(num_last == 1);
    made->nodes.push_back(*last);
  }
  RONDO_CUDA_CALL(cudaStreamEndCapture(stream_, &made->graph));
  RONDO_CUDA_CALL(cudaGraphInstantiate(&made->runnable, made->graph, 0));
  made->run = open_;
  graphs_.push_back(std::move(made));
}

// False, and nothing changed: too many launches differ.
bool Graphs::put_in(Graph& graph) {
  changed_.clear();
  for (std::size_t i = 0; i < open_.launches.size(); ++i) {
    const Launch &now = open_.launches[i], &then = graph.run.launches[i];
    // The same kernels take the same arguments, so these lie at the same places.
    const std::size_t bytes = now.bytes_end - now.bytes_begin;
    if (is_same_shape(now.what, then.what) &&
        std::memcmp(open_.bytes.data() + now.bytes_begin, graph.run.bytes.data() + now.bytes_begin, bytes) == 0) {
      continue;
    }
    changed_.push_back(i);
    if (changed_.size() * kChangesFor > open_.launches.size()) return false;
  }
  for (const std::size_t i : changed_) {
    const Launch& now = open_.launches[i];
    Launch& then = graph.run.launches[i];
    then.what = now.what;
    std::copy(open_.bytes.begin() + static_cast<std::ptrdiff_t>(now.bytes_begin),
              open_.bytes.begin() + static_cast<std::ptrdiff_t>(now.bytes_end),
              graph.run.bytes.begin() + static_cast<std::ptrdiff_t>(now.bytes_begin));
    cudaKernelNodeParams params{};
    params.func = const_cast<void*>(now.what.kernel);
    params.gridDim = now.what.grid;
    params.blockDim = dim3(static_cast<unsigned>(now.what.threads));
    params.sharedMemBytes = static_cast<unsigned>(now.what.shared_bytes);
    params.kernelParams = pointers_of(graph.run, then);
    check_cuda(cudaGraphExecKernelNodeSetParams(graph.runnable, graph.nodes[i], &params), now.what.name);
  }
  return true;
}

}  // namespace rondo
