#!/bin/bash
# The page's tests: unit (types and pure functions), fresh (the built page in the tree is what ui/ builds); in a browser: page (an
# exported file), server (a running cprof view), large (sizes and speed), soak (the largest).
# verifies: D6
# Usage: run.sh KIND CPROF OUTPUT_DIR. Exit status 77: this machine lacks what they need.
set -euo pipefail
kind=$1 cprof=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
ui=$here/../../ui

skip() { echo "skipped: needs $1"; exit 77; }
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null ||
  skip 'Node 20.19'
command -v npm >/dev/null || skip npm

mkdir -p "$out"
# Two tests at once may find the packages missing.
exec 9>"$out/npm.lock"
flock 9
cmp -s "$ui/package-lock.json" "$ui/node_modules/.installed" || {
  (cd "$ui" && npm ci --no-audit --no-fund --silent)
  cp "$ui/package-lock.json" "$ui/node_modules/.installed"
}
flock -u 9

case $kind in
  unit) cd "$ui" && npm run -s check && npm run -s test ;;
  fresh)
    cd "$ui" && npx vite build --outDir "$out/dist" --emptyOutDir --logLevel error
    cmp "$out/dist/index.html" "$here/../../src/page/page.html" || { echo 'src/page/page.html is not what ui/ builds: run ./dev page'; exit 1; }
    ;;
  page | server | large | soak)
    browser=$(command -v chromium || command -v chromium-browser) || skip 'chromium or chromium-browser'
    script=$kind
    [ "$kind" = soak ] && script=large
    CHROMIUM=$browser node "$here/${script}_test.mjs" "$cprof" "$out/$kind" "$kind"
    ;;
esac
