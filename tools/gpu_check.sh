#!/usr/bin/env bash
# What only a GPU can show, on a machine that has one but no package registry: the tests' GPU variants, selfcheck, compute-sanitizer,
# forward times against the floor, the ladder; one table at the end.
#
#   tools/gpu_check.sh pack FOLDER         here, after cmake --preset cuda -DBUILD_TESTING=ON -DRONDO_BENCH=ON and a build of build/:
#                                          sources, headers, libraries and the build's commands, some 9 MB
#   tools/gpu_check.sh run FOLDER [ROOT]   there, in the source tree (its models/ and tests/ are read): builds under ROOT
#                                          (default /tmp/rondo), runs everything; logs stay in ROOT/logs. Exit 1 when a check failed
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
programs=(test_ops test_model test_engine rondo forward_time)

pack() {
  local to=$1 lib=/usr/lib/x86_64-linux-gnu
  mkdir -p "$to"
  ninja -C "$here/build-cuda" -t commands "${programs[@]}" | sed "s|$here|@ROOT@|g" >"$to/commands"
  local deps; deps=$(mktemp -d)
  mkdir -p "$deps/deps/include" "$deps/deps/lib"
  { ninja -C "$here/build" -t deps || true; } | grep -oE '/usr/include/((boost|gtest|spdlog|CLI|fmt|sodium|tl)/[^ ]+|utf8proc\.h|pcre2\.h|histedit\.h)' |
    sort -u | sed 's|^/||' | tar cf - -C / -T - | tar xf - -C "$deps/deps" --strip-components=1
  cp /usr/include/histedit.h "$deps/deps/include/"
  for name in boost_json.so.1.81.0 boost_container.so.1.81.0 spdlog.so.1.10.0 fmt.so.9.1.0 pcre2-8.so.0 utf8proc.so.2 sodium.so.23 \
    edit.so.2 bsd.so.0 md.so.0 tinfo.so.6 gtest.a gtest_main.a; do
    cp -L "$lib/lib$name" "$deps/deps/lib/"
  done
  tar czf "$to/deps.tar.gz" -C "$deps" deps
  rm -rf "$deps"
  local made  # sources that configuring has written
  mapfile -t made < <(grep -oE -- '-c (@ROOT@/build-cuda/)?[^ @]+\.cpp' "$to/commands" | sed -E 's|^-c (@ROOT@/build-cuda/)?||' | sort -u)
  tar czf "$to/sources.tar.gz" -C "$here" --exclude=tests/fuzz/corpus src tests bench tools/quantise CMakeLists.txt "${made[@]/#/build-cuda/}"
  cp "$here/tools/gpu_check.sh" "$here/tools/gpu_build.py" "$to/"
  du -sh "$to"
}

# check NAME COMMAND...: runs it, keeps its output, and one line of the table.
check() {
  local name=$1 begin=$SECONDS verdict=ok
  shift
  "$@" >"$logs/$name.log" 2>&1 || { verdict=FAILED; failed=1; }
  table+=$(printf '%-34s %-7s %4d s  %s' "$name" "$verdict" $((SECONDS - begin)) \
    "$(grep -E 'PASSED|laws hold|ERROR SUMMARY' "$logs/$name.log" | tail -1 | tr -s ' ')")$'\n'
}

