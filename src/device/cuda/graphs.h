// Graphs: launches that go to the GPU together, as one CUDA graph. A kernel that is launched by itself costs the host
// some two microseconds, and a forward has hundreds; a node of a graph costs it next to nothing.
//
// The launches of a run are written down, and compared with the runs that have a graph: one that calls the same kernels
// in the same order is run again, with the grids and arguments that differ put into its nodes. So a graph serves every
// number of rows that the same kernels compute. Graphs are made until seal(), at load; later a run that has none is
// launched kernel by kernel, and memory does not grow.
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
  void launch(const KernelLaunch& launch, std::span<const KernelArgument> arguments);
  void begin();
  void end();
  void seal() { is_sealed_ = true; }

  struct Counts {
    std::uint64_t graphs = 0, runs = 0, runs_without = 0, nodes_changed = 0;
  };
  const Counts& counts() const { return counts_; }

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
    Run run;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    std::vector<cudaGraphNode_t> nodes;  // a launch each
  };

  void queue(const Run& run, const Launch& launch);
  void queue_all();
  bool has_room(std::span<const KernelArgument> arguments) const;
  Graph* find();
  void make();
  void put_in(Graph& graph);
  void** pointers_of(const Run& run, const Launch& launch);

  cudaStream_t stream_;
  Run open_;
  bool is_open_ = false, is_sealed_ = false;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<void*> pointers_;
  Counts counts_;
};

}  // namespace rondo
