#!/bin/sh
# Installs PostgreSQL for the tests of databases where that is possible without asking: as root, with
# apt-get. The tests start their own server; elsewhere they are skipped, and say so.
for path in /usr/lib/postgresql/*/bin/initdb $(command -v initdb); do
    [ -x "$path" ] && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing PostgreSQL for the tests of databases"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get install -y -q --no-install-recommends postgresql ||
        { apt-get update -q && apt-get install -y -q --no-install-recommends postgresql; }; } \
        >/dev/null 2>&1 && exit 0
fi
echo "no PostgreSQL here: its tests are skipped"