run() {
  local from root tree
  from=$(cd "$1" && pwd) root=${2:-/tmp/rondo} tree=$PWD
  mkdir -p "$root" "$root/logs"
  logs=$root/logs failed=0 table=
  tar xzf "$from/deps.tar.gz" -C "$root" && tar xzf "$from/sources.tar.gz" -C "$root"
  ln -sfn "$tree/models" "$root/models"
  python3 "$from/gpu_build.py" "$from/commands" "$root"
  cd "$root/build-cuda"
  export LD_LIBRARY_PATH=$root/deps/lib
  # The op tests read what an op wrote at once: every launch waits.
  local formats='All/WeightRowsOn.*sm_90:Kernels/WeightOn.*sm_90:All/MoeWeightOn.*sm_90'
  check ops env CUDA_LAUNCH_BLOCKING=1 ./test_ops --gtest_brief=1 --gtest_filter="*sm_90*-$formats"
  # Both of these ok: kGpuReadsCodes in src/model/network_model.cpp may become true, and the README's "Not yet" goes.
  check weight_formats env CUDA_LAUNCH_BLOCKING=1 ./test_ops --gtest_brief=1 --gtest_filter="$formats:Bf16Lanes.*"
  check weight_formats_models ./test_model --gtest_brief=1 --gtest_filter='*QuantisedOnTheGpu*'
  check goldens ./test_model --gtest_brief=1 --gtest_filter='*Golden*sm_90*'
  check row_law ./test_model --gtest_brief=1 --gtest_filter='*RowLaw*on_the_gpu*:RowLawControl*'
  check resume ./test_model --gtest_brief=1 --gtest_filter='*Resume*on_the_gpu*'
  check perplexity ./test_model --gtest_brief=1 --gtest_filter='*Perplexity*'
  check engine_laws ./test_engine --gtest_brief=1 --gtest_filter='*on_the_gpu*'
  for model in "$root/models/rondo-demo" "$root"/tests/fixtures/*/; do
    check "selfcheck_$(basename "$model")" ./rondo selfcheck "$model" --device cuda
  done
  check planted_fault bash -c "! ./rondo selfcheck '$root/models/rondo-demo' --device cuda --plant lost-row"
  check memcheck_ops env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --error-exitcode 3 ./test_ops --gtest_brief=1 --gtest_filter='*Formula*sm_90'
  check memcheck_goldens compute-sanitizer --error-exitcode 3 ./test_model --gtest_brief=1 --gtest_filter='*Golden*sm_90'
  check racecheck_ops env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool racecheck --error-exitcode 3 ./test_ops --gtest_brief=1 \
    --gtest_filter='*DeltaRows*Formula*sm_90:*ConvRows*Formula*sm_90:*SelectionRows*Ties*sm_90:*AttentionRowsOn.ANan*sm_90:*NormOn*Formula*sm_90:*MoeOn.TheRoutersWeights*sm_90:*LinearRowsOn.Runs*sm_90'
  check memcheck_formats env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --error-exitcode 3 ./test_ops --gtest_brief=1 \
    --gtest_filter='*WeightRowsOn.*EveryCode*sm_90:*WeightRowsOn.*PartsOfDifferentFormats*sm_90:*MoeWeightOn.Quantised*sm_90'
  check racecheck_formats env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool racecheck --error-exitcode 3 ./test_ops --gtest_brief=1 \
    --gtest_filter='*WeightRowsOn.*PartsOfDifferentFormats*sm_90'
  check forward_27b ./bench/forward_time qwen3.8-27b
  check forward_35b_a3b ./bench/forward_time qwen3.5-35b-a3b
  check forward_flash_next ./bench/forward_time qwen3.8-flash-next 12
  for format in nvfp4 fp8 affine4; do
    check "forward_27b_$format" ./bench/forward_time --format "$format" qwen3.8-27b
    check "forward_35b_a3b_$format" ./bench/forward_time --format "$format" qwen3.5-35b-a3b
  done
  check forward_flash_next_nvfp4 ./bench/forward_time --format nvfp4 qwen3.8-flash-next
  check forward_flash_next_fp8 ./bench/forward_time --format fp8 qwen3.8-flash-next 24  # all 48 do not fit
  check ladder ./rondo bench "$root/models/rondo-demo" --device cuda --quick --streams 1,4,16,64
  check ladder_0.8b ./rondo bench --synthetic qwen3.5-0.8b --device cuda --streams 1,4,8,16 --pairs 3
  grep -hE 'relative rms|perplexity' "$logs"/goldens.log "$logs"/weight_formats_models.log "$logs"/perplexity.log || true
  cat "$logs"/forward_*.log
  for log in "$logs"/ladder*.log; do grep -E '^(code|prose|edit|ids|prompts)' "$log" || tail -3 "$log"; done
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  printf '%s' "$table"
  return "$failed"
}

case ${1:-} in
  pack) pack "${2:?pack FOLDER}" ;;
  run) run "${2:?run FOLDER}" "${3:-}" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
