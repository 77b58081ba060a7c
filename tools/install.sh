#!/usr/bin/env bash
# Installs what Rondo needs from Debian's packages and PyPI, when it is missing, and says so. Nothing missing: no word.
#
#   tools/install.sh build           what compiling and serving take
#   tools/install.sh test            what the tests take besides: GoogleTest, RapidCheck, curl, and .venv from tools/requirements.txt
#   tools/install.sh page            chromium, for the test of the page and its pictures; apart, as it is large: without
#                                    it that test says that it is skipped
#   tools/install.sh check           clang-format and clang-tidy, in the version whose verdict counts
#   tools/install.sh bench           google-benchmark
#   tools/install.sh fuzz            clang with libFuzzer
#
# Several parts may be named at once. Packages go to the system by apt-get, with sudo when you are not root; the
# virtual environment stays inside the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=(g++ cmake ninja-build pkg-config libboost1.81-dev libboost-json1.81-dev libexpected-dev libutf8proc-dev
  libpcre2-dev libcli11-dev libfmt-dev libspdlog-dev libsodium-dev libedit-dev)
TEST=(libgtest-dev librapidcheck-dev python3 python3-venv curl)
PAGE=(chromium)
CHECK=(clang-format-14 clang-tidy-14 python3)
BENCH=(libbenchmark-dev)
FUZZ=(clang-14 libclang-rt-14-dev)

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

# The names among "$@" that dpkg does not have.
missing_of() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || fail "this is not Debian or Ubuntu: \
install the counterparts of these packages by hand ($*), then build with: cmake --preset release && cmake --build --preset release"
  local missing as_root=()
  mapfile -t missing < <(missing_of "$@")
  ((${#missing[@]})) || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "missing: ${missing[*]}. There is no sudo here; as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  printf 'Installing with apt-get%s: %s\n' "${as_root:+ (by sudo)}" "${missing[*]}"
  ((!${#as_root[@]})) || sudo true || fail "sudo refused; as root, run: apt-get install ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || printf 'install.sh: apt-get update failed; going on with the package lists that are here\n' >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null >/dev/null ||
    fail "apt-get could not install ${missing[*]} (the lines above say why). Rondo is built on Debian 12; an older or newer release may lack a version"
}

# A python3 that can make virtual environments: Debian's first, so that a version manager's shim is not in the way.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  fail "no python3 here can make a virtual environment (Debian: python3-venv)"
}

# .venv holds exactly tools/requirements.txt; the copy inside it says which one it was made from.
make_venv() {
  local python
  if cmp -s tools/requirements.txt .venv/requirements.txt && .venv/bin/python -c '' 2>/dev/null; then return 0; fi
  python=$(find_python)
  printf 'Making .venv for the tests: %s\n' "$(tr '\n' ' ' <tools/requirements.txt)"
  rm -rf .venv
  "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input -r tools/requirements.txt </dev/null ||
    fail "pip could not install tools/requirements.txt into .venv (the lines above say why)"
  cp tools/requirements.txt .venv/requirements.txt
}

(($#)) || fail "name the parts to install: build, test, page, check, bench, fuzz"
for part in "$@"; do
  case $part in
    build) install_packages "${BUILD[@]}" ;;
    test)
      install_packages "${TEST[@]}"
      make_venv
      ;;
    page) install_packages "${PAGE[@]}" ;;
    check) install_packages "${CHECK[@]}" ;;
    bench) install_packages "${BENCH[@]}" ;;
    fuzz) install_packages "${FUZZ[@]}" ;;
    *) fail "there is no part named $part; they are build, test, page, check, bench and fuzz" ;;
  esac
done
