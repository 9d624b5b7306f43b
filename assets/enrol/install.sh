#!/bin/sh
# Makes this machine part of a Switchyard fleet: docs/joining.md describes every step.
#
#   sh install.sh ADDRESS PIN [--dry-run] [--port N] [--ollama URL] [--mirror URL]
#   sh install.sh --uninstall [--dry-run]
#
#   ADDRESS, PIN   where the control plane waits for this machine, and its key; both are part of the command that the console shows
#   --dry-run      says what would be done, changes nothing
#   --port N       where the agent listens (7412)
#   --ollama URL   where Ollama listens on this machine (http://127.0.0.1:11434)
#   --mirror URL   takes the runtime and Ollama from this address, by the same file names; their checksums hold all the same
#   --uninstall    takes away the agent, its service, account and data; Ollama and its models stay
#
# SWITCHYARD_PREFIX=DIR (for tests): every path below DIR, programs from DIR/tools first. Refused where an agent is installed.
#
# The bytes of this file are the same for everybody: what differs are its arguments. Everything is defined before the last line
# runs, so a file that was cut short does nothing.
set -eu

AGENT_VERSION='@AGENT_VERSION@'
AGENT_SHA256='@AGENT_SHA256@'
NODE_VERSION='@NODE_VERSION@'
OLLAMA_VERSION='@OLLAMA_VERSION@'
ACCOUNT='switchyard-agent'
UNIT='switchyard-agent.service'
LABEL='dev.switchyard.agent'
NEEDED_KIB=600000

say() { printf '%s\n' "$*"; }

usage() {
  printf '%s\n' "$1" >&2
  say 'sh install.sh ADDRESS PIN [--dry-run] [--port N] [--ollama URL] [--mirror URL]' >&2
  say 'sh install.sh --uninstall [--dry-run]' >&2
  exit 2
}

# ---- what the control plane is told ----

from_control_plane() {
  curl -fsS --proto '=https' --noproxy '*' -k --pinnedpubkey "$PIN" --connect-timeout 10 "$@"
}

# report STATE DETAIL: of the step that runs. The way to the control plane may be gone; the work does not depend on it.
report() {
  [ "$DRY" = no ] && [ -n "$FROM" ] || return 0
  r_detail=null
  [ -z "$2" ] || r_detail="\"$2\""
  from_control_plane --max-time 15 -o /dev/null -H 'content-type: application/json' \
    --data-binary "{\"v\":1,\"code\":\"$STEP\",\"state\":\"$1\",\"percent\":null,\"detail\":$r_detail}" \
    "$FROM/step" 2>/dev/null || return 0
}

begin() {
  STEP=$1
  say "$2"
  report running ''
}

end() {
  report 'done' "$1"
  STEP=
}

# fail DETAIL SENTENCE
fail() {
  [ -z "$STEP" ] || report failed "$1"
  STEP=
  printf 'Switchyard: %s\n' "$2" >&2
  exit 1
}

leave() {
  l_status=$1
  trap - EXIT
  trap '' INT TERM HUP
  if [ "$l_status" -ne 0 ] && [ -n "$STEP" ]; then
    if [ "$l_status" -gt 128 ]; then report failed interrupted; else report failed unexpected; fi
    printf 'Switchyard: stopped in the step %s. Run the same command again: what is done is not done twice.\n' "$STEP" >&2
  fi
  exit "$l_status"
}

# ---- arguments and places ----

