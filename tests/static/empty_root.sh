#!/usr/bin/env bash
# empty_root.sh CPROF CXX SOURCE: the static program records and reports inside an empty root. The root holds the program,
# a static target, /proc and /sys, and nothing else: no libraries, no /tmp, no /dev, no shell.
# verifies: A11
set -euo pipefail

cprof=$1 cxx=$2 source=$3
fail() { echo "FAIL: $*" >&2; exit 1; }

[ -x "$cprof" ] || fail "$cprof is not there: ./dev static builds it"
if readelf --wide --program-headers --dynamic "$cprof" | grep -E 'INTERP|NEEDED'; then
  fail "$cprof asks for a loader or a shared library"
fi
[ "$(id -u)" = 0 ] || { echo "skipped: needs root (chroot and mount)"; exit 77; }
unshare -m mount -t tmpfs none /mnt 2>/dev/null || { echo "skipped: needs mount (in its own namespace)"; exit 77; }

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir "$root/proc" "$root/sys"
cp "$cprof" "$root/cprof"
"$cxx" -O1 -g -static -o "$root/target" "$source"

# The mounts live in a namespace of their own and vanish with it.
in_root() {
  unshare --mount --propagation private bash -euc '
    root=$1; shift
    mount -t proc proc "$root/proc"
    mount -t sysfs sys "$root/sys"
    exec chroot "$root" "$@"' in_root "$root" "$@"
}

in_root /cprof --version
in_root /cprof record -F 499 -o /out.folded -o /out.pb.gz -- /target
in_root /cprof report /out.pb.gz >"$root/report.txt"
cat "$root/report.txt"

total=$(awk '{ sum += $NF } END { print sum + 0 }' "$root/out.folded")
costly=$(awk '/;costly(\(\))?[; ]/ { sum += $NF } END { print sum + 0 }' "$root/out.folded")
cheap=$(awk '/;cheap(\(\))?[; ]/ { sum += $NF } END { print sum + 0 }' "$root/out.folded")
echo "samples: $total, costly $costly, cheap $cheap"
[ "$total" -ge 100 ] || fail "a second of work at 499 Hz gave $total samples"
[ $((costly + cheap)) -ge $((total * 8 / 10)) ] || fail "only $((costly + cheap)) of $total samples name the two functions"
[ $((costly * 2)) -ge $((cheap * 3)) ] && [ "$costly" -le $((cheap * 6)) ] || fail "costly : cheap is not near 3 : 1"
grep -q costly "$root/report.txt" || fail "the report does not name the hottest function"
