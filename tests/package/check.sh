#!/usr/bin/env bash
# check.sh FOLDER: the package and the tarball in FOLDER are right. lintian finds no error; the package installs in a fresh
# Debian 12 by apt, runs there, and leaves nothing when it is removed; the tarball's program runs in an empty root. As root.
set -euo pipefail

folder=$(realpath "$1")
fail() { echo "FAIL: $*" >&2; exit 1; }
say() { echo "package: $*" >&2; }
deb=$(ls "$folder"/cprof_*.deb) tarball=$(ls "$folder"/cprof-*.tar.gz)

lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$deb" || fail "lintian"
say "lintian has nothing to say"

# Debian 12's and Ubuntu 24.04's C and C++ libraries both have these.
newest() { objdump -T "$1" | grep -o "$2_[0-9.]*" | sort -uV | tail -1 | sed 's/.*_//'; }
at_most() { [ "$(printf '%s\n' "$1" "$2" | sort -V | tail -1)" = "$2" ] || fail "needs $3 $1, Debian 12 has $2"; }
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
dpkg-deb --extract "$deb" "$work/files"
program=$work/files/usr/bin/cprof
if [ "$(. /etc/os-release && echo "$ID$VERSION_ID")" = debian12 ]; then
  at_most "$(newest "$program" GLIBC)" 2.36 GLIBC
  at_most "$(newest "$program" GLIBCXX)" 3.4.30 GLIBCXX
  needed=$(objdump -p "$program" | awk '$1 == "NEEDED" { print $2 }' | sort | tr '\n' ' ')
  for library in $needed; do
    case $library in ld-linux* | libc.so.6 | libm.so.6 | libgcc_s.so.1 | libstdc++.so.6) ;; *) fail "needs $library" ;; esac
  done
  say "needs only ${needed}as Debian 12 has them"
fi

# A tarball that runs: in a root of nothing else.
mkdir "$work/empty" "$work/tar"
tar --extract --file "$tarball" --directory "$work/tar"
cp "$work"/tar/*/bin/cprof "$work/empty/cprof"
chroot "$work/empty" /cprof --version
for file in share/man/man1/cprof-record.1 share/bash-completion/completions/cprof share/doc/cprof/NOTICE share/doc/cprof/third-party.txt; do
  [ -s "$work"/tar/*/$file ] || fail "the tarball has no $file"
done
say "the tarball's program runs in an empty root"

# CPROF_ROOTFS: a tar of a minimal Debian 12 that was made before, by mmdebstrap as here.
rootfs=${CPROF_ROOTFS:-$work/rootfs.tar}
[ -s "$rootfs" ] || mmdebstrap --quiet --variant=minbase bookworm "$rootfs"
mkdir "$work/root"
tar --extract --file "$rootfs" --directory "$work/root"
cp "$deb" "$work/root/cprof.deb"
cp /etc/resolv.conf "$work/root/etc/resolv.conf"
# In a mount namespace, whose /proc vanishes with it.
in_root() { unshare --mount --propagation private bash -euc 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' \
  "$work/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
contents() { (cd "$work/root" && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/lib/apt -prune -o \
  -path ./var/cache -prune -o -path ./var/log -prune -o -print | sort); }

in_root apt-get update -qq
# What the package needs stays when it goes; so it is there before the first look.
in_root sh -c "apt-get install -y -qq --no-install-recommends \$(dpkg-deb -f cprof.deb Depends | sed 's/([^)]*)//g; s/,//g') >/dev/null"
contents >"$work/before"
in_root apt-get install -y -qq --no-install-recommends ./cprof.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get install"; }
in_root cprof --version
in_root cprof report --help >/dev/null
printf 'app;main;work 3\n' >"$work/root/in.folded"
in_root cprof report --top /in.folded | grep -q work || fail "the installed program reports nothing"
rm "$work/root/in.folded"
in_root dpkg --verify cprof || fail "dpkg --verify"
for command in $(in_root cprof --help | sed -n 's/^  \([a-z]\+\) .*/\1/p'); do
  [ -s "$work/root/usr/share/man/man1/cprof-$command.1.gz" ] || fail "no man page cprof-$command(1)"
done
in_root bash -c 'source /usr/share/bash-completion/completions/cprof; COMP_WORDS=(cprof conv) COMP_CWORD=1; _cprof; [ "${COMPREPLY[0]}" = convert ]' ||
  fail "the installed completion does not complete"
in_root apt-get purge -y -qq cprof >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get purge"; }
contents >"$work/after"
diff "$work/before" "$work/after" || fail "removing it does not bring back what was"
say "installed and removed in Debian 12, nothing is left"
