#!/bin/sh
# Fit a new model, verify it, and swap it in without an interruption:
#   nightly.sh STATE SOURCE [OPTIONS of vhe fit]
# STATE has the link `current`, which vhe serve reads, and the models that it pointed to.
set -eu
state=$1
shift
new=$state/models/$(date +%Y%m%d-%H%M%S)
mkdir -p "$state/models"
decisions=$state/current.decisions.sqlite
if [ -e "$decisions" ]; then
    set -- "$@" --decisions "$decisions"
fi
"${VHE:-vhe}" fit "$@" --out "$new" --map
"${VHE:-vhe}" doctor "$new"
ln -sfn "$new" "$state/next"
mv -T "$state/next" "$state/current"
if [ -n "${VHE_URL:-}" ]; then
    curl --fail --silent --show-error -X POST -H "Authorization: Bearer $VHE_TOKEN" "$VHE_URL/api/reload"
else
    systemctl reload vhe
fi
# the newest three of this program remain
ls -d "$state"/models/[0-9]* | sort -r | tail -n +4 | while read -r old; do rm -r "$old"; done