read_arguments() {
  DRY=no UNINSTALL=no FROM= PIN= PORT=7412 MIRROR= OLLAMA=http://127.0.0.1:11434 STEP=
  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) DRY=yes ;;
      --uninstall) UNINSTALL=yes ;;
      --port | --mirror | --ollama)
        [ $# -ge 2 ] || usage "$1 needs a value."
        case $1 in
          --port) PORT=$2 ;;
          --mirror) MIRROR=${2%/} ;;
          --ollama) OLLAMA=${2%/} ;;
        esac
        shift
        ;;
      -*) usage 'There is an option that this script does not know.' ;;
      *)
        if [ -z "$FROM" ]; then FROM=${1%/}; elif [ -z "$PIN" ]; then PIN=$1; else usage 'There is an argument too many.'; fi
        ;;
    esac
    shift
  done
  case $PORT in *[!0-9]* | '' | ??????*) usage '--port takes a number from 1 to 65535.' ;; esac
  [ "$PORT" -ge 1 ] && [ "$PORT" -le 65535 ] || usage '--port takes a number from 1 to 65535.'
  case $MIRROR in '' | https://* | http://*) ;; *) usage '--mirror takes an address.' ;; esac
  case $OLLAMA in http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*) ;; *) usage '--ollama takes http://127.0.0.1:PORT.' ;; esac
  if [ "$UNINSTALL" = yes ]; then
    [ -z "$FROM" ] || usage '--uninstall takes no address.'
    return 0
  fi
  case $FROM in
    *[!A-Za-z0-9._:/@[\]-]*) usage 'The address holds a character that it cannot have.' ;;
    https://?*/e/?*) ;;
    *) usage 'The address of the control plane is missing. Copy the whole command from the console.' ;;
  esac
  case $PIN in
    *[!A-Za-z0-9+/=]*) usage 'The pin is no pin.' ;;
    sha256//???????????????????????????????????????????=) ;;
    *) usage 'The pin of the control plane is missing. Copy the whole command from the console.' ;;
  esac
}

find_places() {
  ROOT=${SWITCHYARD_PREFIX:-}
  if [ -n "$ROOT" ]; then
    case $ROOT in /?*) ;; *) usage 'SWITCHYARD_PREFIX takes an absolute folder.' ;; esac
    [ "$(id -u)" = "$(id -ru)" ] || usage 'SWITCHYARD_PREFIX is refused in a program that changed its user.'
    for p_state in /opt/switchyard-agent /var/lib/switchyard-agent /var/db/switchyard-agent; do
      [ ! -e "$p_state" ] || usage 'SWITCHYARD_PREFIX is refused: an agent is installed on this machine.'
    done
    PATH=$ROOT/tools:$PATH
    export PATH
  fi
  SYSTEM=$(uname -s)
  BASE=$ROOT/opt/switchyard-agent
  CACHE=$ROOT/var/cache/switchyard-agent
  case $SYSTEM in
    Darwin) DATA=$ROOT/var/db/switchyard-agent ;;
    *) DATA=$ROOT/var/lib/switchyard-agent ;;
  esac
  HERE=$BASE/$AGENT_VERSION
}

need_root() {
  [ "$DRY" = no ] || return 0
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null 2>&1 || {
    STEP=system
    fail not_root 'root rights are needed, and there is no sudo. Run the command as root.'
  }
  say 'Root rights are needed to install a service; sudo may ask for your password.'
  exec sudo sh "$0" "$@"
}

# ---- system ----

is_there() { command -v "$1" >/dev/null 2>&1; }

# Before anything else: with another key over there not one byte is taken, and nothing is said.
reach_control_plane() {
  is_there curl || fail tool_missing 'the program curl is missing. Install it and run the command again.'
  c_status=0
  from_control_plane --max-time 20 -o /dev/null "$FROM/options" 2>/dev/null || c_status=$?
  case $c_status in
    0) ;;
    90) fail '' 'what answers there does not have the key of your control plane. Nothing was installed.' ;;
    22) fail '' 'the control plane does not know this command any more: it was used, withdrawn or has expired. Make a new one.' ;;
    *) fail '' "the control plane cannot be reached from this machine (curl: $c_status). Nothing was installed." ;;
  esac
}

