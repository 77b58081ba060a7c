#!/usr/bin/env bash
# What only a GPU can show, on a machine that has one but no package registry: the tests' GPU variants, selfcheck, compute-sanitizer,
# forward times against the floor, ladders; one table at the end.
#
#   tools/gpu_check.sh pack FOLDER                here, after cmake --preset cuda -DBUILD_TESTING=ON -DRONDO_BENCH=ON and a build of
#                                                 build-cuda/: its programs and the libraries they want, some 7 MB
#   tools/gpu_check.sh run FOLDER [LOGS [ONLY]]   there, in the source tree (its models/ and tests/ are read): runs everything, or
#                                                 what the extended regular expression ONLY names. Logs stay in LOGS (default /tmp/rondo). Exit 1 when a check failed
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
programs=(test_ops test_model test_engine rondo bench/forward_time)

pack() {
  local to=$1 made
  made=$(mktemp -d)
  mkdir -p "$to" "$made/bin" "$made/lib"
  for program in "${programs[@]}"; do strip -o "$made/bin/$(basename "$program")" "$here/build-cuda/$program"; done
  # Not the C and C++ libraries themselves: a machine has those, and newer ones do.
  ldd "$made"/bin/* | awk '/=> \//{print $3}' | grep -vE '/lib(c|m|gcc_s|stdc\+\+)\.so' | sort -u | xargs cp -Lt "$made/lib"
  echo "$here" >"$made/root"
  tar cJf "$to/programs.tar.xz" -C "$made" .
  rm -rf "$made"
  cp "$here/tools/gpu_check.sh" "$to/"
  du -sh "$to"
}

# check NAME COMMAND...: runs it, keeps its output, and one line of the table. One that hangs ends after four minutes.
check() {
  local name=$1 begin=$SECONDS verdict=ok
  shift
  [[ $name =~ $only ]] || return 0
  timeout 240 "$@" >"$logs/$name.log" 2>&1 || verdict=FAILED
  ! grep -q 'PASSED *\] 0 tests' "$logs/$name.log" || verdict=NOTHING  # a filter that meets no test, or no GPU
  [[ $verdict == ok ]] || failed=1
  table+=$(printf '%-34s %-7s %4d s  %s' "$name" "$verdict" $((SECONDS - begin)) \
    "$(grep -E 'PASSED|laws hold|ERROR SUMMARY' "$logs/$name.log" | tail -1 | tr -s ' ')")$'\n'
}

run() {
  local from built_in programs_at
  from=$(cd "$1" && pwd) only=${3:-.} failed=0 table=
  mkdir -p "${2:-/tmp/rondo}" && logs=$(cd "${2:-/tmp/rondo}" && pwd)
  programs_at=$(mktemp -d)
  tar xJf "$from/programs.tar.xz" -C "$programs_at"
  built_in=$(cat "$programs_at/root")  # where the tests look for what they read
  [[ -e $built_in ]] || { mkdir -p "$(dirname "$built_in")" && ln -s "$PWD" "$built_in"; }
  export LD_LIBRARY_PATH=$programs_at/lib PATH=$programs_at/bin:$PATH
  cd "$built_in"
  # The op tests read what an op wrote at once: every launch waits.
  local formats='All/WeightRowsOn.*sm_90:Kernels/WeightOn.*sm_90:All/MoeWeightOn.*sm_90'
  check ops env CUDA_LAUNCH_BLOCKING=1 test_ops --gtest_brief=1 --gtest_filter="*sm_90*-$formats"
  check weight_formats env CUDA_LAUNCH_BLOCKING=1 test_ops --gtest_brief=1 --gtest_filter="$formats:Bf16Lanes.*"
  check weight_formats_models test_model --gtest_brief=1 --gtest_filter='*QuantisedOnTheGpu*'
  check goldens test_model --gtest_brief=1 --gtest_filter='*Golden*sm_90*'
  check row_law test_model --gtest_brief=1 --gtest_filter='*RowLaw*on_the_gpu*:RowLawControl*'
  check resume test_model --gtest_brief=1 --gtest_filter='*Resume*on_the_gpu*'
  check perplexity test_model --gtest_brief=1 --gtest_filter='*Perplexity*'
  check engine_laws test_engine --gtest_brief=1 --gtest_filter='*on_the_gpu*:GpuMemoryControl.*'
  for model in models/rondo-demo tests/fixtures/*/; do
    check "selfcheck_$(basename "$model")" rondo selfcheck "$model" --device cuda
  done
  check planted_fault bash -c "! rondo selfcheck models/rondo-demo --device cuda --plant lost-row"
  check memcheck_ops env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --error-exitcode 3 test_ops --gtest_brief=1 --gtest_filter='*Formula*sm_90:*DeltaNet*HeadsOf128*sm_90:*NormOn.AddNormIs*sm_90:*HyperOn.InjectNormIs*sm_90:*HyperOn.MixIs*sm_90:*MoeOn.ASumMade*sm_90:*MoeOn.ARowKeeps*sm_90:*MoeOn.TheGatedMlpIsIts*sm_90'
  check memcheck_goldens compute-sanitizer --error-exitcode 3 test_model --gtest_brief=1 --gtest_filter='*Golden*sm_90'
  local races="env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool racecheck --error-exitcode 3 test_ops --gtest_brief=1"
  check racecheck_ops $races \
    --gtest_filter='*DeltaRows*Recurrence*sm_90:*ConvRows*Formula*sm_90:*SelectionRows*Ties*sm_90:*AttentionRowsOn.ANan*sm_90:*NormOn*Formula*sm_90:*MoeOn.TheRoutersWeights*sm_90:*LinearRowsOn.Runs*sm_90'
  check racecheck_delta_net $races --gtest_filter='*DeltaNet*HeadsOf128*sm_90'
  check racecheck_moe $races --gtest_filter='*MoeOn.ARowKeeps*sm_90:*MoeOn.ASumMade*sm_90'
  check racecheck_fused $races --gtest_filter='*HyperOn.InjectNormIs*sm_90:*HyperOn.MixIs*sm_90:*DrawRows*sm_90'
  check synccheck_ops env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool synccheck --error-exitcode 3 test_ops --gtest_brief=1 \
    --gtest_filter='*DeltaNet*HeadsOf128*sm_90:*MoeOn.TheGatedMlpIsIts*sm_90'
  check memcheck_formats env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --error-exitcode 3 test_ops --gtest_brief=1 \
    --gtest_filter='*WeightRowsOn.*EveryCode*sm_90:*WeightRowsOn.*PartsOfDifferentFormats*sm_90:*MoeWeightOn.Quantised*sm_90'
  check racecheck_formats env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool racecheck --error-exitcode 3 test_ops --gtest_brief=1 \
    --gtest_filter='*WeightRowsOn.*PartsOfDifferentFormats*sm_90'
  check forward_27b forward_time qwen3.8-27b
  check forward_35b_a3b forward_time qwen3.5-35b-a3b
  check forward_flash_next forward_time qwen3.8-flash-next 12
  for format in nvfp4 fp8 affine4; do
    check "forward_27b_$format" forward_time --format "$format" qwen3.8-27b
    check "forward_35b_a3b_$format" forward_time --format "$format" qwen3.5-35b-a3b
  done
  check forward_flash_next_nvfp4 forward_time --format nvfp4 qwen3.8-flash-next
  check forward_flash_next_fp8 forward_time --format fp8 qwen3.8-flash-next 24  # all 48 do not fit
  check ladder rondo bench models/rondo-demo --device cuda --quick --streams 1,4,16,64
  check ladder_0.8b rondo bench --synthetic qwen3.5-0.8b --device cuda --streams 1,4,8,16 --pairs 3
  for shape in qwen3.8-27b qwen3.5-35b-a3b qwen3.8-flash-next; do
    check "ladder_$shape" rondo bench --synthetic "$shape" --format nvfp4 --device cuda --streams 1,2,4,8,16,32,64 --pairs 2 --accept .85,.72,.60,.50
  done
  check load_time python3 "$built_in/bench/load_time.py" /tmp/rondo-load "$programs_at/bin/rondo"
  grep -hE 'relative rms|perplexity' "$logs"/{goldens,weight_formats_models,perplexity}.log 2>/dev/null || true
  find "$logs" -name 'forward_*.log' | sort | xargs -r cat
  for log in $(find "$logs" -name 'ladder*.log' | sort); do grep -E '^(code|prose|edit|ids|prompts)' "$log" || tail -3 "$log"; done
  cat "$logs"/load_time.log 2>/dev/null || true
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  printf '%s' "$table"
  return "$failed"
}

case ${1:-} in
  pack) pack "${2:?pack FOLDER}" ;;
  run) run "${2:?run FOLDER}" "${3:-}" "${4:-}" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
