#!/usr/bin/env bash
# Puts llama-server and llama-quantize under DIR from Debian's own packages: unpacked, not installed, run through their own
# loader, so nothing else on the machine changes. About 12 MB and 5 s, once. Suites are tried in turn because a rolling index
# can be caught in the middle of a sync.
# Usage: get-llama.sh DIR
set -euo pipefail

fail() { echo "get-llama: $*" >&2; exit 1; }
works() { [ -x "$1/llama-server" ] && "$1/llama-server" --version >/dev/null 2>&1; }

[ $# -eq 1 ] || fail "usage: get-llama.sh DIR"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
command -v apt-get >/dev/null || fail "no apt-get on this machine"
case $(uname -m) in
  x86_64) triplet=x86_64-linux-gnu loader=ld-linux-x86-64.so.2 ;;
  aarch64) triplet=aarch64-linux-gnu loader=ld-linux-aarch64.so.1 ;;
  *) fail "no packages for $(uname -m)" ;;
esac

# Several suites may ask at once: the first fetches, the others wait for it.
exec 9>"$dir/.lock"
flock 9
works "$dir" && exit 0

mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1 == "URIs:" && $2 ~ /\/debian\/?$/ { print $2; exit }')
[ -n "$mirror" ] || mirror=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /\/debian\/?$/) { print $i; exit } }' /etc/apt/sources.list 2>/dev/null || true)
[ -n "$mirror" ] || fail "apt has no Debian mirror"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
packages=(llama.cpp-tools libllama0 libggml0 libc6 libstdc++6 libgcc-s1 libgomp1 libssl3t64 libzstd1 zlib1g)

fetch() {
  local options=(
    -o "Dir::Etc::sourcelist=$work/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root
    -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
  )
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$work/sources"
  apt-get "${options[@]}" update >"$work/log" 2>&1 &&
    (cd "$work" && apt-get "${options[@]}" download "${packages[@]}" >>"$work/log" 2>&1)
}

fetched=
for suite in forky sid forky sid; do
  if fetch "$suite"; then fetched=$suite && break; fi
  sleep 3
done
[ -n "$fetched" ] || { tail -3 "$work/log" >&2; fail "Debian's index gave no llama.cpp-tools"; }

rm -rf "$dir/root"
mkdir -p "$dir/root"
for package in "$work"/*.deb; do dpkg -x "$package" "$dir/root"; done
lib=$dir/root/usr/lib/$triplet
# ggml looks for its CPU back-ends beside the loader that started it.
(cd "$lib" && ln -sf ggml/backends0/*.so .)
for tool in llama-server llama-quantize; do
  printf '#!/bin/sh\nexec "%s" --library-path "%s:%s" "%s" "$@"\n' \
    "$lib/$loader" "$lib" "$lib/llama" "$dir/root/usr/bin/$tool" >"$work/$tool"
  chmod +x "$work/$tool"
  mv "$work/$tool" "$dir/$tool" # at once: whoever sees the file may run it
done
works "$dir" || fail "the unpacked llama-server does not run here"
