#!/usr/bin/env bash
# make_package.sh BUILD STATIC OUT: the .deb of what BUILD installs, and the tarball of the same with the static program in
# the place of the other, in the folder OUT. Both are the same bytes whenever they are made of the same commit and build.
set -euo pipefail

build=$(realpath "$1") static=$(realpath "$2") out=$3
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CPROF_BUILD=$build

rm -rf "$out"
mkdir -p "$out/deb/cprof" "$out/tar"
out=$(realpath "$out")

cp -r packaging/debian "$out/deb/cprof/debian"
cat >"$out/deb/cprof/debian/changelog" <<TEXT
cprof ($version) unstable; urgency=medium

  * What changed is in CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
(cd "$out/deb/cprof" && dpkg-buildpackage --build=binary --unsigned-source --unsigned-changes >"$out/deb/log" 2>&1) ||
  { cat "$out/deb/log" >&2; exit 1; }
mv "$out"/deb/cprof_*.deb "$out/"

name=cprof-$version-linux-$(uname -m)
cmake --install "$build" --prefix "$out/tar/$name" >/dev/null
strip --strip-debug -o "$out/tar/$name/bin/cprof" "$static"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$out/tar" "$name" |
  gzip --no-name >"$out/$name.tar.gz"
rm -r "$out/tar"
ls -1 "$out"/*.deb "$out"/*.tar.gz
