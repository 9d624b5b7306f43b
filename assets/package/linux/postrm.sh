#!/bin/sh
# After removal. What people keep in their own folders (settings, keys, history) is theirs and stays.
set -eu

main() {
  link='/usr/bin/${executable}'
  profile='/etc/apparmor.d/${executable}'

  if [ "$(readlink "$link" || true)" = '/opt/${sanitizedProductName}/${executable}' ]; then rm -f "$link"; fi
  if [ -e "$profile" ]; then
    # Out of the kernel before the file goes, or it would stay in force until the next start.
    if command -v apparmor_parser >/dev/null 2>&1; then
      apparmor_parser --remove "$profile" >/dev/null 2>&1 || true
    fi
    rm -f "$profile"
  fi
}

case "$1" in
  remove | purge) main ;;
esac