look_at_system() {
  begin system 'System: looks at this machine.'
  for s_tool in tar gzip awk df id; do
    is_there "$s_tool" || fail tool_missing "the program $s_tool is missing. Install it and run the command again."
  done
  is_there sha256sum || is_there shasum || fail tool_missing 'the program sha256sum is missing. Install it and run the command again.'
  s_machine=$(uname -m)
  case $SYSTEM-$s_machine in
    Linux-x86_64 | Linux-amd64) PLATFORM=linux-x64 ;;
    Linux-aarch64 | Linux-arm64) PLATFORM=linux-arm64 ;;
    Darwin-arm64) PLATFORM=darwin-arm64 ;;
    Darwin-x86_64) PLATFORM=darwin-x64 ;;
    Linux-* | Darwin-*) fail arch_unsupported "there is no runtime for the processor of this machine ($s_machine)." ;;
    *) fail system_unsupported "this script knows Linux and macOS, not $SYSTEM." ;;
  esac
  if [ "$SYSTEM" = Linux ]; then
    for s_libc in /lib/ld-musl-*; do
      [ ! -e "$s_libc" ] || fail system_unsupported 'the runtime needs glibc; this system has musl.'
    done
    is_there systemctl && [ -d "$ROOT/run/systemd/system" ] ||
      fail no_service_manager 'this machine is not run by systemd. Install the agent by hand (docs/joining.md).'
    is_there useradd || fail tool_missing 'the program useradd is missing. Install it and run the command again.'
  fi
  case $PLATFORM in
    linux-x64) NODE_URL='@NODE_LINUX_X64_URL@' NODE_SHA256='@NODE_LINUX_X64_SHA256@' NODE_FOLDER='@NODE_LINUX_X64_FOLDER@' ;;
    linux-arm64) NODE_URL='@NODE_LINUX_ARM64_URL@' NODE_SHA256='@NODE_LINUX_ARM64_SHA256@' NODE_FOLDER='@NODE_LINUX_ARM64_FOLDER@' ;;
    darwin-x64) NODE_URL='@NODE_DARWIN_X64_URL@' NODE_SHA256='@NODE_DARWIN_X64_SHA256@' NODE_FOLDER='@NODE_DARWIN_X64_FOLDER@' ;;
    darwin-arm64) NODE_URL='@NODE_DARWIN_ARM64_URL@' NODE_SHA256='@NODE_DARWIN_ARM64_SHA256@' NODE_FOLDER='@NODE_DARWIN_ARM64_FOLDER@' ;;
  esac
  [ -z "$MIRROR" ] || NODE_URL=$MIRROR/${NODE_URL##*/}
  if ! has_runtime; then
    s_place=$BASE
    while [ ! -d "$s_place/" ]; do s_place=${s_place%/*}; done
    s_free=$(df -Pk "$s_place/" | awk 'NR == 2 { print $4 }')
    [ "${s_free:-0}" -ge "$NEEDED_KIB" ] || fail disk_full "the disk has less than $((NEEDED_KIB / 1000)) MB left."
  fi
  end ''
}

# ---- downloads ----

is_sha() {
  if is_there sha256sum; then i_sum=$(sha256sum <"$1"); else i_sum=$(shasum -a 256 <"$1"); fi
  [ "${i_sum%% *}" = "$2" ]
}

# Both take URL and FILE, and go on where a broken download ended.
get_public() {
  g_protocol='=https'
  [ -z "$MIRROR" ] || g_protocol='=https,http'
  curl -fsSL --proto "$g_protocol" --proto-redir "$g_protocol" --connect-timeout 20 --speed-limit 1000 --speed-time 60 \
    --retry 2 -C - -o "$2" "$1"
}

get_from_control_plane() {
  from_control_plane --speed-limit 1000 --speed-time 60 -C - -o "$2" "$1"
}

# download GET URL SHA256: leaves the checked file in $FILE, or fails.
download() {
  FILE=$CACHE/$3
  if [ ! -d "$CACHE" ]; then
    mkdir -p "${CACHE%/*}"
    (umask 077 && mkdir "$CACHE")
  fi
  if [ -f "$FILE" ]; then
    ! is_sha "$FILE" "$3" || return 0
    rm -f "$FILE"
  fi
  if [ -s "$FILE.part" ]; then
    if is_sha "$FILE.part" "$3"; then
      mv "$FILE.part" "$FILE"
      return 0
    fi
    say '  goes on with a download that was broken off'
    d_status=0
    "$1" "$2" "$FILE.part" || d_status=$?
    case $d_status in
      0)
        if is_sha "$FILE.part" "$3"; then
          mv "$FILE.part" "$FILE"
          return 0
        fi
        ;;
      22 | 33 | 36) ;; # the other side does not take up again, or the beginning was not its file
      *) fail download_failed 'the download broke off. Run the same command again: it goes on from there.' ;;
    esac
    rm -f "$FILE.part"
  fi
  "$1" "$2" "$FILE.part" || fail download_failed "the download failed. Run the same command again, or name a mirror (--mirror)."
  if ! is_sha "$FILE.part" "$3"; then
    rm -f "$FILE.part"
    fail checksum_wrong 'what was downloaded is not what this release was built with. Nothing of it was used.'
  fi
  mv "$FILE.part" "$FILE"
}

# ---- runtime and agent ----

# A part that is in place says by which checksum: the mark is written last, inside the folder that takes its place in one move.
marked() { [ -f "$HERE/$1/checked" ] && [ "$(cat "$HERE/$1/checked")" = "$2" ]; }
has_runtime() { marked node "$NODE_SHA256"; }
has_agent() { marked agent "$AGENT_SHA256"; }

# put_in_place NAME SHA256: the folder $NEW becomes $HERE/NAME.
put_in_place() {
  printf '%s\n' "$2" >"$NEW/checked"
  chmod -R go-w,a+rX "$NEW"
  rm -rf "${HERE:?}/$1"
  mv "$NEW" "$HERE/$1"
  ! is_there restorecon || restorecon -RF "$HERE" || : # SELinux: what services may run is told by where it lies
  rm -f "$FILE"
}

open_new() {
  mkdir -p "$HERE"
  rm -rf "$HERE"/.new-*
  NEW=$HERE/.new-$$
  mkdir "$NEW"
}

install_runtime() {
  begin runtime "Runtime: Node.js $NODE_VERSION."
  if has_runtime; then
    end already
    return 0
  fi
  if [ "$DRY" = yes ]; then
    say "  would download $NODE_URL"
    say "  would check its SHA-256, $NODE_SHA256, and put it into $HERE/node"
    return 0
  fi
  download get_public "$NODE_URL" "$NODE_SHA256"
  open_new
  tar -xzof "$FILE" -C "$NEW" "$NODE_FOLDER/bin/node" "$NODE_FOLDER/LICENSE" || fail unpack_failed 'the runtime cannot be unpacked.'
  mkdir "$NEW/bin"
  mv "$NEW/$NODE_FOLDER/bin/node" "$NEW/bin/"
  mv "$NEW/$NODE_FOLDER/LICENSE" "$NEW/"
  rm -rf "${NEW:?}/$NODE_FOLDER"
  n_version=$("$NEW/bin/node" --version) || fail system_unsupported 'the runtime does not start on this system.'
  [ "$n_version" = "v$NODE_VERSION" ] || fail unpack_failed 'the runtime is of another version than expected.'
  put_in_place node "$NODE_SHA256"
  end ''
}

install_agent() {
  begin agent "Agent: version $AGENT_VERSION, from the control plane."
  if has_agent; then
    end already
    return 0
  fi
  if [ "$DRY" = yes ]; then
    say "  would fetch it, check its SHA-256, $AGENT_SHA256, and put it into $HERE/agent"
    return 0
  fi
  download get_from_control_plane "$FROM/agent" "$AGENT_SHA256"
  open_new
  tar -xzof "$FILE" -C "$NEW" || fail unpack_failed 'the agent cannot be unpacked.'
  put_in_place agent "$AGENT_SHA256"
  # For --uninstall, which needs no network.
  cp "$0" "$BASE/.install.sh"
  mv "$BASE/.install.sh" "$BASE/install.sh"
  end ''
}

# ---- account ----

make_account() {
  begin account "Account: $ACCOUNT, without a password, a shell or rights."
  a_detail=already
  if ! id -u "$ACCOUNT" >/dev/null 2>&1; then
    if [ "$DRY" = yes ]; then
      say "  would make the account $ACCOUNT"
    else
      a_detail=
      make_user >/dev/null || fail account_failed "the account $ACCOUNT cannot be made."
    fi
  fi
  if [ "$DRY" = yes ]; then
    [ -d "$DATA" ] || say "  would make $DATA, readable by $ACCOUNT alone"
    return 0
  fi
  a_owner=$(id -u "$ACCOUNT"):$(id -g "$ACCOUNT") || fail account_failed "the account $ACCOUNT cannot be made."
  case $a_owner in 0:* | *:0) fail account_failed "the account $ACCOUNT has the rights of root: that is not ours." ;; esac
  if [ ! -d "$DATA" ]; then
    mkdir -p "${DATA%/*}"
    (umask 077 && mkdir "$DATA")
  fi
  chmod 0700 "$DATA"
  chown "$a_owner" "$DATA" || fail account_failed "$DATA cannot be given to the account $ACCOUNT."
  end "$a_detail"
}

make_user() {
  if [ "$SYSTEM" = Linux ]; then
    useradd --system --user-group --home-dir "$DATA" --no-create-home --shell /usr/sbin/nologin "$ACCOUNT"
    return
  fi
  # macOS: a hidden account and group of one free number below 500.
  m_id=300
  while dscl . -list /Users UniqueID | awk -v id="$m_id" '$2 == id { found = 1 } END { exit !found }' ||
    dscl . -list /Groups PrimaryGroupID | awk -v id="$m_id" '$2 == id { found = 1 } END { exit !found }'; do
    m_id=$((m_id + 1))
    [ "$m_id" -lt 500 ] || return 1
  done
  dscl . -create "/Groups/$ACCOUNT" PrimaryGroupID "$m_id" &&
    dscl . -create "/Users/$ACCOUNT" UniqueID "$m_id" &&
    dscl . -create "/Users/$ACCOUNT" PrimaryGroupID "$m_id" &&
    dscl . -create "/Users/$ACCOUNT" UserShell /usr/bin/false &&
    dscl . -create "/Users/$ACCOUNT" NFSHomeDirectory "$DATA" &&
    dscl . -create "/Users/$ACCOUNT" Password '*' &&
    dscl . -create "/Users/$ACCOUNT" IsHidden 1
}

# ---- engine, model, service, join: the agent's own work ----

enrol() {
  if [ "$DRY" = yes ] && ! { has_runtime && has_agent; }; then
    say "Engine: would use Ollama at $OLLAMA if it runs there, and install Ollama $OLLAMA_VERSION if one was asked for and none is there."
    say 'Model: would pull the model that was asked for, if there is one.'
    say "Service: would run the agent on port $PORT as $ACCOUNT, started with the system."
    say 'Join: would tell the control plane that this machine is ready.'
    return 0
  fi
  set -- enrol --from "$FROM" --pin "$PIN" --port "$PORT" --ollama "$OLLAMA" --account "$ACCOUNT" --data-dir "$DATA"
  [ -z "$MIRROR" ] || set -- "$@" --mirror "$MIRROR"
  [ "$DRY" = no ] || set -- "$@" --dry-run
  "$HERE/node/bin/node" --disable-sigusr1 --report-exclude-env "$HERE/agent/index.js" "$@"
}

tidy_up() {
  [ "$DRY" = no ] || return 0
  for t_version in "$BASE"/*/; do
    [ "$t_version" = "$HERE/" ] || rm -rf "$t_version"
  done
  rm -rf "$CACHE"
}

# ---- the way back ----

# undo SENTENCE PROGRAM...: what is gone already is no failure.
undo() {
  if [ "$DRY" = yes ]; then
    say "  would $1"
    return 0
  fi
  shift
  "$@" >/dev/null 2>&1 || return 0
}

uninstall() {
  say 'Takes away the agent, its service, account and data.'
  if [ "$SYSTEM" = Darwin ]; then
    undo "stop the service $LABEL" launchctl bootout "system/$LABEL"
    undo "remove its description" rm -f "$ROOT/Library/LaunchDaemons/$LABEL.plist"
  else
    undo "stop the service $UNIT" systemctl disable --now "$UNIT"
    undo "remove its description" rm -f "$ROOT/etc/systemd/system/$UNIT"
    undo "tell systemd" systemctl daemon-reload
  fi
  undo "remove $DATA: this machine's key and its pairings" rm -rf "$DATA"
  undo "remove $CACHE" rm -rf "$CACHE"
  if id -u "$ACCOUNT" >/dev/null 2>&1; then
    if [ "$SYSTEM" = Darwin ]; then
      undo "remove the account $ACCOUNT" dscl . -delete "/Users/$ACCOUNT"
      undo "remove its group" dscl . -delete "/Groups/$ACCOUNT"
    else
      undo "remove the account $ACCOUNT" userdel "$ACCOUNT"
    fi
  fi
  undo "remove $BASE" rm -rf "$BASE"
  if [ "$DRY" = no ]; then
    for u_left in "$BASE" "$DATA" "$ROOT/etc/systemd/system/$UNIT" "$ROOT/Library/LaunchDaemons/$LABEL.plist"; do
      [ ! -e "$u_left" ] || fail unexpected "$u_left is still there."
    done
    ! id -u "$ACCOUNT" >/dev/null 2>&1 || fail unexpected "the account $ACCOUNT is still there."
  fi
  say 'Ollama and its models stay: other programs may use them. Remove the machine in the console, too (Fleet).'
}

main() {
  umask 022
  read_arguments "$@"
  find_places
  need_root "$@"
  trap 'leave $?' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  if [ "$UNINSTALL" = yes ]; then
    uninstall
    return 0
  fi
  reach_control_plane
  look_at_system
  install_runtime
  install_agent
  make_account
  enrol
  tidy_up
}

main "$@"
