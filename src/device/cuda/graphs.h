// Graphs: launches that go to the GPU together, as one CUDA graph. A kernel that is launched by itself costs the host
// some four microseconds, and a forward has hundreds: more than a small forward takes. A node of a graph costs next to
// nothing.
//
// The launches of a run are written down, and compared with the graph of the run's shape, if it has one. Where few of
// them differ (attention's, as contexts grow) those are put into its nodes and the graph is launched. Changing a node
// costs about what launching a kernel does, and the GPU waits meanwhile; so a run that differs in more is launched
// kernel by kernel, beside which the GPU works. Graphs are made until seal(), at load: later, memory does not grow.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rondo {

struct KernelLaunch {
  const char* name;  // for errors
  const void* kernel;
  dim3 grid;
  int threads, shared_bytes;
  int cluster;  // blocks along x that share a cluster
};

// Where an argument lies, and its size.
struct KernelArgument {
  const void* at;
  std::size_t bytes;
};

class Graphs {
 public:
  explicit Graphs(cudaStream_t stream);
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // From begin() to end() launches are written down; end() queues them. Outside, they are queued at once.
  // shape: of a run, so that runs of one shape differ little; 0: of none, and no graph is made for it.
  void launch(const KernelLaunch& launch, std::span<const KernelArgument> arguments);
  void begin(std::uint64_t shape);
  void end();
  void seal() { is_sealed_ = true; }

 private:
  struct Launch {
    KernelLaunch what;
    std::size_t first_argument, num_arguments;
    std::size_t bytes_begin, bytes_end;  // of all its arguments
  };
  struct Run {
    std::vector<Launch> launches;
    std::vector<std::size_t> argument_at;  // where in bytes each argument begins
    std::vector<std::byte> bytes;
  };
  struct Graph {
    std::uint64_t shape;
    Run run;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    std::vector<cudaGraphNode_t> nodes;  // a launch each
  };

  void queue(const Run& run, const Launch& launch);
  void queue_all();
  void forget_all();
  bool has_room(std::span<const KernelArgument> arguments) const;
  Graph* find() const;
  void make();
  bool put_in(Graph& graph);
  void** pointers_of(const Run& run, const Launch& launch);

  cudaStream_t stream_;
  Run open_;
  std::uint64_t shape_ = 0;
  bool is_open_ = false, is_sealed_ = false;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<void*> pointers_;
  std::vector<std::size_t> changed_;
};

}  // namespace rondo
