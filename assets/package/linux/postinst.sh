#!/bin/sh
# After installation, after an upgrade, and with `dpkg-reconfigure` (do that after an upgrade of the system).
set -eu

main() {
  app='/opt/${sanitizedProductName}'
  link='/usr/bin/${executable}'
  profile='/etc/apparmor.d/${executable}'

  ln -sf "$app/${executable}" "$link"

  # A parser that does not know this profile's version belongs to a system that does not need it (Ubuntu 22.04).
  profiled=no
  if command -v apparmor_parser >/dev/null 2>&1 \
    && apparmor_parser --skip-kernel-load --skip-cache "$app/resources/apparmor-profile" >/dev/null 2>&1; then
    install -m 0644 "$app/resources/apparmor-profile" "$profile"
    # A kernel without AppArmor, or an image under construction, loads nothing; the profile is there for its next start.
    apparmor_parser --replace --write-cache --skip-read-cache "$profile" >/dev/null 2>&1 || true
    profiled=yes
  fi

  # The sandbox is made of user namespaces; where they are not to be had, its old form, a set-user-id helper, takes over.
  # Asked here, not tried: this runs as root, and root may always make them.
  helper=0755
  if [ ! -e /proc/self/ns/user ] || is /proc/sys/kernel/unprivileged_userns_clone 0 \
    || is /proc/sys/user/max_user_namespaces 0; then
    helper=4755
  elif is /proc/sys/kernel/apparmor_restrict_unprivileged_userns 1 && [ "$profiled" = no ]; then
    helper=4755
  fi
  if [ -e "$app/chrome-sandbox" ]; then
    chown root:root "$app/chrome-sandbox"
    chmod "$helper" "$app/chrome-sandbox"
  fi
}

# is FILE VALUE: the kernel's setting exists and has that value
is() {
  [ -r "$1" ] && [ "$(cat "$1")" = "$2" ]
}

case "$1" in
  configure | abort-upgrade | abort-remove | abort-deconfigure) main ;;
esac
